//! Other tunnels, as contenders: programs at both ends that make a TUN device.
//!
//! 1. The program is found: by the option `program`, by the variable HAWSER_LAB_NAME, on the PATH. Without it the
//!    contender is skipped by name.
//! 2. Its adapter writes configurations to a folder, and starts it at both ends.
//! 3. Devices get addresses, and routes to hosts of LANs, where the adapter leaves that to us.
//! 4. Pings until one is answered and every link that the adapter uses has carried something both ways.
//! 5. [`Down`] ends the programs; their devices go with them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use hawser_wire::traffic::Ping;
use hawser_wire::{Counters, Way};
use ipnet::IpNet;

use self::pair::Pair;
use super::links::{Choice, family, has_lan, links_up, tun_ends};
use super::{Contender, ContenderPlan, Down, Ends, LabError, Make, Offer, Options, Programs, Stage, Transport};
use crate::scenario::Family;
use crate::stage::StageLink;
use crate::wait::until;

mod glorytun;
mod mlvpn;
mod mlvpn_rs;
mod mqvpn;
mod openvpn;
mod pair;
mod wireguard_go;
mod yardstick;

/// Every tunnel there is.
pub(super) static KINDS: [(&str, Make); 8] = [
    kind::<wireguard_go::WireGuardGo>(),
    kind::<mlvpn::Mlvpn>(),
    kind::<mlvpn_rs::MlvpnRs>(),
    kind::<glorytun::Glorytun>(),
    kind::<wireguard_go::Engarde>(),
    kind::<openvpn::OpenVpn>(),
    kind::<mqvpn::Mqvpn>(),
    kind::<yardstick::Yardstick>(),
];

/// How long it may take until a ping is answered, and until every link has carried something.
const PATIENCE: Duration = Duration::from_secs(20);
/// A few pings at a time, so that one that was sent too early does not matter.
const PING_INTERVAL: Duration = Duration::from_millis(20);
const PING_DURATION: Duration = Duration::from_millis(100);

/// What is its own of a tunnel program. Plain settings; it starts nothing before it is told to.
trait Adapter: Sized + 'static {
    /// Its kind, as scenarios call it.
    const KIND: &'static str;
    /// What its program is called on the PATH, where the option `program` may name another.
    const PROGRAM: Option<&'static str> = None;
    /// Whether it goes by the one link that the option `link` names, or the best; else by all that are up.
    const ON_ONE_LINK: bool = false;

    /// Its settings: it takes its other options, and no more.
    fn parse(options: &mut Options) -> Result<Self, LabError>;

    /// What applications use without a LAN: the devices' addresses, where they are ours to give.
    fn ends(&self, inner: Family) -> Ends {
        tun_ends(inner)
    }

    /// Steps 2 and 3.
    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError>;
}

/// Where an adapter starts its programs. Borrowed.
struct Ground<'a> {
    /// With all links: one that is down may come.
    stage: &'a Stage,
    /// The places of those that it is to use.
    used: &'a [usize],
    /// What [`Adapter::PROGRAM`] is; empty where it is none.
    program: PathBuf,
    /// Where programs are that the lab builds.
    programs: &'a Programs,
    /// What applications use without a LAN: [`Adapter::ends`].
    tun: Ends,
    /// What the tunnel joins beside its devices: client and server of LANs.
    hosts: Option<Ends>,
}

/// What a plan says of a tunnel program at both ends. Plain data.
struct Tunnel<A> {
    adapter: A,
    /// What the option `program` says.
    program: Option<PathBuf>,
    choice: Option<Choice>,
    programs: Programs,
}

const fn kind<A: Adapter>() -> (&'static str, Make) {
    (A::KIND, make::<A>)
}

/// A tunnel as planned, down.
fn make<A: Adapter>(plan: &ContenderPlan, programs: &Programs) -> Result<Contender, LabError> {
    let mut options = Options::of_contender(plan);
    let program = if A::PROGRAM.is_some() { options.path("program")? } else { None };
    let choice = if A::ON_ONE_LINK { Some(Choice::parse(plan, &mut options)?) } else { None };
    let adapter = A::parse(&mut options)?;
    options.finish()?;
    let tunnel = Tunnel { adapter, program, choice, programs: programs.clone() };
    Ok(Box::new(move |stage: &Stage| tunnel.up(stage)))
}

/// The settings that these options make, in TOML.
#[cfg(test)]
fn parsed<A: Adapter>(options: &str) -> A {
    A::parse(&mut Options::of_contender(&super::tests::plan(A::KIND, options))).expect("understood")
}

impl<A: Adapter> Tunnel<A> {
    fn up(&self, stage: &Stage) -> Result<(Offer, Down), LabError> {
        let hosts = has_lan(stage).then_some(stage.hosts);
        let used = match &self.choice {
            Some(choice) => vec![choice.place(stage)?],
            None => links_up(stage),
        };
        let find = |name| pair::find(A::KIND, ("program", self.program.as_deref()), name);
        let program = A::PROGRAM.map(find).transpose()?.unwrap_or_default();
        let tun = self.adapter.ends(stage.inner);
        let ground = Ground { stage, used: &used, program, programs: &self.programs, tun, hosts };
        let ends = hosts.unwrap_or(ground.tun);
        let links = used.iter().map(|&link| &stage.links[link]);
        let before: Vec<_> = links.map(|link| (link, counters(link))).collect();
        let mut pair = Pair::new(A::KIND)?;
        self.adapter.start(&ground, &mut pair)?;
        wait(stage, ends, &before, &mut pair)?;
        let programs = pair.programs();
        let down: Down = Box::new(move |_: &Stage| pair.end());
        Ok((Offer { ends, socket: Transport::Tcp, programs, portals: None }, down))
    }
}

impl Ground<'_> {
    /// The addresses that an end may send from, as networks: its device's, and its host's.
    fn behind(&self, end: impl Fn(&Ends) -> IpAddr) -> Vec<IpNet> {
        [Some(self.tun), self.hosts].iter().flatten().map(|ends| end(ends).into()).collect()
    }

    /// Step 3: brings an end's device up, once it is there, and sends what is for the far host into it.
    fn route(&self, role: &'static str, device: &str, pair: &mut Pair) -> Result<(), LabError> {
        pair.bring_up(role, self.namespace(role), device)?;
        let Some(hosts) = self.hosts else { return Ok(()) };
        let [_, far] = seen(hosts, role);
        let words = format!("{} route add {} dev {device}", family(far), IpNet::from(far));
        pair.undo.ip_add(self.namespace(role), &words)
    }

    /// Step 3: the same with an address from us.
    fn configure(&self, role: &'static str, device: &str, pair: &mut Pair) -> Result<(), LabError> {
        pair.bring_up(role, self.namespace(role), device)?;
        let [own, far] = seen(self.tun, role);
        let words = format!("{} address add {own} peer {far} dev {device}", family(own));
        pair.undo.ip_add(self.namespace(role), &words)?;
        self.route(role, device, pair)
    }

    fn namespace(&self, role: &str) -> &hawser_wire::Namespace {
        if role == LOCAL { &self.stage.local } else { &self.stage.remote }
    }
}

/// The ends, as programs of [`Offer`] are told apart.
const LOCAL: &str = "local";
const REMOTE: &str = "remote";

/// An end's own address, and the far one.
fn seen(ends: Ends, role: &str) -> [IpAddr; 2] {
    if role == LOCAL { [ends.client, ends.server] } else { [ends.server, ends.client] }
}

/// Step 4, with what each link had carried before.
fn wait(stage: &Stage, ends: Ends, links: &[(&StageLink, [Counters; 2])], pair: &mut Pair) -> Result<(), LabError> {
    let (from, destination) = (stage.client.clone(), ends.server);
    let ping = Ping { from, destination, interval: PING_INTERVAL, duration: PING_DURATION };
    let mut fault = String::new();
    let carries = until(PATIENCE, Duration::ZERO, || {
        let is_answered = !ping.run()?.echoes.is_empty();
        let is_silent = |(now, before): (Counters, &Counters)| now.packets_out <= before.packets_out;
        let silent = links.iter().filter(|(link, before)| counters(link).into_iter().zip(before).any(is_silent));
        let silent = silent.map(|(link, _)| link.name.as_str()).collect::<Vec<_>>().join(", ");
        fault = match is_answered {
            false => "no ping was answered".to_owned(),
            true if silent.is_empty() => return Ok(Some(())),
            true => format!("nothing came and went over {silent}"),
        };
        pair.check().map(|()| None)
    })?;
    carries.ok_or_else(|| pair.fault(fault))
}

fn counters(link: &StageLink) -> [Counters; 2] {
    Way::BOTH.map(|way| link.link.counters(way))
}
