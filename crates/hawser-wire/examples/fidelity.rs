//! How true the emulated links are to what they are told, from 1 to 500 Mbit/s; exit status 1 beyond a bound (root; 40
//! s).
//!
//! cargo run --release -p hawser-wire --example fidelity [SEED]

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use hawser_wire::Spread;
use hawser_wire::fidelity::{DELAY_BOUND_MS, RATE_BOUND, RATES_MBIT, of_jitter, of_rate, of_tcp};

/// How long each rate is measured, twice: with more than it carries, and with less.
const EACH: Duration = Duration::from_secs(2);
/// A link alone, one way, and how much of what it could bring a stream must have.
const ALONE_MBIT: f64 = 1000.0;
const ALONE_FOR: Duration = Duration::from_secs(3);
const ALONE_FILLED: f64 = 0.97;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(0), |word| word.parse())?;
    let mut is_true = true;
    let mut tell = |what: String, holds: bool| {
        println!("{what}: {}", if holds { "ok" } else { "MISSED" });
        is_true &= holds;
    };
    println!("bounds: rate {} %, delay {DELAY_BOUND_MS} ms, 99.9 % of the binomial", RATE_BOUND * 100.0);
    for mbit in RATES_MBIT {
        let found = of_rate(mbit, EACH, seed)?;
        let (rate, delay) = (found.rate_error * 100.0, found.delay_error_ms);
        let (least, most) = found.allowed;
        let lost = format!("{} of {} lost (allowed {least} to {most})", found.lost, found.sent);
        tell(format!("{mbit} Mbit/s: rate {rate:+.3} %, delay {delay:+.3} ms, {lost}"), found.is_true());
    }
    for spread in [Spread::Uniform, Spread::Normal] {
        let found = of_jitter(spread, seed)?;
        let (distance, critical) = (found.distance, found.critical);
        tell(format!("{spread:?} jitter: distance {distance:.4} (at most {critical:.4})"), found.is_true());
    }
    let filled = of_tcp(ALONE_MBIT, ALONE_FOR)?;
    tell(format!("1 Gbit/s, one TCP stream: {filled:.3} filled (at least {ALONE_FILLED})"), filled >= ALONE_FILLED);
    Ok(if is_true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
