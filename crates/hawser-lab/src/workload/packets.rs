//! As many small packets as are carried: ever more datagrams, until one in a hundred is lost.
//!
//! 1. The rate doubles as long as nearly all arrive; then the last step is halved a few times.
//! 2. What arrived in a second at the best rate is found. The search takes its own time, some ten seconds.

use std::time::Duration;

use hawser_wire::Rate;
use hawser_wire::traffic::UdpFlow;

use super::{Findings, Ground, LabError, Options, When, Workload};

/// UDP payload unless told, in bytes.
const PAYLOAD: u64 = 100;
/// The first rate, in thousands a second, and how often the last step is halved.
const FIRST_KPPS: f64 = 25.0;
const HALVINGS: usize = 3;
/// How long a rate is tried, and how long the last datagrams may take.
const TRIAL: Duration = Duration::from_secs(1);
const LINGER: Duration = Duration::from_millis(150);
/// What may be lost.
const MOST_LOST: f64 = 0.01;
/// A sender that falls behind this share of the rate is at its own end.
const LEAST_SENT: f64 = 0.9;
/// Where datagrams arrive.
const PORT: u16 = 5002;

/// Steps 1 and 2.
pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
    let bytes = options.bytes("packet")?.unwrap_or(PAYLOAD);
    let payload = usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(Box::new(move |ground| {
        Ok(Box::new(move |when: When| {
            when.start.sleep_until();
            let best = most(|kpps| trial(ground, payload, kpps))?;
            Ok(Findings::named([("most_kpps", best)]))
        }))
    }))
}

/// What arrived, in thousands a second; none where more than a little was lost, or the sender could not send as much.
fn trial(ground: Ground<'_>, payload: usize, kpps: f64) -> Result<Option<f64>, LabError> {
    let bits = (payload + super::voip::ip_and_udp(ground)) as f64 * 8.0;
    let flow = UdpFlow {
        from: ground.client.clone(),
        to: ground.server.clone(),
        destination: (ground.ends.server, PORT).into(),
        payload,
        rate: Rate::mbit(kpps * bits / 1e3),
        duration: TRIAL,
        linger: LINGER,
    };
    let got = flow.run()?;
    let received = got.received_rate().unwrap_or(0.0) / bits / 1e3;
    let lost = got.lost() as f64 / got.sent.max(1) as f64;
    Ok((lost <= MOST_LOST && received >= kpps * LEAST_SENT).then_some(received))
}

/// Step 1.
fn most(mut trial: impl FnMut(f64) -> Result<Option<f64>, LabError>) -> Result<f64, LabError> {
    let (mut best, mut good, mut bad) = (0.0, 0.0, FIRST_KPPS);
    while let Some(received) = trial(bad)? {
        (best, good, bad) = (received, bad, bad * 2.0);
    }
    for _ in 0..HALVINGS {
        let middle = (good + bad) / 2.0;
        match trial(middle)? {
            Some(received) => (best, good) = (received, middle),
            None => bad = middle,
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_found_between_what_was_carried_and_what_was_not() {
        // What is carried, what is found: halved thrice below the first rate, and between 50 and 100.
        for (carried, expected) in [(10.0, 9.375), (80.0, 75.0), (99.0, 93.75), (20.0, 18.75)] {
            let found = most(|kpps| Ok((kpps <= carried).then_some(kpps)));
            assert_eq!(found.expect("no trial fails"), expected, "{carried}");
        }
    }
}
