//! What one more thread brings the core: the same traffic sealed and opened by one thread, and by two.
//!
//! 1. Two portals in one process speak over links without delay. A generator writes trains or packets into the core's
//!    read buffer; no TUN device, no socket. Time is virtual.
//! 2. Their work is timed apart: `out` is all that the sender does, from a packet that was read to datagrams that can
//!    be sent, acknowledgements included; `in` all that the receiver does, to packets that can be written. What the
//!    generator and the wire do (copies of bytes) is not.
//! 3. Each case runs with one thread as portals do it, with one thread and its AEAD timed by itself, and with workers;
//!    in turns, as often as asked. All that was sent must have arrived, in order.
//! 4. Printed are ns of wall time for each packet, Gbit/s of inner packets, processor seconds for each GB, and what
//!    Amdahl's law with these parts allows (a thread with nothing else to do works on what waits).
//!
//!     threads [THREADS] [RUNS] [MILLISECONDS OF EACH] [JSON FILE]

#[path = "threads/case.rs"]
mod case;
#[path = "threads/sums.rs"]
mod sums;
#[path = "../../hawser-core/tests/support/mod.rs"]
#[allow(unused, reason = "shared by tests and benchmarks")]
mod support;
#[path = "threads/traffic.rs"]
mod traffic;

use std::error::Error;
use std::time::Duration;

use case::Case;
use hawser_net::workers::Workers;
use serde_json::{Value, json};
use sums::Sums;
use traffic::{How, Traffic};

/// Packets as hosts send them: bytes of each, and how many the host's kernel joins to a train.
const CASES: [Case; 4] = [
    Case { name: "trains of 1400", bytes: 1_400, train: 44 },
    Case { name: "packets of 1400", bytes: 1_400, train: 1 },
    Case { name: "trains of 100", bytes: 100, train: 44 },
    Case { name: "packets of 100", bytes: 100, train: 1 },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().map_or(Ok(default), |text| text.parse());
    let (threads, runs, millis) = (number(2)? as usize, number(5)?, number(300)?);
    let file = std::env::args().nth(4);
    let mut workers = Workers::start(threads.saturating_sub(1))?;
    let mut told = Vec::new();
    println!(
        "{:15} {:3}  {:>9} {:>9} {:>6}  {:>6} {:>6} {:>6}  {:>5}",
        "", "", "1: Gbit/s", "2: Gbit/s", "times", "s/GB 1", "s/GB 2", "serial", "bound"
    );
    for case in CASES {
        let mut sums: [Vec<[Sums; 2]>; 3] = Default::default();
        for run in 0..runs {
            // Who comes first changes.
            for turn in 0..3 {
                let which = ((turn + run) % 3) as usize;
                let mut how = match which {
                    0 => How::Alone,
                    1 => How::Apart,
                    _ => How::With(&mut workers),
                };
                sums[which].push(Traffic::new(case).run(&mut how, Duration::from_millis(millis)));
            }
        }
        for (place, direction) in ["out", "in"].into_iter().enumerate() {
            let [one, apart, two] = sums.each_ref().map(|runs| runs.iter().map(|run| run[place]).collect::<Vec<_>>());
            told.push(tell(case, direction, threads, &one, &apart, &two));
        }
    }
    if let Some(file) = file {
        std::fs::write(file, serde_json::to_string_pretty(&json!({ "threads": threads, "cases": told }))? + "\n")?;
    }
    Ok(())
}

/// Prints a line, and gives all figures of all runs.
fn tell(case: Case, direction: &str, threads: usize, one: &[Sums], apart: &[Sums], two: &[Sums]) -> Value {
    let of = |runs: &[Sums], figure: fn(&Sums) -> f64| median(runs.iter().map(figure));
    let times: Vec<f64> = one.iter().zip(two).map(|(one, two)| one.wall() / two.wall()).collect();
    let (serial, parallel) = (of(apart, Sums::serial), of(apart, Sums::parallel));
    let bound = (serial + parallel) / serial.max((serial + parallel) / threads as f64);
    let gbits = |wall: f64| 8.0 * case.bytes as f64 / wall;
    println!(
        "{:15} {direction:3}  {:9.2} {:9.2} {:6.2}  {:6.3} {:6.3} {:6.2}  {bound:5.2}",
        case.name,
        gbits(of(one, Sums::wall)),
        gbits(of(two, Sums::wall)),
        median(times.iter().copied()),
        of(one, Sums::processor) / case.bytes as f64,
        of(two, Sums::processor) / case.bytes as f64,
        serial / (serial + parallel),
    );
    let all = |runs: &[Sums], figure: fn(&Sums) -> f64| runs.iter().map(figure).map(rounded).collect::<Vec<_>>();
    json!({
        "case": case.name, "direction": direction,
        "one": { "wall_ns": all(one, Sums::wall), "processor_ns": all(one, Sums::processor) },
        "more": { "wall_ns": all(two, Sums::wall), "processor_ns": all(two, Sums::processor) },
        "parts": { "serial_ns": all(apart, Sums::serial), "parallel_ns": all(apart, Sums::parallel) },
        "times": times.into_iter().map(rounded).collect::<Vec<_>>(), "bound": rounded(bound),
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
