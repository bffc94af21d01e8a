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

/// Bits of a byte, and a Mbit/s.
const BITS: f64 = 8.0;
const MEGA: f64 = 1e6;
/// Bytes of a gigabyte.
const GIGA: f64 = 1e9;

impl Count {
    /// The payload's bits over the time they took.
    pub(crate) fn mbps(&self) -> f64 {
        mbps(self.bytes, self.seconds)
    }

    /// Packets a second.
    pub(super) fn rate(&self) -> f64 {
        self.packets as f64 / self.seconds
    }
}

/// Bytes in seconds as Mbit/s.
pub(crate) fn mbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * BITS / seconds / MEGA
}

/// What both ends counted, and what their helpers cost. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub sent: Count,
    pub received: Count,
    /// Of dispatchers, by the end they serve: the sender, the receiver.
    pub helpers: [Duration; 2],
    /// Bytes of a packet beside its payload: IP, UDP, SCION.
    pub overhead: usize,
}

impl Counts {
    /// Of packets.
    pub fn of_packets(&self) -> Findings {
        let Self { sent, received, overhead, .. } = self;
        let throughput = |count: &Count| mbps(count.bytes + count.packets * *overhead as u64, count.seconds);
        let [sender, receiver] = self.cpu_us();
        Findings::named([
            ("sent_goodput_mbps", sent.mbps()),
            ("sent_throughput_mbps", throughput(sent)),
            ("goodput_mbps", received.mbps()),
            ("throughput_mbps", throughput(received)),
            ("sent_kpps", sent.rate() / 1e3),
            ("kpps", received.rate() / 1e3),
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
        let received = Count { seconds: self.sent.seconds, ..self.received };
        let gigabytes = received.bytes as f64 / GIGA;
        let [sender, receiver] = self.cpu_us();
        let mut findings = Findings::named([
            ("goodput_mbps", received.mbps()),
            ("cpu_sender_s_per_gb", sender / MEGA / gigabytes),
            ("cpu_receiver_s_per_gb", receiver / MEGA / gigabytes),
        ]);
        if received.packets > 0 {
            findings.add(Findings::named([
                ("kpps", received.rate() / 1e3),
                ("cpu_packet_us", (sender + receiver) / received.packets as f64),
            ]));
        }
        findings
    }

    /// Of the sender and the receiver, with their helpers.
    fn cpu_us(&self) -> [f64; 2] {
        let of = |count: Count, helper: Duration| count.cpu_us as f64 + helper.as_secs_f64() * MEGA;
        [of(self.sent, self.helpers[0]), of(self.received, self.helpers[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Count = Count { packets: 1000, bytes: 1_200_000, seconds: 1.0, cpu_us: 4000 };
    const RECEIVED: Count = Count { packets: 900, bytes: 1_080_000, seconds: 1.0, cpu_us: 1800 };

    #[test]
    fn packets_and_files_give_rates_and_what_each_of_them_costs() {
        let helper = Duration::from_millis(1);
        let packets = Counts { sent: SENT, received: RECEIVED, helpers: [helper; 2], overhead: 72 };
        let sent = Count { bytes: 2_000_000_000, seconds: 10.0, ..SENT };
        let received = Count { bytes: 2_000_000_000, seconds: 9.0, ..RECEIVED };
        let file = Counts { sent, received, ..Counts::default() };
        let of_packets = [
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
        // It takes as long as its sender says.
        let of_file = [("goodput_mbps", 1600.0), ("cpu_sender_s_per_gb", 0.002), ("kpps", 0.09)];
        for (found, expected) in [(packets.of_packets(), &of_packets[..]), (file.of_file(), &of_file[..])] {
            for (name, value) in expected {
                let own = found.metrics[*name];
                assert!((own - value).abs() < 1e-9 * value.abs().max(1.0), "{name}: {own}, not {value}");
            }
        }
        let uncounted = Counts { received: Count { packets: 0, ..received }, ..file };
        assert!(!uncounted.of_file().metrics.contains_key("kpps"));
    }

    #[test]
    fn an_end_is_read_as_it_says_it() {
        let text = r#"{"packets":1000,"bytes":1200000,"seconds":1.0,"cpu_us":4000}"#;
        assert_eq!(serde_json::from_str::<Count>(text).expect("it is one"), SENT);
        assert_eq!(serde_json::to_string(&SENT).expect("plain data"), text);
    }
}
