//! Made networks, each with one thing that limits its bond, and how long it takes until that is named.

use std::thread;
use std::time::{Duration, Instant};

use hawser_portal::limits::Cause;
use hawser_wire::traffic::UdpFlow;
use hawser_wire::{Direction, EmulatedLink, End, Loss, Namespace, Probability, Rate, Way, veth};

use crate::lab::{self, ENDPOINT, LINKS, Lab, Portal, REMOTE, ms, parse};

/// The verdict must be right so long after the load began, and stay so for a second.
const WITHIN: Duration = Duration::from_secs(10);
const STAYS: usize = 5;
/// From one look to the next: as often as the portal makes a status.
const LOOK: Duration = Duration::from_millis(200);
/// How long the load goes on.
const LOAD: Duration = Duration::from_secs(14);
/// The rates of links, in Mbit/s: ten bonds go at once on two processors.
const FAST: f64 = 6.0;
const SLOW: f64 = 4.0;

/// Whether whoever looks sees this sentence.
pub type Sees<'a> = &'a mut dyn FnMut(&str) -> bool;

/// A network: its name, what it is made of, and the verdict.
pub struct Made {
    pub name: &'static str,
    make: fn(&Lab) -> Vec<EmulatedLink>,
    /// What happens once the load has been there for three seconds.
    then: fn(&[EmulatedLink]),
    /// The load: one stream, or datagrams at this rate.
    datagrams_mbps: Option<f64>,
    limit: (Cause, &'static [&'static str]),
}

const NOTHING: fn(&[EmulatedLink]) = |_| {};

fn links(lab: &Lab, two: &Direction) -> Vec<EmulatedLink> {
    vec![lab.emulate("one", &shaped(FAST)), lab.emulate("two", two)]
}

fn shaped(mbps: f64) -> Direction {
    Direction::shaped(mbps, ms(10), ms(80))
}

/// A key of the second link, and both links as they are.
fn told(lab: &Lab, key: &str) -> Vec<EmulatedLink> {
    lab.edit("local.toml", "interface = \"two\"\n", &format!("interface = \"two\"\n{key}\n"));
    links(lab, &shaped(SLOW))
}

/// Both links lead to a router, and one line from there on.
fn common_line(lab: &Lab) -> Vec<EmulatedLink> {
    let router = Namespace::new("limits").expect("a namespace");
    router.set_forwarding(true).expect("a sysctl");
    for link in LINKS {
        lab.local.delete_interface(link).expect("it can be deleted");
        veth(&lab.end(&lab.local, link, 1), &lab.end(&router, link, 2), 1500).expect("a veth pair");
        lab.route(link);
    }
    let ends = [(&router, "192.0.9.1/24"), (&lab.remote, "192.0.9.2/24")];
    let [near, far] = ends.map(|(namespace, address)| End::new(namespace, "line", &[address]));
    let line = EmulatedLink::new(hawser_wire::LinkSpec::symmetric("line", near, far, &shaped(FAST))).expect("a link");
    let far = Some(parse("192.0.9.2"));
    router.add_route(parse(&format!("{ENDPOINT}/32")), far, Some("line")).expect("a route");
    for net in ["192.0.1.0/24", "192.0.2.0/24"] {
        lab.remote.add_route(parse(net), Some(parse("192.0.9.1")), Some("line")).expect("a route");
    }
    vec![line]
}

fn slower(links: &[EmulatedLink]) {
    Way::BOTH.iter().for_each(|way| links[1].set(*way, |way| way.rate = Some(Rate::mbit(1.0))).expect("it can be set"));
}

pub const MADE: [Made; 10] = [
    Made {
        name: "both full",
        make: |lab| links(lab, &shaped(SLOW)),
        then: NOTHING,
        datagrams_mbps: None,
        limit: (Cause::Links, &["one", "two"]),
    },
    Made {
        name: "a sender of little",
        make: |lab| links(lab, &shaped(SLOW)),
        then: NOTHING,
        datagrams_mbps: Some(1.5),
        limit: (Cause::Sender, &[]),
    },
    Made {
        name: "nobody sends",
        make: |lab| links(lab, &shaped(SLOW)),
        then: NOTHING,
        datagrams_mbps: Some(0.05),
        limit: (Cause::Nothing, &[]),
    },
    Made {
        name: "a link that was cut",
        make: |lab| links(lab, &shaped(SLOW)),
        then: |links| links[1].black_hole(true).expect("a black hole"),
        datagrams_mbps: None,
        limit: (Cause::Links, &["two"]),
    },
    Made {
        name: "a link that loses",
        make: |lab| {
            let loss = Loss::Random(Probability::new(0.1).expect("a share"));
            links(lab, &Direction { loss, ..shaped(SLOW) })
        },
        then: NOTHING,
        datagrams_mbps: None,
        limit: (Cause::Links, &["two"]),
    },
    Made {
        name: "a link that fades",
        make: |lab| links(lab, &shaped(SLOW)),
        then: slower,
        datagrams_mbps: None,
        limit: (Cause::Links, &["two"]),
    },
    Made {
        name: "a link that is too long",
        make: |lab| links(lab, &Direction::shaped(1.0, ms(400), ms(80))),
        then: NOTHING,
        datagrams_mbps: None,
        limit: (Cause::Links, &["two"]),
    },
    Made {
        name: "a link held to a rate",
        make: |lab| told(lab, "max_rate = \"1M\""),
        then: NOTHING,
        datagrams_mbps: None,
        limit: (Cause::Links, &["two"]),
    },
    Made {
        name: "a link with a cap",
        make: |lab| told(lab, "data_cap = \"1M\""),
        then: NOTHING,
        datagrams_mbps: None,
        limit: (Cause::Links, &["two"]),
    },
    Made {
        name: "one line behind both",
        make: common_line,
        then: NOTHING,
        datagrams_mbps: None,
        limit: (Cause::CommonLine, &[]),
    },
];

/// How long it took until the verdict was right and seen, and what was said otherwise. `watch` begins to look.
pub fn judged<W>(made: &Made, watch: impl FnOnce(&Lab, &Portal) -> W) -> Result<Duration, String>
where
    W: FnMut(&str) -> bool,
{
    let lab = Lab::new("limits", "");
    let state = lab.path("state");
    lab.edit("local.toml", "[tun]", &format!("state_dir = \"{}\"\n[tun]", state.display()));
    let links = (made.make)(&lab);
    let (local, _remote) = lab.start_both();
    let mut sees = watch(&lab, &local);
    thread::scope(|scope| {
        let load = scope.spawn(|| send(&lab, made));
        let verdict = look(&local, made, &links, &mut sees);
        load.join().expect("no panic");
        verdict
    })
}

fn send(lab: &Lab, made: &Made) {
    let destination = parse(&format!("{REMOTE}:5001"));
    let Some(mbps) = made.datagrams_mbps else {
        lab::transfer(&lab.local, &lab.remote, destination, LOAD).run().expect("a transfer");
        return;
    };
    let (from, to, rate) = (lab.local.clone(), lab.remote.clone(), Rate::mbit(mbps));
    let flow = UdpFlow { from, to, destination, payload: 1_000, rate, duration: LOAD, linger: ms(100) };
    flow.run().expect("a flow");
}

fn look(local: &Portal, made: &Made, links: &[EmulatedLink], sees: Sees<'_>) -> Result<Duration, String> {
    thread::sleep(ms(3_000));
    (made.then)(links);
    let start = Instant::now();
    let (mut right, mut said) = (0, Vec::new());
    while start.elapsed() < WITHIN {
        thread::sleep(LOOK);
        let limit = local.status().and_then(|status| status.peers.into_iter().next()?.limit);
        let Some(limit) = limit else { continue };
        let is_right = limit.cause == made.limit.0 && limit.links == made.limit.1 && sees(&limit.text);
        right = if is_right { right + 1 } else { 0 };
        said.push(format!("{:.1} s: {}", start.elapsed().as_secs_f64(), limit.text));
        if right == STAYS {
            return Ok(start.elapsed());
        }
    }
    Err(format!("{}: {}", made.name, said.join("\n  ")))
}
