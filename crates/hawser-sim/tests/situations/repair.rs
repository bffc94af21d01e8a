//! Flows whose losses are repaired instead of retransmitted: 200 packets a second of 200 bytes.

use hawser_core::congestion::Kind;
use hawser_core::rules::{Rules, Treatment};
use hawser_core::units::{ByteCount, Time};
use hawser_sim::Act;
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::portal::Recipe;
use hawser_sim::situation::{address, second};
use hawser_sim::world::{LOCAL, REMOTE, Setup, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Mbit/s and bytes a packet.
const THIN: (f64, usize) = (0.32, 200);
/// What comes so much later than others is of no use (docs/fec.md).
const IN_TIME: Duration = Duration::from_millis(60);

/// What became of the flow.
#[derive(Debug)]
struct Outcome {
    /// The share that did not come, or came more than `IN_TIME` after it should have.
    lost: f64,
    /// The share that did not come at all.
    never: f64,
    /// Bytes that all links carried up.
    sent: u64,
    /// Packets brought back, at the far side.
    repaired: u64,
    /// Repairs for each packet at the end.
    overhead: f64,
}

/// The flow from the second second on, its losses not retransmitted.
fn thin_flow(links: &[LinkSpec], seconds: f64, fec: bool, acts: &[(f64, Act)]) -> Outcome {
    let recipes = [LOCAL, REMOTE].map(|side| Recipe::of(side, Kind::Bbr));
    let mut world = World::new(Setup { seed: 5, links: links.to_vec(), recipes, clocks: None, both_initiate: false });
    let treatment = Treatment { resend: false, fec, ..Treatment::default() };
    world.portals[LOCAL].endpoint.set_rules(Time::ZERO, Rules::new(Vec::new(), treatment));
    let ledger = Rc::<RefCell<Ledger>>::default();
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    let plan = Plan { from: second(1.0), until: second(seconds), ..Plan::steady(THIN.0, THIN.1) };
    world.add_host(LOCAL, ends[LOCAL], Source::new(plan, ends[LOCAL], ends[REMOTE], Rc::clone(&ledger)));
    world.add_host(REMOTE, ends[REMOTE], Sink(Rc::clone(&ledger)));
    for (at, act) in acts {
        world.at(second(*at), act.clone());
    }
    world.run_until(second(seconds));
    let overhead = world.portals[LOCAL].session(world.now).expect("a session").fec.overhead;
    world.run_until(second(seconds + 2.0));
    let sent = world.links.iter().map(|link| link.up.counters.sent_bytes).sum();
    let [local, remote] = [LOCAL, REMOTE].map(|side| world.portals[side].session(world.now).expect("a session"));
    assert_eq!((remote.held, local.queued, local.retransmit), (ByteCount::ZERO, ByteCount::ZERO, ByteCount::ZERO));
    let ledger = ledger.borrow();
    assert_eq!((ledger.corrupt, ledger.duplicates), (0, 0), "what comes back is what was sent, once");
    let usual = ledger.delay_quantile(second(0.0), second(seconds), 0.1);
    let in_time = ledger.arrivals.iter().filter(|arrival| arrival.delay <= usual + IN_TIME).count();
    let lost = 1.0 - in_time as f64 / ledger.sent() as f64;
    Outcome { lost, never: 1.0 - ledger.delivered(), sent, repaired: remote.fec.repaired, overhead }
}

fn lossy(share: f64) -> LinkSpec {
    link(20.0, 20.0).loss(share)
}

#[test]
fn five_per_cent_lost_on_one_link_becomes_less_than_a_half_for_less_than_thirty_per_cent_more_bytes() {
    let plain = thin_flow(&[lossy(0.05)], 61.0, false, &[]);
    let repaired = thin_flow(&[lossy(0.05)], 61.0, true, &[]);
    println!("{plain:?}\n{repaired:?}");
    assert!((0.04..0.06).contains(&plain.lost) && plain.never == plain.lost, "nothing is retransmitted: {plain:?}");
    assert!(repaired.lost < 0.005 && repaired.repaired > 400, "{repaired:?}");
    assert!(repaired.sent as f64 <= plain.sent as f64 * 1.3, "{} and {} bytes", repaired.sent, plain.sent);
}

#[test]
fn repairs_go_by_the_link_that_their_packets_did_not_take() {
    let links = [lossy(0.05), lossy(0.05)];
    let repaired = thin_flow(&links, 61.0, true, &[]);
    assert!(repaired.lost < 0.005 && repaired.repaired > 400, "{repaired:?}");
    let near_and_far = [lossy(0.05), link(20.0, 200.0)];
    let repaired = thin_flow(&near_and_far, 61.0, true, &[]);
    assert!(repaired.lost < 0.005, "but not by one that brings them too late: {repaired:?}");
}

#[test]
fn where_nothing_is_lost_nothing_is_sent_for_it() {
    let repaired = thin_flow(&[lossy(0.0)], 31.0, true, &[]);
    let plain = thin_flow(&[lossy(0.0)], 31.0, false, &[]);
    println!("{plain:?}\n{repaired:?}");
    assert_eq!((repaired.overhead, repaired.repaired), (0.0, 0));
    assert!(repaired.sent as f64 <= plain.sent as f64 * 1.05, "{} and {} bytes", repaired.sent, plain.sent);
}

#[test]
fn repairs_begin_with_loss_and_end_with_it() {
    let acts = [(10.0, Act::Loss(0, 0.05)), (40.0, Act::Loss(0, 0.0))];
    let during = thin_flow(&[lossy(0.0)], 39.0, true, &acts);
    assert_eq!(during.overhead, 0.25, "{during:?}");
    assert!(during.lost < 0.005, "the first losses are lost, the rest is not: {during:?}");
    let after = thin_flow(&[lossy(0.0)], 75.0, true, &acts);
    assert_eq!(after.overhead, 0.0, "{after:?}");
}
