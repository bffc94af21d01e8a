//! A silent cut and its return are on the page within two seconds, in the right words, and nothing is asked of anybody
//! else.

use std::time::Duration;

use rustix::process::Signal;

use crate::stage::{SEEN_WITHIN, Stage};

/// The cut is timed from when packets begin to vanish; on CI's busy processors reports, events and the browser wait for
/// each other.
const MARGIN: Duration = Duration::from_secs(2);

#[test]
fn a_silent_cut_and_its_return_are_seen() {
    let mut stage = Stage::new("page", |_| {});
    stage.wait_for_verdict("All is well");
    let transfer = stage.transfer(Duration::from_secs(8));
    stage.wait("traffic", "parseFloat(document.getElementById('total-tx').textContent) > 10");

    stage.links[1].black_hole(true).expect("it goes silent");
    let cut = stage.wait_for_verdict("two is cut");
    stage.wait_for_event("two is cut");
    assert!(stage.text().contains("one carries everything."), "{}", stage.text());
    stage.links[1].black_hole(false).expect("it is back");
    let back = stage.wait_for_event("two is back");
    stage.wait_for_verdict("All is well");
    transfer.finish().expect("a stream");
    println!("seen: cut after {cut:?}, back after {back:?}");
    assert!(cut < SEEN_WITHIN + MARGIN && back < SEEN_WITHIN + MARGIN, "cut {cut:?}, back {back:?}");

    let asked = stage.browser.requests.clone();
    let others: Vec<_> = asked.iter().filter(|url| !url.starts_with("http://127.0.0.1:4921/")).collect();
    assert!(others.iter().all(|url| *url == "about:blank") && !asked.is_empty(), "{others:?}");
}

#[test]
fn a_portal_that_says_nothing_any_more_is_not_well_and_one_that_speaks_again_is() {
    let mut stage = Stage::new("silent", |_| {});
    stage.wait_for_verdict("All is well");
    // Its connections stay: nothing but silence tells.
    stage.local.signal(Signal::STOP);
    let lost = stage.wait("the page to be lost", "document.getElementById('live').dataset.is === 'lost'");
    stage.local.signal(Signal::CONT);
    stage.wait("the page to be live", "document.getElementById('live').dataset.is === 'live'");
    assert!(lost < Duration::from_secs(5) + MARGIN, "{lost:?}");
}
