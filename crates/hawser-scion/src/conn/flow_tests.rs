use std::sync::Arc;
use std::time::Duration;

use super::super::dead::FIRST_DEATH;
use super::super::opts::PortRange;
use super::*;
use crate::packet::FlowId;
use crate::path::{Dataplane, InterfaceId, PathInterface};

const HOUR: Duration = Duration::from_secs(3600);

/// All that a flow has around it, and the time, which the test turns on.
struct World {
    local: Local,
    dead: Mutex<DeadParts>,
    events: Events,
    now: Now,
}

impl World {
    fn new() -> World {
        let endpoint = "1-ff00:0:110,10.0.0.1:31000".parse().expect("an endpoint");
        let dispatched = Some(PortRange { first: 31_000, last: 32_767 });
        let local = Local { endpoint, mtu: 1472, dispatched, traffic_class: 0, flow: FlowId::default() };
        World { local, dead: Mutex::default(), events: Events::default(), now: Now::read() }
    }

    fn around(&self) -> Around<'_> {
        Around { local: &self.local, dead: &self.dead, events: &self.events, now: self.now }
    }

    fn pass(&mut self, time: Duration) {
        self.now.wall += time;
        self.now.mono += time;
    }

    /// A path over the interfaces `out` and `into`.
    fn path(&self, out: u16, into: u16, lasts: Duration) -> Path {
        let mut bytes = (2_u32 << 12).to_be_bytes().to_vec();
        bytes.extend([1, 0, 0, 7, 0, 0, 0, 0]);
        for (ingress, egress) in [(0, out), (into, 0)] {
            bytes.extend([0, 63]);
            bytes.extend(ingress.to_be_bytes());
            bytes.extend(egress.to_be_bytes());
            bytes.extend([9; 6]);
        }
        Path {
            source: self.local.endpoint.isd_as,
            destination: destination().isd_as,
            dataplane: Dataplane::Scion(Arc::from(bytes)),
            next_hop: Some("10.0.0.9:30042".parse().expect("an address")),
            mtu: 1400,
            interfaces: crossing(out, into),
            latency: vec![None],
            bandwidth: vec![None],
            expiry: self.now.wall + lasts,
        }
    }

    fn flow(&self, known: Vec<Path>) -> Result<Flow, RouteError> {
        Flow::looked_up(self.around(), destination(), known, Chance(0.0))
    }

    fn kill(&self, flow: &Flow, part: DeadPart) -> bool {
        self.dead.lock().expect("no panic").mark(part, self.now.mono);
        flow.died(self.around(), part)
    }
}

fn destination() -> EndpointAddr {
    "1-ff00:0:120,10.0.0.2:31001".parse().expect("an endpoint")
}

fn interface(isd_as: &str, id: u16) -> PathInterface {
    PathInterface { isd_as: isd_as.parse().expect("an AS"), id: InterfaceId(id) }
}

fn crossing(out: u16, into: u16) -> Fingerprint {
    Fingerprint::new([interface("1-ff00:0:110", out), interface("1-ff00:0:120", into)])
}

fn used(flow: &Flow) -> Fingerprint {
    flow.current().path.clone()
}

#[test]
fn only_a_path_that_starts_here_and_lasts_is_used() {
    let world = World::new();
    let good = world.path(1, 1, HOUR);
    let next_hop = |text: &str| Some(text.parse().expect("an address"));
    let bad = [
        Path { source: destination().isd_as, ..good.clone() },
        Path { next_hop: None, ..good.clone() },
        Path { next_hop: next_hop("[fd00::9]:30042"), ..good.clone() },
        Path { expiry: world.now.wall, ..good.clone() },
    ];
    let error = world.flow(bad.to_vec()).expect_err("no path").to_string();
    assert_eq!(error, "send to 1-ff00:0:120,10.0.0.2:31001: no path to 1-ff00:0:120 that starts from IPv4 and lasts");
    let with_good: Vec<Path> = bad.into_iter().chain([world.path(2, 2, HOUR)]).collect();
    assert_eq!(used(&world.flow(with_good).expect("a path")), crossing(2, 2));
}

#[test]
fn a_dead_path_gives_way_and_is_tried_again_when_its_time_is_over() {
    let mut world = World::new();
    let flow = world.flow(vec![world.path(1, 1, HOUR), world.path(2, 2, HOUR)]).expect("a path");
    let part = DeadPart::External(interface("1-ff00:0:120", 1));
    assert!(!world.kill(&flow, DeadPart::External(interface("1-ff00:0:120", 3))), "not on the path");
    assert_eq!((world.events.take(), used(&flow)), (None, crossing(1, 1)));
    assert!(world.kill(&flow, part));
    assert_eq!(used(&flow), crossing(2, 2));
    let (from, to) = (crossing(1, 1), crossing(2, 2));
    let replaced =
        Event::PathReplaced { destination: destination(), from: from.clone(), to: to.clone(), because: part };
    assert_eq!(world.events.take(), Some(replaced));
    assert_eq!(flow.due(), (Some(world.now.wall), Some(world.now.mono + FIRST_DEATH)), "asked at once, tried later");
    // The control service still offers the dead path.
    flow.ask();
    flow.answered(world.around(), vec![world.path(1, 1, HOUR), world.path(2, 2, HOUR)], Chance(0.0));
    assert_eq!(used(&flow), crossing(2, 2));
    assert!(matches!(world.events.take(), Some(Event::PathRenewed { .. })));
    world.pass(FIRST_DEATH);
    flow.reconsider(world.around());
    assert_eq!(used(&flow), crossing(1, 1));
    assert_eq!(world.events.take(), Some(Event::PathRenewed { destination: destination(), from: to, to: from }));
    assert_eq!(flow.due().1, None);
}

#[test]
fn without_another_path_the_dead_one_stays() {
    let world = World::new();
    let flow = world.flow(vec![world.path(1, 1, HOUR)]).expect("a path");
    let because = DeadPart::External(interface("1-ff00:0:110", 1));
    assert!(world.kill(&flow, because));
    let told = Event::NoOther { destination: destination(), path: crossing(1, 1), because };
    assert_eq!((world.events.take(), used(&flow)), (Some(told), crossing(1, 1)));
    assert!(flow.way(world.now.wall).is_ok());
}

#[test]
fn of_dead_paths_the_one_that_is_back_first_is_taken() {
    let mut world = World::new();
    let flow = world.flow(vec![world.path(1, 1, HOUR), world.path(2, 2, HOUR)]).expect("a path");
    assert!(world.kill(&flow, DeadPart::External(interface("1-ff00:0:110", 1))));
    world.pass(Duration::from_secs(1));
    assert!(world.kill(&flow, DeadPart::External(interface("1-ff00:0:110", 2))));
    assert_eq!(used(&flow), crossing(1, 1));
}

#[test]
fn a_renewed_path_stays_the_same_one_whatever_the_order() {
    let mut world = World::new();
    let flow = world.flow(vec![world.path(1, 1, HOUR)]).expect("a path");
    world.pass(HOUR / 2);
    flow.ask();
    flow.answered(world.around(), vec![world.path(2, 2, HOUR), world.path(1, 1, HOUR)], Chance(0.0));
    assert_eq!(used(&flow), crossing(1, 1));
    assert_eq!(flow.current().expiry, Some(world.now.wall + HOUR));
}

#[test]
fn a_path_that_is_not_renewed_is_used_until_it_expires() {
    let mut world = World::new();
    let flow = world.flow(vec![world.path(1, 1, HOUR)]).expect("a path");
    let since = world.now.wall + HOUR;
    world.pass(HOUR - Duration::from_secs(1));
    for (step, reason) in [(0, "look up paths"), (1, "no path to 1-ff00:0:120 that can be used")] {
        flow.ask();
        if step == 0 {
            flow.failed(world.around(), "look up paths".to_owned());
        } else {
            flow.answered(world.around(), Vec::new(), Chance(0.0));
        }
        let told = Event::RenewalFailed { destination: destination(), reason: reason.to_owned() };
        assert_eq!(world.events.take(), Some(told));
        assert!(flow.way(world.now.wall).is_ok());
    }
    world.pass(Duration::from_secs(1));
    match flow.way(world.now.wall) {
        Err(RouteError::Expired { since: when, .. }) => assert_eq!(when, since),
        other => panic!("{other:?}"),
    }
    flow.answered(world.around(), vec![world.path(1, 1, HOUR)], Chance(0.0));
    assert!(flow.way(world.now.wall).is_ok());
}

#[test]
fn a_lower_mtu_is_kept_for_its_path() {
    let mut world = World::new();
    let flow = world.flow(vec![world.path(1, 1, HOUR), world.path(2, 2, HOUR)]).expect("a path");
    let header = 1400 - flow.current().max_payload;
    for (mtu, news) in [(1400, false), (1500, false), (1231, false), (1300, true), (1300, false), (1350, false)] {
        assert_eq!(flow.lower_mtu(mtu, &world.events), news, "{mtu}");
    }
    assert_eq!(flow.current().max_payload, 1300 - header);
    let told = Event::MtuLowered { destination: destination(), mtu: 1300, max_payload: 1300 - header };
    assert_eq!(world.events.take(), Some(told));
    let part = DeadPart::External(interface("1-ff00:0:110", 1));
    assert!(world.kill(&flow, part));
    assert_eq!(flow.current().mtu, 1400, "the other path has its own");
    world.pass(FIRST_DEATH);
    flow.reconsider(world.around());
    assert_eq!((used(&flow), flow.current().mtu), (crossing(1, 1), 1300));
    flow.answered(world.around(), vec![world.path(1, 1, HOUR)], Chance(0.0));
    assert_eq!(flow.current().mtu, 1300, "renewed");
}

#[test]
fn inside_the_as_a_port_that_is_not_dispatched_is_reached_by_the_shim() {
    let world = World::new();
    for (host, underlay) in [("10.0.0.7:31001", "10.0.0.7:31001"), ("10.0.0.7:443", "10.0.0.7:30041")] {
        let destination = EndpointAddr::new(world.local.endpoint.isd_as, host.parse().expect("an address"));
        let flow = Flow::inside(&world.local, destination).expect("a way");
        assert_eq!(flow.current().route.remote.to_string(), underlay);
        assert_eq!((flow.due(), flow.way(world.now.wall + 1000 * HOUR).is_ok()), ((None, None), true));
    }
    let other = EndpointAddr::new(world.local.endpoint.isd_as, "[fd00::7]:31001".parse().expect("an address"));
    let error = Flow::inside(&world.local, other).expect_err("another family").to_string();
    assert!(error.contains("[fd00::7]:31001 is not reached from 10.0.0.1:31000"), "{error}");
}
