//! A call, or several at once: constant-rate UDP each way, scored as a listener would.
//!
//! 1. Both ends know each other before anything is measured; then each sends a packet every 20 ms, as RTP does.
//! 2. The listener's playout buffer waits so long after the fastest packet; what comes later is as good as lost.
//! 3. Loss, lateness and delay give a mean opinion score by the E-model; jitter is RTP's (RFC 3550).
//! 4. A direction is the mean of its calls; a call is as good as its worse direction; both are kept.
//!
//! With a rate instead of a codec's it is plain constant-rate UDP, with the same figures.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_wire::Rate;
use hawser_wire::traffic::{Arrival, Duplex, ReadyDuplex, RunningDuplex, Timeline, UdpReport};

use super::emodel::{Codec, Heard};
use super::figures::{HIGH, ratio};
use super::{BOTH, Findings, Ground, LabError, Options, Ready, Towards, WAYS, Ways, When, Workload, millis};

/// From one packet of a call to the next. Source: RFC 3551, section 4.2.
const FRAME: Duration = Duration::from_millis(20);
/// RTP's header. Source: RFC 3550, section 5.1.
const RTP_BYTES: usize = 12;
/// Payload where a rate is given: fits every tunnel's packets.
const PAYLOAD: usize = 1200;
/// How long a listener's buffer waits: what phones of a fixed buffer have, and G.107's examples.
const BUFFER: Duration = Duration::from_millis(60);
/// How long both ends listen after the end: the longest delay that still counts.
const LINGER: Duration = Duration::from_secs(1);
/// How much each packet moves the jitter: 1/16. Source: RFC 3550, section 6.4.1.
const JITTER_GAIN: f64 = 1.0 / 16.0;

/// A call.
pub(super) struct Voip {
    codec: Codec,
    rate: Option<Rate>,
    packet: Option<u64>,
    buffer: Duration,
    ways: Ways,
    calls: usize,
}

/// What a listener got: figures by name. Where nothing came, nothing has a delay.
type Quality = BTreeMap<&'static str, f64>;

impl Voip {
    pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
        let codecs = [("g711", Codec::G711), ("g711-plain", Codec::G711_PLAIN), ("g729a", Codec::G729A)];
        let voip = Self {
            codec: options.choice("codec", &codecs, Codec::G711)?,
            rate: options.rate("rate")?,
            packet: options.bytes("packet")?,
            buffer: options.time("buffer")?.unwrap_or(BUFFER),
            ways: options.choice("direction", &WAYS, BOTH)?,
            calls: options.count("calls", 1, 1)?,
        };
        Ok(Box::new(move |ground| voip.prepare(ground)))
    }

    /// Step 1; then the others.
    fn prepare(self, ground: Ground<'_>) -> Result<Ready<'_>, LabError> {
        let plan = self.duplex(ground);
        let (frame, headers) = (plan.interval, ip_and_udp(ground) as u64);
        let calls = (0..self.calls).map(|_| plan.prepare()).collect::<Result<Vec<_>, _>>()?;
        let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        Ok(Box::new(move |when: When| {
            // Nobody calls in step with others.
            let begin =
                |(number, call): (u32, ReadyDuplex)| call.start(when.start + frame * number / count, when.duration);
            let running = (0..).zip(calls).map(begin).collect::<Result<Vec<_>, _>>()?;
            let reports = running.into_iter().map(RunningDuplex::finish).collect::<Result<Vec<_>, _>>()?;
            let (up, down): (Vec<_>, Vec<_>) = reports.into_iter().map(|report| (report.up, report.down)).unzip();
            let (mut found, mut got) = (Findings::default(), Timeline::new(when.start));
            let (mut delays, mut twice, mut whole) = (Vec::new(), 0, Quality::new());
            for (way, reports) in [("up", up), ("down", down)] {
                let spoken: Vec<_> = reports.into_iter().filter(|report| report.sent > 0).collect();
                let judge = |report| quality(report, self.codec, frame, self.buffer);
                let mean = mean(&spoken.iter().map(judge).collect::<Vec<_>>());
                found.metrics.extend(mean.iter().map(|(name, value)| (format!("{way}_{name}"), *value)));
                whole = worse(whole, mean);
                for report in spoken {
                    delays.extend(report.arrivals.iter().map(delay_ms));
                    twice += report.duplicates();
                    let payload = report.packet_bytes - headers;
                    report.arrivals.iter().for_each(|arrival| got.add(arrival.received, payload));
                }
            }
            found.add(Findings::named(whole));
            found.put_goodput(&got, when);
            found.put("duplicates", twice as f64);
            found.samples.insert("delay_ms".to_owned(), delays);
            Ok(found)
        }))
    }

    fn duplex(&self, ground: Ground<'_>) -> Duplex {
        let payload = match (self.packet, self.rate) {
            (Some(bytes), _) => usize::try_from(bytes).unwrap_or(usize::MAX),
            (None, Some(_)) => PAYLOAD,
            (None, None) => self.codec.bytes + RTP_BYTES,
        };
        let plan = Duplex {
            client: ground.client.clone(),
            server: ground.server.clone(),
            destination: (ground.ends.server, 0).into(),
            payload,
            interval: FRAME,
            up: self.ways.contains(&Towards::Server),
            down: self.ways.contains(&Towards::Client),
            linger: LINGER,
        };
        let Some(rate) = self.rate else { return plan };
        let nanos = plan.packet_bytes() * 8 * 1_000_000_000 / rate.bits_per_second();
        Duplex { interval: Duration::from_nanos(nanos), ..plan }
    }
}

/// Sources: RFC 791, RFC 8200, RFC 768.
pub(super) fn ip_and_udp(ground: Ground<'_>) -> usize {
    if ground.ends.server.is_ipv4() { 28 } else { 48 }
}

/// Step 4: of calls one way.
fn mean(calls: &[Quality]) -> Quality {
    let mut figures: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (&name, &value) in calls.iter().flatten() {
        figures.entry(name).or_default().push(value);
    }
    figures.into_iter().map(|(name, values)| (name, values.iter().sum::<f64>() * ratio(1, values.len()))).collect()
}

/// Step 4: the worse of each.
fn worse(mut one: Quality, other: Quality) -> Quality {
    for (name, value) in other {
        let worst = if name == "mos" { f64::min } else { f64::max };
        one.entry(name).and_modify(|figure| *figure = worst(*figure, value)).or_insert(value);
    }
    one
}

/// Steps 2 and 3.
fn quality(report: &UdpReport, codec: Codec, frame: Duration, buffer: Duration) -> Quality {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (sent, lost) = (count(report.sent), count(report.lost()));
    let delays = report.delays();
    let fastest = delays.min().unwrap_or_default();
    let patience = fastest + millis(buffer);
    let mut played = vec![false; sent];
    for arrival in report.arrivals.iter().filter(|arrival| delay_ms(arrival) <= patience) {
        played.get_mut(count(arrival.number)).into_iter().for_each(|is_played| *is_played = true);
    }
    let missed = played.iter().filter(|&&is_played| !is_played).count();
    let mut quality = Quality::from([
        ("loss_percent", 100.0 * ratio(lost, sent)),
        ("late_percent", 100.0 * ratio(missed - lost, sent)),
        ("missed_percent", 100.0 * ratio(missed, sent)),
        ("mos", 1.0),
    ]);
    if let Some((median, high)) = delays.median().zip(delays.percentile(HIGH)) {
        let heard = Heard { delay_ms: patience + millis(frame), loss: ratio(missed, sent), burst: burst(&played) };
        quality.extend([
            ("mos", heard.mos(codec)),
            ("jitter_ms", jitter(&report.arrivals)),
            ("delay_ms", median),
            ("delay_p99_ms", high),
            ("added_delay_p99_ms", high - fastest),
        ]);
    }
    quality
}

/// BurstR: the mean length of bursts of loss over that of losses by chance; at least 1. Source: G.107, 7.5.
fn burst(played: &[bool]) -> f64 {
    let lost = played.iter().filter(|&&there| !there).count();
    let begins = |index: usize| !played[index] && (index == 0 || played[index - 1]);
    let bursts = (0..played.len()).filter(|&index| begins(index)).count();
    let by_chance = 1.0 / (1.0 - ratio(lost, played.len())).max(f64::MIN_POSITIVE);
    if bursts == 0 { 1.0 } else { (ratio(lost, bursts) / by_chance).max(1.0) }
}

/// The mean of RTP's estimate over all packets, in ms. Source: RFC 3550, section 6.4.1.
fn jitter(arrivals: &[Arrival]) -> f64 {
    let (mut estimate, mut sum) = (0.0, 0.0);
    for pair in arrivals.windows(2) {
        let change: f64 = (delay_ms(&pair[1]) - delay_ms(&pair[0])).abs();
        estimate += (change - estimate) * JITTER_GAIN;
        sum += estimate;
    }
    sum * ratio(1, arrivals.len().saturating_sub(1))
}

fn delay_ms(arrival: &Arrival) -> f64 {
    millis(arrival.received - arrival.sent)
}

#[cfg(test)]
mod tests {
    use hawser_wire::Moment;

    use super::*;

    /// A packet every 20 ms, with these delays in ms; none is lost.
    fn report(delays: &[Option<u64>]) -> UdpReport {
        let arrival = |(number, delay): (u64, &Option<u64>)| {
            let sent = Moment::from_nanos(1_000_000_000) + FRAME * u32::try_from(number).expect("few");
            delay.map(|delay| Arrival { number, sent, received: sent + Duration::from_millis(delay) })
        };
        let arrivals = (0..).zip(delays).filter_map(arrival).collect();
        UdpReport { sent: delays.len() as u64, arrivals, packet_bytes: 200, refused: 0 }
    }

    fn judged(delays: &[Option<u64>]) -> Quality {
        quality(&report(delays), Codec::G711, FRAME, BUFFER)
    }

    #[test]
    fn a_clean_call_is_scored_for_its_delay_alone() {
        let clean = judged(&[Some(15); 50]);
        let by_model = Heard { delay_ms: 15.0 + 60.0 + 20.0, loss: 0.0, burst: 1.0 }.mos(Codec::G711);
        let expected = [("mos", by_model), ("delay_ms", 15.0), ("delay_p99_ms", 15.0)];
        let none = ["loss_percent", "late_percent", "missed_percent", "jitter_ms", "added_delay_p99_ms"];
        assert_eq!(clean, expected.into_iter().chain(none.map(|name| (name, 0.0))).collect());
        assert!(clean["mos"] > 4.3, "{clean:?}");
    }

    #[test]
    fn what_comes_too_late_is_as_good_as_lost_and_told_apart() {
        let mut delays = [Some(10); 20];
        (delays[3], delays[7], delays[8]) = (Some(90), None, None);
        let call = judged(&delays);
        assert_eq!((call["loss_percent"], call["late_percent"], call["missed_percent"]), (10.0, 5.0, 15.0));
        // The 99th percentile of 17 times 10 and one 90: between the last two.
        assert!((call["delay_p99_ms"] - (10.0 + 0.83 * 80.0)).abs() < 1e-6, "{call:?}");
        assert!((call["added_delay_p99_ms"] - 0.83 * 80.0).abs() < 1e-6, "{call:?}");
        // Three of 20 in two bursts: 1.5 long; by chance 1 / 0.85.
        let heard = Heard { delay_ms: 90.0, loss: 0.15, burst: 1.5 * 0.85 };
        assert!((call["mos"] - heard.mos(Codec::G711)).abs() < 1e-9, "{call:?}");
    }

    #[test]
    fn jitter_is_rtps() {
        // One change of 16 ms moves the estimate to 1; without another it decays by a sixteenth.
        let expected = (1.0 + 15.0 / 16.0) / 2.0;
        assert!((judged(&[Some(10), Some(26), Some(26)])["jitter_ms"] - expected).abs() < 1e-9);
        assert_eq!(judged(&[Some(10)])["jitter_ms"], 0.0);
    }

    #[test]
    fn a_call_of_which_nothing_arrives_has_the_lowest_score_and_no_delay() {
        let calls = [judged(&[None; 5]), judged(&[Some(10); 5])];
        let [one, other] = calls.clone();
        let [silent, worse, mean] = [mean(&calls[..1]), worse(one, other), mean(&calls)];
        assert_eq!((silent["mos"], silent["loss_percent"]), (1.0, 100.0));
        assert_eq!((worse["mos"], worse["delay_ms"]), (1.0, 10.0));
        assert_eq!((mean["loss_percent"], mean["delay_ms"]), (50.0, 10.0));
        assert!(!silent.contains_key("delay_ms"), "{silent:?}");
    }
}
