//! How true an emulated link is to what it was told: measured from outside, with packets of the kernel's own stack.
//!
//! 1. `of_rate`: a link of a rate gets more than it carries: what arrives is its rate.
//! 2. Then half of what it carries, some of it to be lost: what arrives has its delay, what does not its loss.
//! 3. `of_tcp`: the same of one stream of the kernel's TCP, one way.
//! 4. `of_jitter`: packets of a link that only delays, each by a draw of its own: their delays are held against the
//!    distribution that was told.
//!
//! `make measure CASE=fidelity` (examples/fidelity.rs) tells the figures; the tests of this crate hold a short form of
//! them against the bounds.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use crate::clock::keep_time;
use crate::emulate::{Direction, EmulatedLink, Jitter, LinkSpec, Loss, Probability, Rate, Spread};
use crate::error::WireError;
use crate::namespace::Namespace;
use crate::netlink::End;
use crate::traffic::{Congestion, TcpTransfer, UdpFlow, UdpReport};

/// Rates that are judged, in Mbit/s.
pub const RATES_MBIT: [f64; 6] = [1.0, 10.0, 50.0, 100.0, 200.0, 500.0];
/// How far off a rate may be, as a share, and a delay, in milliseconds.
pub const RATE_BOUND: f64 = 0.01;
/// See [`RATE_BOUND`].
pub const DELAY_BOUND_MS: f64 = 0.5;
/// Draws of a jitter.
pub const JITTER_DRAWS: usize = 1000;

/// What each link is told: one way's delay, what waits before its rate, and its loss.
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(100);
const LOSS: f64 = 0.02;
/// How much more than it carries the link gets, and how much less.
const MORE: f64 = 1.1;
const LESS: f64 = 0.5;
/// UDP payload of a packet of 1500 bytes, and of one of 100: a slow link shall get enough packets for its loss to be
/// judged.
const FULL: usize = 1500 - UDP_HEADERS;
const SMALL: usize = 100 - UDP_HEADERS;
/// IPv4 and UDP. Source: RFC 791, RFC 768.
const UDP_HEADERS: usize = 28;
/// From this rate on packets are full, in Mbit/s.
const FAST: f64 = 50.0;
/// TCP's share of a packet of 1500 bytes with timestamps. Source: RFC 793, RFC 7323.
const TCP_SHARE: f64 = 1448.0 / 1500.0;
/// One way's delay beneath a stream, and what of its start is not counted.
const SHORT_DELAY: Duration = Duration::from_millis(2);
const WARM_UP: Duration = Duration::from_secs(1);
/// A jitter's amplitude, the delay beneath, and its packets' rate: 500 a second, so that nothing else delays them.
const AMPLITUDE: Duration = Duration::from_millis(10);
const BENEATH: Duration = Duration::from_millis(40);
const JITTER_MBIT: f64 = 0.4;
const JITTER_INTERVAL: Duration = Duration::from_millis(2);
/// How long receivers wait for stragglers.
const LINGER: Duration = Duration::from_millis(200);
/// Chance may be unlucky once in a thousand, at both sides of a loss together.
const UNLUCKY: f64 = 0.001;
/// Kolmogorov's critical distance, times √n, at a level of 1 %. Source: F. J. Massey, JASA 46 (1951).
const KOLMOGOROV: f64 = 1.628;
/// Where a normal jitter is cut, in standard deviations. See [`Spread::Normal`].
const NORMAL_CUT: f64 = 3.0;
/// Where the packets go.
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const PORT: u16 = 9000;

/// What was found on a link of a rate. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfRate {
    /// Told, in Mbit/s.
    pub mbit: f64,
    /// Received over told, less one.
    pub rate_error: f64,
    /// Median one-way time, less what was told and the packet's time at the rate; in milliseconds.
    pub delay_error_ms: f64,
    /// The same of the packet that 95 of 100 were faster than.
    pub delay_error_p95_ms: f64,
    /// And of the one that 5 of 100 were faster than.
    pub delay_error_p5_ms: f64,
    /// Packets sent to be lost or not.
    pub sent: u64,
    /// Those lost.
    pub lost: u64,
    /// As many as chance allows (99.9 %) of this many, at least and at most.
    pub allowed: (u64, u64),
}

impl OfRate {
    /// Whether all of it is within bounds.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.rate_error.abs() <= RATE_BOUND
            && self.delay_error_ms.abs() <= DELAY_BOUND_MS
            && (self.allowed.0..=self.allowed.1).contains(&self.lost)
    }
}

/// What was found of a jitter. Plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfJitter {
    /// Kolmogorov's and Smirnov's: the most by which the share of delays up to a value differs from what was told.
    pub distance: f64,
    /// What a true jitter stays under in 99 of 100 cases.
    pub critical: f64,
}

impl OfJitter {
    /// Whether it may be what was told.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.distance <= self.critical
    }
}

/// Steps 1 and 2, each for so long.
///
/// # Errors
/// Where a link cannot be made (needs root), or nothing arrives.
pub fn of_rate(mbit: f64, each: Duration, seed: u64) -> Result<OfRate, WireError> {
    let rate = Direction { seed, ..Direction::shaped(mbit, DELAY, QUEUE) };
    let full = over(&rate)?.flow(mbit * MORE, FULL, each)?;
    let received = full.received_rate().ok_or_else(nothing)?;

    let loss = Loss::Random(Probability::new(LOSS).unwrap_or_default());
    let payload = if mbit < FAST { SMALL } else { FULL };
    let half = over(&Direction { loss, ..rate })?.flow(mbit * LESS, payload, each)?;
    let told = DELAY + Duration::from_nanos(Rate::mbit(mbit).time_of(half.packet_bytes));
    let late = |percentile| Some(half.delays().percentile(percentile)? - told.as_secs_f64() * 1e3);
    Ok(OfRate {
        mbit,
        rate_error: received / (mbit * 1e6) - 1.0,
        delay_error_ms: late(50.0).ok_or_else(nothing)?,
        delay_error_p95_ms: late(95.0).ok_or_else(nothing)?,
        delay_error_p5_ms: late(5.0).ok_or_else(nothing)?,
        sent: half.sent,
        lost: half.lost(),
        allowed: binomial(half.sent, LOSS, UNLUCKY),
    })
}

/// Step 3: what the receiver of one CUBIC stream got, over what the link could have brought it; counted from the
/// stream's second second on.
///
/// # Errors
/// As [`of_rate`], or where the stream breaks.
pub fn of_tcp(mbit: f64, counted: Duration) -> Result<f64, WireError> {
    let line = over(&Direction::shaped(mbit, SHORT_DELAY, DELAY))?;
    let transfer = TcpTransfer {
        from: line.from.clone(),
        to: line.to.clone(),
        destination: receiver(),
        source: None,
        congestion: Congestion::Cubic,
        duration: WARM_UP + counted,
    };
    // Its threads are instruments: they inherit the priority of the one that starts them.
    let measure = || {
        keep_time();
        transfer.run()
    };
    let got =
        thread::scope(|scope| scope.spawn(measure).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let from = got.start() + WARM_UP;
    Ok(got.mbps_between(from, from + counted) / (mbit * TCP_SHARE))
}

/// Step 4.
///
/// # Errors
/// As [`of_rate`].
pub fn of_jitter(spread: Spread, seed: u64) -> Result<OfJitter, WireError> {
    let jitter = Jitter { amplitude: AMPLITUDE, spread, reorder: true };
    let way = Direction { delay: BENEATH, jitter: Some(jitter), seed, ..Direction::default() };
    let draws = u32::try_from(JITTER_DRAWS).unwrap_or(u32::MAX);
    let report = over(&way)?.flow(JITTER_MBIT, SMALL, JITTER_INTERVAL * draws)?;
    if report.arrivals.is_empty() {
        return Err(nothing());
    }
    let beneath = BENEATH.as_secs_f64() * 1e3;
    let extra = report.arrivals.iter().map(|arrival| (arrival.received - arrival.sent).as_secs_f64() * 1e3 - beneath);
    let told = |extra: f64| share_up_to(spread, extra / (AMPLITUDE.as_secs_f64() * 1e3));
    Ok(kolmogorov(extra.collect(), told))
}

/// A link between two namespaces of its own. Removed on drop.
struct Measured {
    from: Namespace,
    to: Namespace,
    _link: EmulatedLink,
}

fn over(way: &Direction) -> Result<Measured, WireError> {
    let (from, to) = (Namespace::new("fidelity")?, Namespace::new("fidelity")?);
    let (a, b) = (End::new(&from, "wire0", &["10.9.0.1/24"]), End::new(&to, "wire0", &["10.9.0.2/24"]));
    let link = EmulatedLink::new(LinkSpec::symmetric("fidelity", a, b, way))?;
    Ok(Measured { from, to, _link: link })
}

impl Measured {
    fn flow(&self, megabits: f64, payload: usize, duration: Duration) -> Result<UdpReport, WireError> {
        let flow = UdpFlow {
            from: self.from.clone(),
            to: self.to.clone(),
            destination: receiver(),
            payload,
            rate: Rate::mbit(megabits),
            duration,
            linger: LINGER,
        };
        flow.run()
    }
}

fn receiver() -> SocketAddr {
    (RECEIVER, PORT).into()
}

fn nothing() -> WireError {
    WireError::system("judge a link", std::io::Error::other("nothing arrived"))
}

/// The share of draws that are told to lie at most this many amplitudes above the mean.
fn share_up_to(spread: Spread, amplitudes: f64) -> f64 {
    match spread {
        Spread::Uniform => amplitudes.midpoint(1.0).clamp(0.0, 1.0),
        Spread::Normal if amplitudes < -NORMAL_CUT => 0.0,
        Spread::Normal if amplitudes >= NORMAL_CUT => 1.0,
        Spread::Normal => normal(amplitudes),
    }
}

/// The normal distribution. Source: Abramowitz and Stegun, 26.2.17 (the error is under 7.5e-8).
fn normal(x: f64) -> f64 {
    const P: f64 = 0.231_641_9;
    const B: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + P * x.abs());
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let above = density * B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    if x < 0.0 { above } else { 1.0 - above }
}

/// The distance of what was found from what was told, and how far true draws may be.
#[expect(clippy::cast_precision_loss, reason = "a count of draws")]
fn kolmogorov(mut found: Vec<f64>, told: impl Fn(f64) -> f64) -> OfJitter {
    found.sort_by(f64::total_cmp);
    let count = found.len() as f64;
    let apart = |(place, &value): (usize, &f64)| {
        let (below, up_to) = (place as f64 / count, (place + 1) as f64 / count);
        (told(value) - below).abs().max((up_to - told(value)).abs())
    };
    let distance = found.iter().enumerate().map(apart).fold(0.0, f64::max);
    OfJitter { distance, critical: KOLMOGOROV / count.sqrt() }
}

/// Between which counts all but a share of a binomial's draws lie, half of that share on either side.
#[expect(clippy::cast_precision_loss, reason = "a count of packets")]
fn binomial(draws: u64, share: f64, unlucky: f64) -> (u64, u64) {
    let (mut at, mut sum) = (draws as f64 * (1.0 - share).ln(), 0.0);
    let (mut least, mut most) = (None, draws);
    for count in 0..=draws {
        sum += at.exp();
        if least.is_none() && sum > unlucky / 2.0 {
            least = Some(count);
        }
        if sum >= 1.0 - unlucky / 2.0 {
            most = count;
            break;
        }
        at += ((draws - count) as f64 / (count + 1) as f64 * share / (1.0 - share)).ln();
    }
    (least.unwrap_or(0), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (x, share) in [(0.0, 0.5), (1.0, 0.841_345), (-1.0, 0.158_655), (1.96, 0.975_002), (-3.0, 0.001_350)] {
            assert!((normal(x) - share).abs() < 1e-6, "{x}: {}", normal(x));
        }
    }

    #[test]
    fn a_binomials_interval_is_that_of_the_tables() {
        // Ten coins, 95 %: 2 to 8. A thousand packets at 2 %, 99.9 %: 20 with a standard deviation of 4.43.
        assert_eq!(binomial(10, 0.5, 0.05), (2, 8));
        let (least, most) = binomial(1000, 0.02, 0.001);
        assert!((6..=8).contains(&least) && (35..=37).contains(&most), "{least} to {most}");
        // This many that one alone is less likely than a float can say.
        let (least, most) = binomial(60_000, 0.02, 0.001);
        assert!((1085..=1092).contains(&least) && (1310..=1318).contains(&most), "{least} to {most}");
    }

    #[test]
    fn true_draws_are_told_from_false_ones() {
        let even = |count: usize| (0..count).map(|n| 2.0 * (n as f64 + 0.5) / count as f64 - 1.0).collect::<Vec<f64>>();
        let uniform = |x| share_up_to(Spread::Uniform, x);
        assert!(kolmogorov(even(1000), uniform).distance < 0.001);
        assert!(kolmogorov(even(1000), uniform).is_true());
        let wider = even(1000).into_iter().map(|x| x * 1.15).collect();
        assert!(!kolmogorov(wider, uniform).is_true(), "a range that is 15 % too wide");
        let moved = even(1000).into_iter().map(|x| x + 0.12).collect();
        assert!(!kolmogorov(moved, uniform).is_true(), "a mean that is 6 % of the range off");
        assert!(!kolmogorov(even(1000), |x| share_up_to(Spread::Normal, x)).is_true(), "another distribution");
        assert!((kolmogorov(even(1000), uniform).critical - 0.0515).abs() < 0.0001);
    }
}
