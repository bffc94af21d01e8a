//! Sparse flows: calls both ways, idle and beside a download.
//!
//! 1. [`run`] lets calls go on over a stage: packets of 200 bytes, each call 50 a second in each direction.
//! 2. [`judge`] does so on the bond, idle and beside a download, and on the best link idle.

use super::{FROM, Network, Question, Stage, put_transfers};
use crate::host::flow::{Demand, Ledger, Plan, Sink, Source};
use crate::net::spec::mbit_rate;
use crate::situation::{address, second};
use crate::tcp::Transfer;
use crate::world::{LOCAL, REMOTE};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// A call: bytes of a packet, Mbit/s each way of 50 of them a second.
const SIZE: usize = 200;
const CALL: f64 = 200.0 * 8.0 * 50.0 / 1e6;
/// The number of calls, unless they are more than this share of a direction.
const CALLS: f64 = 20.0;
const MOST: f64 = 0.1;
/// Calls begin at this second, and are listened to for this time after their end, s.
const BEGIN: f64 = 3.0;
const AFTER: f64 = 2.0;
/// What comes so much later than it does at rest is of no use.
const LATE: Duration = Duration::from_millis(100);

/// How calls fared, both directions together. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Calls {
    /// The delay of half of the packets that came, ms.
    pub median: f64,
    /// Of 99 of a hundred.
    pub late: f64,
    /// The share of packets that never came.
    pub lost: f64,
    /// The share that never came or too late: 100 ms later than the median at rest.
    pub useless: f64,
}

/// Idle and beside a download. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Verdict {
    /// Nothing beside it.
    pub idle: Calls,
    /// A download beside it.
    pub loaded: Calls,
}

/// Step 1. `rest`: the median delay at rest of each direction, ms; unknown: this run's own.
pub fn run<S: Stage>(
    mut stage: S,
    network: &Network,
    question: Question,
    loaded: bool,
    rest: Option<[f64; 2]>,
) -> (Calls, [f64; 2]) {
    if loaded {
        let plan = Transfer::bulk(second(FROM), second(network.seconds));
        put_transfers(&mut stage, question, 10, &[plan], network.seed);
    }
    let calls = number(network);
    let ledgers = [LOCAL, REMOTE].map(|from| put_calls(&mut stage, from, calls, network.seconds));
    stage.pass(second(network.seconds + AFTER));
    let medians = [0, 1].map(|way| millis(ledgers[way].borrow().delay_quantile(second(0.0), second(1e6), 0.5)));
    let rest = rest.unwrap_or(medians);
    let (mut delays, mut sent, mut useful) = (Vec::new(), 0, 0);
    for (ledger, rest) in ledgers.iter().zip(rest) {
        let ledger = ledger.borrow();
        assert_eq!((ledger.corrupt, ledger.duplicates), (0, 0), "{}: calls are not as they were sent", network.name);
        sent += ledger.sent();
        let over = ledger.arrivals.iter().map(|arrival| millis(arrival.delay) - rest);
        useful += over.clone().filter(|over| *over <= millis(LATE)).count();
        delays.extend(over);
    }
    let share = |came: usize| 1.0 - came as f64 / sent.max(1) as f64;
    let quantile = |share| super::quantile(&delays, share);
    (Calls { median: quantile(0.5), late: quantile(0.99), lost: share(delays.len()), useless: share(useful) }, rest)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The number of calls that take little of either direction.
fn number(network: &Network) -> u16 {
    let carried = |down: bool| -> f64 {
        let question = Question { congestion: Default::default(), down };
        network.capacity(question)
    };
    let least = carried(true).min(carried(false));
    (least * MOST / CALL).clamp(1.0, CALLS) as u16
}

fn put_calls<S: Stage>(stage: &mut S, from: usize, calls: u16, until: f64) -> Rc<RefCell<Ledger>> {
    let ledger = Rc::<RefCell<Ledger>>::default();
    let ends = [address(from, 14 + from as u8), address(1 - from, 14 + from as u8)];
    let demand = Demand::Pace(mbit_rate(CALL * f64::from(calls)));
    let plan = Plan { demand, flows: calls, from: second(BEGIN), until: second(until), size: SIZE, train: 0 };
    stage.put(from, ends[0], Source::new(plan, ends[0], ends[1], Rc::clone(&ledger)));
    stage.put(1 - from, ends[1], Sink(Rc::clone(&ledger)));
    ledger
}

/// Step 2.
pub fn judge(network: &Network, question: Question) -> Verdict {
    let (idle, rest) = run(network.bond(), network, question, false, None);
    let (loaded, _) = run(network.bond(), network, question, true, Some(rest));
    Verdict { idle, loaded }
}
