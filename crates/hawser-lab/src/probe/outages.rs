//! Outages of one link of two, with processes: when both portals have its path active again, and what they send on it
//! meanwhile.
//!
//! 1. Outages are drawn seed after seed, by the simulator's own generator: what is measured here can be looked at there
//!    (`cargo run --release -p hawser-sim --example outages -- --seed SEED --cases 1`). A case's `x` is its seed; a
//!    repetition adds ten.
//! 2. The link keeps what it holds (its rate is zero) or loses it (a black hole), idle or beside a stream of the
//!    kernel's TCP.
//! 3. Both portals are asked every 20 ms. Their answers are up to 200 ms old, so a return is told that much late at
//!    most, and what is sent counts as an inactive path's where the path was inactive that long before and after.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use hawser_sim::outage::Outage;
use hawser_wire::traffic::Towards;
use hawser_wire::{Direction, EmulatedLink, Moment, Trace, Way};

use super::{Asked, Findings, LabError, SEEDS};
use crate::portals::{Portals, active};
use crate::scenario::{LinkPlan, draw};
use crate::topology::{Bond, Over};

/// Outages a repetition: as many as the scenario has cases, which shows both kinds, idle and loaded, several times.
const OUTAGES: u64 = 10;
/// From one look to the next.
const GLANCE: Duration = Duration::from_millis(20);
/// How old an answer of a portal may be, and two looks. Source: the portal reports to its control side five times a
/// second.
const STALE: Duration = Duration::from_millis(240);
/// It is looked at for so long after the return.
const AFTER: Duration = Duration::from_secs(6);
/// Longer than any outage: how long a link that keeps holds back.
const HELD: Duration = Duration::from_secs(60);
/// From the moment that looking begins to the earliest outage: paths are active and the stream, if there is one,
/// begins.
const LEAD: Duration = Duration::from_millis(500);

/// What was seen at one moment. Plain data.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Duration,
    /// Whether each portal has both paths active; none while it does not answer.
    active: [Option<bool>; 2],
    /// Bytes that each portal has handed to the link so far.
    handed: [u64; 2],
}

/// An outage of this seed.
pub(super) fn suffer(asked: &Asked) -> Result<Findings, LabError> {
    let outage = Outage::draw(asked.x.max(0.0) as u64 + u64::from(asked.run) * OUTAGES);
    tracing::info!(%outage, "outage begins");
    Ok(judged(&outage, &looked(asked, &outage)?))
}

/// Step 2.
fn looked(asked: &Asked, outage: &Outage) -> Result<Vec<Look>, LabError> {
    let seeds = (outage.seed * SEEDS..).step_by(2);
    let plan = |(link, seed)| {
        let LinkPlan { up, down, .. } = draw::plan("link", link);
        [Direction { seed, ..up }, Direction { seed: seed + 1, ..down }]
    };
    let bond = Bond::new(&outage.links.iter().zip(seeds).map(plan).collect::<Vec<_>>())?;
    let portals = Portals::start(&asked.program, &bond, &asked.traffic)?;
    let link = &bond.links[outage.away()];
    let [.., whole] = times(outage);
    let towards = outage.load.ways().iter().map(|(_, down)| if *down { Towards::Client } else { Towards::Server });
    let start = Moment::now();
    let starting = towards.map(|towards| bond.transfer(towards, Over::Tunnel, whole).start());
    let transfers = starting.collect::<Result<Vec<_>, _>>()?;
    let looks = thread::scope(|scope| {
        let looking = scope.spawn(|| look(&portals, link, start, whole));
        let suffered = away(link, outage, start);
        let looks = looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        suffered.map(|()| looks)
    })?;
    // A stream that broke is none of this case's figures.
    for error in transfers.into_iter().filter_map(|transfer| transfer.finish().err()) {
        tracing::info!(%error, seed = outage.seed, "stream beside an outage ended early");
    }
    Ok(looks)
}

/// The link goes, and returns.
fn away(link: &EmulatedLink, outage: &Outage, start: Moment) -> Result<(), LabError> {
    let rates = Way::BOTH.map(|way| link.settings(way).rate);
    let [begin, back, _] = times(outage).map(|time| start + time);
    begin.sleep_until();
    if !outage.keeps {
        link.black_hole(true)?;
        back.sleep_until();
        return Ok(link.black_hole(false)?);
    }
    let silence = Trace::rates(HELD, &[0.0, 1.0]);
    let silence = silence.map_err(|error| LabError::system("make a trace", std::io::Error::other(error)))?;
    for way in Way::BOTH {
        link.set(way, |way| (way.rate, way.trace) = (None, Some(silence.clone())))?;
    }
    back.sleep_until();
    for (way, rate) in Way::BOTH.into_iter().zip(rates) {
        link.set(way, |way| (way.rate, way.trace) = (rate, None))?;
    }
    Ok(())
}

/// When the link goes, when it returns, and until when it is looked at.
fn times(outage: &Outage) -> [Duration; 3] {
    let begin = LEAD + Duration::from_secs_f64(outage.begin);
    let back = begin + Duration::from_secs_f64(outage.lasts);
    [begin, back, back + AFTER]
}

/// Step 3.
fn look(portals: &Portals, link: &EmulatedLink, start: Moment, whole: Duration) -> Vec<Look> {
    let mut looks = Vec::new();
    let mut next = start;
    while next < start + whole {
        next.sleep_until();
        let active = portals.statuses().map(|status| status.map(|status| active(&status).count() == 2));
        let handed = Way::BOTH.map(|way| link.counters(way).bytes_in);
        looks.push(Look { at: Moment::now() - start, active, handed });
        next = Moment::now().max(next + GLANCE);
    }
    looks
}

/// What an outage's looks say.
fn judged(outage: &Outage, looks: &[Look]) -> Findings {
    let [_, returned, _] = times(outage);
    let is_back = |look: &&Look| look.at >= returned && look.active == [Some(true); 2];
    let back = looks.iter().find(is_back).map_or(AFTER.as_secs_f64(), |look| (look.at - returned).as_secs_f64());
    let [local, remote] = [0, 1].map(|end| loudest(looks, end));
    Findings::named([("back_s", back), ("inactive_bits", local.max(remote))])
}

/// The most bits in a second that a portal sent on the path while it was not active.
fn loudest(looks: &[Look], end: usize) -> f64 {
    let is_inactive = |at: Duration| {
        let mut around = looks.iter().filter(|look| look.at + STALE >= at && look.at <= at + STALE);
        around.all(|look| look.active[end] == Some(false))
    };
    let (mut second, mut bytes, mut most) = (VecDeque::new(), 0_u64, 0_u64);
    for pair in looks.windows(2) {
        let (at, sent) = (pair[1].at, pair[1].handed[end] - pair[0].handed[end]);
        if sent > 0 && is_inactive(at) {
            second.push_back((at, sent));
            bytes += sent;
        }
        while let Some((_, old)) = second.pop_front_if(|(then, _)| *then + Duration::from_secs(1) <= at) {
            bytes -= old;
        }
        most = most.max(bytes);
    }
    most as f64 * 8.0
}

#[cfg(test)]
mod tests {
    use hawser_sim::outage::Load;

    use super::*;

    /// Looks every 20 ms of 8 s: whether both ends have the path active, and the bytes that the local one has sent.
    fn looks(active: impl Fn(u64) -> bool, handed: impl Fn(u64) -> u64) -> Vec<Look> {
        let look =
            |at: u64| Look { at: Duration::from_millis(at), active: [Some(active(at)); 2], handed: [handed(at), 0] };
        (0..8000).step_by(20).map(look).collect()
    }

    #[test]
    fn only_what_was_sent_amid_an_inactive_time_counts() {
        let inactive = |at: u64| (2000..5000).contains(&at);
        // 100 bytes in each look: 50 of them a second, 40,000 bits.
        let all = looks(|at| !inactive(at), |at| at * 5);
        assert_eq!(loudest(&all, 0), 40_000.0);
        assert_eq!(loudest(&all, 1), 0.0);
        // One packet while active, one as the state changes, one amid the outage.
        let sent = |at| u64::from(at >= 1000) * 1500 + u64::from(at >= 2100) * 1500 + u64::from(at >= 3000) * 1200;
        assert_eq!(loudest(&looks(|at| !inactive(at), sent), 0), 9_600.0);
    }

    #[test]
    fn a_return_is_when_both_have_the_path_again() {
        let outage = Outage { begin: 0.5, lasts: 1.0, ..Outage::draw(1) };
        let back = |at_ms: u64| judged(&outage, &looks(|at| !(1200..at_ms).contains(&at), |_| 0)).metrics["back_s"];
        assert!((back(2500) - 0.5).abs() < 1e-9, "{}", back(2500));
        assert_eq!(back(9000), AFTER.as_secs_f64(), "not within the time");
    }

    #[test]
    fn ten_outages_are_of_every_kind() {
        let drawn: Vec<Outage> = (0..OUTAGES).map(Outage::draw).collect();
        for keeps in [true, false] {
            assert!(drawn.iter().any(|outage| outage.keeps == keeps));
        }
        assert!(drawn.iter().any(|outage| outage.load == Load::Idle) && drawn.iter().any(|one| one.load != Load::Idle));
    }
}
