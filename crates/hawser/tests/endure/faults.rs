//! What goes wrong, one thing at a time.
//!
//! 1. [`Fault::draw`] takes one from the dice: its kind, where, how long.
//! 2. [`Field::suffer`] brings it about, waits for its length, and makes the world whole again.
//! 3. [`Fault::bound`] says how long a flow may be silent: nothing can pass for a while by any portal's doing, and
//!    something must soon after it.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_wire::{Direction, EmulatedLink, GilbertElliott, Loss, Moment, Probability, Rate, Way};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use rustix::process::Signal;
use serde::Serialize;

use crate::census::Process;
use crate::footprint::Footprint;
use crate::lab::{ENDPOINT, LINKS, Lab, Portal, ms, parse};
use crate::{forged, replays};

/// Each link, in Mbit/s; one way's delay, and its queue.
pub const LINK_MBPS: f64 = 40.0;
const DELAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);
/// Of every link, usually and while it is small, in bytes.
const MTU: u32 = 1_500;
const SMALL_MTU: u32 = 1_300;
/// Forged messages a second.
const FORGED: u64 = 2_000;
/// How soon traffic flows again once nothing is in the way, and after a portal was started.
const BACK: Duration = Duration::from_secs(1);
const BACK_AFTER_START: Duration = Duration::from_secs(3);
/// A stream's sender doubles its waiting while nothing passes: it may sleep for as long again as the silence was, and
/// its least timeout more.
const STREAM_MORE: Duration = Duration::from_secs(1);

/// What can go wrong. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    SilentCut,
    CutOneWay,
    LinkDown,
    LossBurst,
    DelayJump,
    RateFall,
    MtuTold,
    MtuHole,
    AddressChange,
    Reload,
    Stopped,
    ForgedIcmp,
    Replays,
    Terminated,
    Killed,
}

impl Kind {
    pub const ALL: [Kind; 15] = [
        Kind::SilentCut,
        Kind::CutOneWay,
        Kind::LinkDown,
        Kind::LossBurst,
        Kind::DelayJump,
        Kind::RateFall,
        Kind::MtuTold,
        Kind::MtuHole,
        Kind::AddressChange,
        Kind::Reload,
        Kind::Stopped,
        Kind::ForgedIcmp,
        Kind::Replays,
        Kind::Terminated,
        Kind::Killed,
    ];

    /// Whether a portal ends.
    pub fn restarts(self) -> bool {
        matches!(self, Kind::Terminated | Kind::Killed)
    }
}

/// One of them. Plain data.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fault {
    pub kind: Kind,
    /// Which link, or portal (the local one first).
    pub which: usize,
    pub length_ms: u64,
}

impl Fault {
    /// Step 1.
    pub fn draw(dice: &mut ChaCha8Rng, restarts: bool) -> Self {
        let kinds = &Kind::ALL[..if restarts { 15 } else { 13 }];
        let kind = kinds[dice.next_u32() as usize % kinds.len()];
        let (which, chance) = (dice.next_u32() as usize % 2, u64::from(dice.next_u32()));
        let most = if kind.restarts() { 1_500 } else { 4_000 };
        Self { kind, which, length_ms: 300 + chance % most }
    }

    pub fn length(&self) -> Duration {
        ms(self.length_ms)
    }

    /// Step 3: how long no flow can pass, `took` being how long the fault was there.
    fn silence(&self, took: Duration) -> Duration {
        let of_a_portal = self.kind.restarts() || self.kind == Kind::Stopped;
        if of_a_portal { took } else { Duration::ZERO }
    }

    fn back(&self) -> Duration {
        if self.kind.restarts() { BACK_AFTER_START } else { BACK }
    }

    /// The longest that a flow may be silent.
    pub fn bound(&self, took: Duration, is_stream: bool) -> Duration {
        let silence = self.silence(took);
        let datagrams = silence + self.back();
        if is_stream { datagrams + silence + STREAM_MORE } else { datagrams }
    }
}

/// Two portals, and two links between them that can be spoilt. One owner.
pub struct Field {
    /// The local one first.
    pub portals: [Portal; 2],
    pub links: [EmulatedLink; 2],
    pub lab: Lab,
    /// Both hosts, before there were portals.
    before: [Footprint; 2],
    /// A copy of the program, which a build beside does not change.
    program: PathBuf,
    /// How often each link has changed its address.
    moved: [usize; 2],
}

pub const NAMES: [&str; 2] = ["local", "remote"];

impl Field {
    pub fn new(tag: &str, traffic: &str) -> Self {
        Self::by(tag, traffic, [&[]; 2])
    }

    /// The same with portals that programs become.
    pub fn by(tag: &str, traffic: &str, by: [&[&str]; 2]) -> Self {
        let lab = Lab::new(tag, traffic);
        let links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(LINK_MBPS, DELAY, QUEUE)));
        for (number, link) in LINKS.iter().enumerate() {
            lab.remote.add_address(link, parse(&format!("192.0.{}.2/24", 101 + number))).expect("an address");
        }
        let program = lab.path("hawser");
        crate::copied::program(Path::new(env!("CARGO_BIN_EXE_hawser")), &program);
        let before = [&lab.local, &lab.remote].map(Footprint::of);
        let portals = [0, 1].map(|side| start(&lab, &program, NAMES[side], by[side]));
        Self { portals, links, lab, before, program, moved: [0, 0] }
    }

    /// What processes there are of both portals.
    pub fn processes(&self) -> [Option<Process>; 2] {
        [0, 1].map(|side| Process::of(self.portals[side].pid()))
    }

    /// Ends both portals; gives what they left behind in their hosts.
    pub fn end(self) -> Vec<String> {
        let Self { portals, links, lab, before, .. } = self;
        drop(portals);
        let hosts = [&lab.local, &lab.remote];
        let left = hosts.iter().zip(&before).filter_map(|(host, before)| before.left_in(host));
        // Routes that a link's end has lost and got back stand in another order.
        let left = left.filter(|left| left.contains("\n  ")).collect();
        drop(links);
        left
    }

    pub fn namespace(&self, portal: usize) -> &hawser_wire::Namespace {
        [&self.lab.local, &self.lab.remote][portal]
    }

    /// Step 2: gives the moment from which on nothing was wrong any more.
    pub fn suffer(&mut self, fault: &Fault, dice: &mut ChaCha8Rng) -> Moment {
        let link = &self.links[fault.which];
        match fault.kind {
            Kind::SilentCut => during(fault, |on| link.black_hole(on)),
            Kind::CutOneWay => {
                let way = Way::BOTH[dice.next_u32() as usize % 2];
                during(fault, |on| link.black_hole_way(way, on));
            }
            Kind::LinkDown => self.set_down(fault),
            Kind::LossBurst => changed(fault, link, |way| way.loss = Loss::Bursts(bursts())),
            Kind::DelayJump => changed(fault, link, |way| way.delay = DELAY + ms(100)),
            Kind::RateFall => changed(fault, link, |way| way.rate = Some(Rate::mbit(3.0))),
            Kind::MtuHole => changed(fault, link, |way| way.longest = Some(SMALL_MTU)),
            Kind::MtuTold => during(fault, |on| {
                let (name, mtu) = (LINKS[fault.which], if on { SMALL_MTU } else { MTU });
                self.lab.local.set_mtu(name, mtu).and_then(|()| self.lab.remote.set_mtu(name, mtu))
            }),
            Kind::AddressChange => self.change_address(fault.which),
            Kind::Reload => {
                self.portals[fault.which].signal(Signal::HUP);
            }
            Kind::Stopped => {
                self.portals[fault.which].signal(Signal::STOP);
                std::thread::sleep(fault.length());
                self.portals[fault.which].signal(Signal::CONT);
            }
            Kind::ForgedIcmp => self.forge(fault),
            Kind::Replays => {
                replays::send(&self.lab.local, &self.lab.remote, dice, fault.length());
            }
            Kind::Terminated => self.restart(fault.which, Signal::TERM, fault.length()),
            Kind::Killed => self.restart(fault.which, Signal::KILL, fault.length()),
        }
        Moment::now()
    }

    /// Ends a portal, and starts it after that time.
    pub fn restart(&mut self, side: usize, signal: Signal, after: Duration) {
        let portal = &mut self.portals[side];
        portal.signal(signal);
        portal.wait();
        std::thread::sleep(after);
        self.portals[side] = start(&self.lab, &self.program, NAMES[side], &[]);
    }

    /// Sets a link down at both ends; with it go its routes, and come back.
    fn set_down(&self, fault: &Fault) {
        let (name, hosts) = (LINKS[fault.which], [&self.lab.local, &self.lab.remote]);
        hosts.iter().for_each(|host| host.set_down(name).expect("it goes down"));
        std::thread::sleep(fault.length());
        hosts.iter().for_each(|host| host.set_up(name).expect("it comes up"));
        self.route(fault.which);
    }

    /// The route of a link's local end to the remote portal, by the network that it is in now.
    fn route(&self, link: usize) {
        let prefix = if link == 0 { format!("{ENDPOINT}/32") } else { "198.51.100.0/24".to_owned() };
        let words = format!("route replace {prefix} via 192.0.{}.2 dev {}", self.network(link), LINKS[link]);
        let out = self.lab.local.command("ip").args(words.split(' ')).output().expect("run ip (iproute2)");
        assert!(out.status.success(), "{words}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// The third number of the network that a link's ends are in.
    fn network(&self, link: usize) -> usize {
        link + 1 + 100 * (self.moved[link] % 2)
    }

    /// Moves the local end of a link into another network, and back the next time.
    fn change_address(&mut self, link: usize) {
        let (name, old) = (LINKS[link], self.network(link));
        self.moved[link] += 1;
        self.lab.local.add_address(name, parse(&format!("192.0.{}.1/24", self.network(link)))).expect("an address");
        self.route(link);
        self.lab.local.remove_address(name, parse(&format!("192.0.{old}.1/24"))).expect("it had it");
    }

    /// Routers' words that no router said, about the datagrams of a link, to both portals.
    fn forge(&self, fault: &Fault) {
        let log = self.portals[0].log();
        let name = LINKS[fault.which];
        let line = log.lines().rfind(|line| line.contains("link open") && line.contains(name));
        let at = line.and_then(|line| line.split("local=").nth(1)?.split_whitespace().next());
        let ours: SocketAddrV4 = parse(at.unwrap_or_else(|| panic!("no address of {name} in the log")));
        let theirs = SocketAddrV4::new(parse(ENDPOINT), 4_920);
        let about = |ours, theirs| {
            let small = |mtu| forged::message(forged::FRAGMENTATION_NEEDED, ours, theirs, mtu, &[0x40, 1, 2, 3, 4]);
            [forged::message(forged::PORT_UNREACHABLE, ours, theirs, 0, &[0x40]), small(1_280), small(576), small(68)]
        };
        let floods = [(&self.lab.remote, ours, about(ours, theirs)), (&self.lab.local, theirs, about(theirs, ours))];
        std::thread::scope(|scope| {
            for (from, to, messages) in floods {
                scope
                    .spawn(move || from.run(|| forged::flood(to, &messages, FORGED, fault.length())).expect("entered"));
            }
        });
    }
}

/// Starts the copied program, by others that become it.
fn start(lab: &Lab, program: &Path, name: &str, by: &[&str]) -> Portal {
    let copied = format!("exec {} \"$@\"", program.display());
    lab.start_by(name, &[by, &["sh", "-c", &copied]].concat())
}

/// Losses in bursts of ten: three in ten packets.
fn bursts() -> GilbertElliott {
    let chance = |fraction| Probability::new(fraction).expect("a fraction");
    GilbertElliott {
        to_bad: chance(0.043),
        to_good: chance(0.1),
        lost_in_good: Probability::NEVER,
        lost_in_bad: Probability::ALWAYS,
    }
}

/// Something that is on for the fault's length.
fn during(fault: &Fault, set: impl Fn(bool) -> Result<(), hawser_wire::WireError>) {
    set(true).expect("it can be spoilt");
    std::thread::sleep(fault.length());
    set(false).expect("it can be mended");
}

/// Settings of both ways for the fault's length.
fn changed(fault: &Fault, link: &EmulatedLink, change: impl Fn(&mut Direction)) {
    let usual = Way::BOTH.map(|way| link.settings(way));
    Way::BOTH.into_iter().for_each(|way| link.set(way, &change).expect("it can be spoilt"));
    std::thread::sleep(fault.length());
    for (way, usual) in Way::BOTH.into_iter().zip(usual) {
        link.set(way, |settings| *settings = usual).expect("it can be mended");
    }
}
