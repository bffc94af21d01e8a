//! Other tunnels, as contenders: programs at both ends that make a TUN device.
//!
//! 1. The program is found: by the option `program`, by the variable HAWSER_LAB_NAME, on the PATH. Without it the
//!    contender is skipped by name.
//! 2. Its adapter writes configurations to a folder, and starts it at both ends.
//! 3. Devices get addresses, and routes to hosts of LANs, where the adapter leaves that to us.
//! 4. Pings until one is answered and every link that the adapter uses has carried something both ways.
//! 5. `down` ends the programs; their devices go with them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use hawser_wire::traffic::Ping;
use hawser_wire::{Counters, Way};
use ipnet::IpNet;

use self::pair::Pair;
use super::links::{Choice, family, has_lan, links_up, tun_ends};
use super::{Contender, ContenderPlan, Ends, LabError, Make, Offer, Options, Program, Programs, Stage, Transport};
use crate::scenario::Family;
use crate::stage::StageLink;

mod certificate;
mod engarde;
mod glorytun;
mod mlvpn;
mod mlvpn_rs;
mod mqvpn;
mod openvpn;
mod pair;
mod program;
mod wireguard_go;
mod yardstick;

/// Every tunnel there is.
pub(super) static KINDS: [(&str, Make); 8] = [
    kind::<wireguard_go::WireGuardGo>(),
    kind::<mlvpn::Mlvpn>(),
    kind::<mlvpn_rs::MlvpnRs>(),
    kind::<glorytun::Glorytun>(),
    kind::<engarde::Engarde>(),
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
trait Adapter: Send + Sized + 'static {
    /// Its kind, as scenarios call it.
    const KIND: &'static str;

    /// Its settings: it takes its options, and no more.
    fn parse(plan: &ContenderPlan, options: &mut Options, programs: &Programs) -> Result<Self, LabError>;

    /// The one link that it is to use; without one, all that are up.
    fn choice(&self) -> Option<&Choice> {
        None
    }

    /// What applications use without a LAN: the devices' addresses, where they are ours to give.
    fn ends(&self, inner: Family) -> Ends {
        tun_ends(inner)
    }

    /// Steps 1 to 3.
    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError>;
}

/// Where an adapter starts its programs. Borrowed.
struct Ground<'a> {
    stage: &'a Stage,
    /// All links: one that is down may come.
    links: &'a [StageLink],
    /// The places of those that it is to use.
    used: &'a [usize],
    /// What applications use without a LAN: [`Adapter::ends`].
    tun: Ends,
    /// What the tunnel joins beside its devices: client and server of LANs.
    hosts: Option<Ends>,
}

/// A tunnel program at both ends. Down at first; one owner.
struct Tunnel<A> {
    adapter: A,
    pair: Option<Pair>,
}

const fn kind<A: Adapter>() -> (&'static str, Make) {
    (A::KIND, make::<A>)
}

/// A tunnel as planned, down.
fn make<A: Adapter>(plan: &ContenderPlan, programs: &Programs) -> Result<Box<dyn Contender>, LabError> {
    Ok(Box::new(Tunnel { adapter: read::<A>(plan, programs)?, pair: None }))
}

/// The settings of an adapter.
fn read<A: Adapter>(plan: &ContenderPlan, programs: &Programs) -> Result<A, LabError> {
    let mut options = Options::of_contender(plan);
    let adapter = A::parse(plan, &mut options, programs)?;
    options.finish()?;
    Ok(adapter)
}

/// The settings that these options make, in TOML.
#[cfg(test)]
fn parsed<A: Adapter>(options: &str) -> A {
    read(&super::tests::plan(A::KIND, options), &super::tests::programs()).expect("understood")
}

impl<A: Adapter> Contender for Tunnel<A> {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        let hosts = has_lan(stage).then_some(stage.hosts);
        let used = match self.adapter.choice() {
            Some(choice) => vec![choice.place(stage)?],
            None => links_up(stage),
        };
        let ground = Ground { stage, links: &stage.links, used: &used, tun: self.adapter.ends(stage.inner), hosts };
        let ends = hosts.unwrap_or(ground.tun);
        let links: Vec<_> = used.iter().map(|&link| &stage.links[link]).collect();
        let before: Vec<_> = links.iter().map(|link| counters(link)).collect();
        let mut pair = Pair::new(A::KIND)?;
        self.adapter.start(&ground, &mut pair)?;
        wait(stage, &ends, &links, &before, &mut pair)?;
        let programs = pair.programs().map(|(role, pid)| Program { role, pid }).collect();
        self.pair = Some(pair);
        Ok(Offer { ends, socket: Transport::Tcp, programs, portals: None })
    }

    fn down(&mut self, _: &Stage) -> Result<(), LabError> {
        self.pair.take().map_or(Ok(()), Pair::end)
    }
}

impl Ground<'_> {
    /// The addresses that an end may send from, as networks: its device's, and its host's.
    fn behind(&self, end: impl Fn(&Ends) -> IpAddr) -> Vec<IpNet> {
        [Some(self.tun), self.hosts].iter().flatten().map(|ends| end(ends).into()).collect()
    }

    /// Step 3: brings an end's device up with its address, once it is there, and sends what is for the far host into
    /// it.
    fn configure(&self, role: &'static str, device: &str, pair: &mut Pair) -> Result<(), LabError> {
        pair.bring_up(role, self.namespace(role), device)?;
        let [own, far] = seen(self.tun, role);
        let words = format!("{} address add {own} peer {far} dev {device}", family(own));
        pair.undo.ip_add(self.namespace(role), &words)?;
        self.route(role, device, pair)
    }

    /// Step 3, for a device that has its address.
    fn route(&self, role: &'static str, device: &str, pair: &mut Pair) -> Result<(), LabError> {
        let Some(hosts) = self.hosts else { return Ok(()) };
        let [_, far] = seen(hosts, role);
        let words = format!("{} route add {} dev {device}", family(far), IpNet::from(far));
        pair.undo.ip_add(self.namespace(role), &words)
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

/// Step 4.
fn wait(
    stage: &Stage,
    ends: &Ends,
    links: &[&StageLink],
    before: &[[Counters; 2]],
    pair: &mut Pair,
) -> Result<(), LabError> {
    let late = Instant::now() + PATIENCE;
    loop {
        let (from, destination) = (stage.client.clone(), ends.server);
        let ping = Ping { from, destination, interval: PING_INTERVAL, duration: PING_DURATION };
        let is_answered = !ping.run()?.echoes.is_empty();
        let silent: Vec<_> = links.iter().zip(before).filter(|(link, before)| !has_carried(link, before)).collect();
        if is_answered && silent.is_empty() {
            return Ok(());
        }
        pair.check()?;
        if Instant::now() > late {
            let silent = silent.iter().map(|(link, _)| link.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(pair.fault(match is_answered {
                false => "no ping was answered".to_owned(),
                true => format!("nothing came and went over {silent}"),
            }));
        }
    }
}

fn counters(link: &StageLink) -> [Counters; 2] {
    Way::BOTH.map(|way| link.link.counters(way))
}

fn has_carried(link: &StageLink, before: &[Counters; 2]) -> bool {
    counters(link).iter().zip(before).all(|(now, before)| now.packets_out > before.packets_out)
}
