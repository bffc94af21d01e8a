//! Two days of the simulated year, in as many seconds as CI has. `--example year` runs the whole of it.

#[path = "hostile/memory.rs"]
mod memory;

use hawser_sim::year::kind::KINDS;
use hawser_sim::year::report::Report;
use hawser_sim::year::{Plan, run};

fn days(seed: u64, days: u64) -> Report {
    run(Plan { seed, days }, &memory::live, &mut |_| {})
}

#[test]
fn two_days_of_faults_lose_nothing_that_is_not_counted_and_a_whole_line_is_always_used() {
    let report = days(4, 2);
    // What does nothing finds nothing.
    assert!(report.faults() > 400, "{} faults", report.faults());
    let kinds = report.kinds.iter().filter(|kind| kind.faults > 0).count();
    assert!(kinds > 30, "{kinds} of {} kinds", KINDS.len());
    assert!(report.looks > 500 && report.rests > 200, "{} looks, {} rests", report.looks, report.rests);
    let [local, remote] = report.packets;
    assert!(local.came > 50_000 && remote.came > 50_000, "{local:?}, {remote:?}");
    assert!(report.hostile > 1_000, "{} hostile datagrams", report.hostile);
    // Pages come whole and at once: what lines that are worn on purpose have no room for waits in the ingress queue,
    // and is dropped there. What no path delivered is less than a packet in a thousand.
    let queue = |reason: &str| ["queue_full", "too_old", "no_session"].contains(&reason);
    let waited = report.drops.iter().flatten().filter(|(reason, _)| queue(reason)).map(|(_, count)| count).sum::<u64>();
    let (lost, given) = (local.lost + remote.lost, local.given + remote.given);
    let forgotten = local.forgotten + remote.forgotten;
    assert!((lost + forgotten - waited) * 1_000 < given, "{local:?}, {remote:?}, {waited} dropped as they waited");
}

#[test]
fn the_same_seed_is_the_same_night() {
    // Bytes that live on the heap are those of all tests of a thread.
    let night = |seed| Report { memory: Vec::new(), ..days(seed, 1) };
    assert_eq!(night(5), night(5));
}
