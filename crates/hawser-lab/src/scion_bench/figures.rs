//! What an end counted, and what is made of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::experiment::Findings;

/// What an end says when it is done: a line of JSON. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Packets of all connections.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// From the first packet to the last.
    pub seconds: f64,
    /// Processor time from the first packet to the last, in microseconds.
    pub cpu_us: u64,
}

/// What both ends counted, and what their helpers cost. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub sent: Count,
    pub received: Count,
    /// Of dispatchers, by the end they serve.
    pub sender_helper: Duration,
    pub receiver_helper: Duration,
    /// Bytes of a packet beside its payload: IP, UDP, SCION.
    pub overhead: usize,
}

/// Bits of a byte, and a Mbit/s.
const BITS: f64 = 8.0;
const MEGA: f64 = 1e6;
/// Bytes of a gigabyte.
const GIGA: f64 = 1e9;

#[expect(clippy::cast_precision_loss, reason = "packets and bytes of some seconds")]
impl Counts {
    /// Of packets.
    pub fn of_packets(&self) -> Findings {
        let Self { sent, received, overhead, .. } = self;
        let goodput = |count: &Count| count.bytes as f64 * BITS / count.seconds / MEGA;
        let throughput =
            |count: &Count| (count.bytes + count.packets * *overhead as u64) as f64 * BITS / count.seconds / MEGA;
        let kpps = |count: &Count| count.packets as f64 / count.seconds / 1e3;
        let (sender, receiver) = (self.sender_us(), self.receiver_us());
        Findings::named([
            ("sent_goodput_mbps", goodput(sent)),
            ("sent_throughput_mbps", throughput(sent)),
            ("goodput_mbps", goodput(received)),
            ("throughput_mbps", throughput(received)),
            ("sent_kpps", kpps(sent)),
            ("kpps", kpps(received)),
            ("loss_percent", self.loss_percent()),
            ("cpu_sender_us", sender / sent.packets as f64),
            ("cpu_receiver_us", receiver / received.packets as f64),
            ("cpu_packet_us", (sender + receiver) / received.packets as f64),
        ])
    }

    /// Packets that did not arrive.
    pub fn loss_percent(&self) -> f64 {
        let lost = self.sent.packets.saturating_sub(self.received.packets);
        lost as f64 / self.sent.packets as f64 * 100.0
    }

    /// Of a file, which takes as long as its sender says. What goes through a tunnel counts no packets.
    pub fn of_file(&self) -> Findings {
        let Self { sent, received, .. } = self;
        let gigabytes = received.bytes as f64 / GIGA;
        let (sender, receiver) = (self.sender_us() / MEGA, self.receiver_us() / MEGA);
        let mut findings = Findings::named([
            ("goodput_mbps", received.bytes as f64 * BITS / sent.seconds / MEGA),
            ("cpu_sender_s_per_gb", sender / gigabytes),
            ("cpu_receiver_s_per_gb", receiver / gigabytes),
        ]);
        if received.packets > 0 {
            findings.add(Findings::named([
                ("kpps", received.packets as f64 / sent.seconds / 1e3),
                ("cpu_packet_us", (self.sender_us() + self.receiver_us()) / received.packets as f64),
            ]));
        }
        findings
    }

    fn sender_us(&self) -> f64 {
        self.sent.cpu_us as f64 + self.sender_helper.as_secs_f64() * MEGA
    }

    fn receiver_us(&self) -> f64 {
        self.received.cpu_us as f64 + self.receiver_helper.as_secs_f64() * MEGA
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Count = Count { packets: 1000, bytes: 1_200_000, seconds: 1.0, cpu_us: 4000 };
    const RECEIVED: Count = Count { packets: 900, bytes: 1_080_000, seconds: 1.0, cpu_us: 1800 };

    fn near(found: &Findings, expected: &[(&str, f64)]) {
        for (name, value) in expected {
            let own = found.metrics[*name];
            assert!((own - value).abs() < 1e-9 * value.abs().max(1.0), "{name}: {own}, not {value}");
        }
    }

    #[test]
    fn packets_give_rates_loss_and_what_each_of_them_costs() {
        let helper = Duration::from_millis(1);
        let counts =
            Counts { sent: SENT, received: RECEIVED, sender_helper: helper, receiver_helper: helper, overhead: 72 };
        let expected = [
            ("sent_goodput_mbps", 9.6),
            ("sent_throughput_mbps", 10.176),
            ("goodput_mbps", 8.64),
            ("throughput_mbps", 9.1584),
            ("sent_kpps", 1.0),
            ("kpps", 0.9),
            ("loss_percent", 10.0),
            ("cpu_sender_us", 5.0),
            ("cpu_receiver_us", 2800.0 / 900.0),
            ("cpu_packet_us", 7800.0 / 900.0),
        ];
        near(&counts.of_packets(), &expected);
    }

    #[test]
    fn a_file_takes_as_long_as_its_sender_says() {
        let sent = Count { bytes: 2_000_000_000, seconds: 10.0, ..SENT };
        let received = Count { bytes: 2_000_000_000, seconds: 9.0, ..RECEIVED };
        let counts = Counts { sent, received, ..Counts::default() };
        near(&counts.of_file(), &[("goodput_mbps", 1600.0), ("cpu_sender_s_per_gb", 0.002), ("kpps", 0.09)]);
        let uncounted = Counts { received: Count { packets: 0, ..received }, ..counts };
        assert!(!uncounted.of_file().metrics.contains_key("kpps"));
    }

    #[test]
    fn an_end_is_read_as_it_says_it() {
        let text = r#"{"packets":1000,"bytes":1200000,"seconds":1.0,"cpu_us":4000}"#;
        assert_eq!(serde_json::from_str::<Count>(text).expect("it is one"), SENT);
        assert_eq!(serde_json::to_string(&SENT).expect("plain data"), text);
    }
}
