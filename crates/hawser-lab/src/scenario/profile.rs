//! Profiles of media: the figures that a link begins with.
//!
//! They are typical, not a certain network's: each says where it comes from. What a file says goes before them.

use std::time::Duration;

use hawser_wire::{Access, GilbertElliott, Loss, Probability, QueueDepth, Rate, Spread};

use super::figures::{Discipline, Figures};

/// Ethernet around an IP packet: preamble 8, header 14, checksum 4, gap 12 bytes. Source: IEEE 802.3-2022, 3.1.1
/// and 4.4.2.
const ETHERNET_OVERHEAD: u32 = 38;
/// Link-layer header of 802.11 for quality of service, LLC, checksum, the delimiter of an aggregate's part and half a
/// word of padding: 26 + 8 + 4 + 4 + 2 bytes. Source: IEEE 802.11-2020, 9.2.3 and 9.7.1.
const WIFI_OVERHEAD: u32 = 44;
/// PPPoE and Ethernet in VDSL2's packet mode: 8 + 18 bytes and framing of 6. Source: RFC 2516, section 4; ITU-T
/// G.992.3, annex N.
const DSL_OVERHEAD: u32 = 32;

/// A profile. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// As files name it.
    pub name: &'static str,
    /// What it is, and where the figures come from.
    pub about: &'static str,
    /// From the client.
    pub up: Figures,
    /// To the client.
    pub down: Figures,
    /// Where both directions share a medium: how turns are taken.
    pub access: Option<Access>,
}

/// Every profile, in the order of the documentation.
#[must_use]
pub fn profiles() -> Vec<Profile> {
    vec![ethernet_100(), wifi_n(), campus_wifi(), lte(), umts(), dsl(), starlink()]
}

/// Full duplex, 100 Mbit/s on the wire, a switch's delay: 94.1 Mbit/s of TCP. The queue is Linux's `txqueuelen` of 1000
/// packets cut to a home router's 100. Source: IEEE 802.3-2022, clause 24.
fn ethernet_100() -> Profile {
    let way = Figures {
        rate: mbit(100.0),
        overhead: Some(ETHERNET_OVERHEAD),
        delay: micros(200),
        queue: Some(QueueDepth::Packets(100)),
        ..Figures::default()
    };
    let about = "Ethernet at 100 Mbit/s, full duplex (IEEE 802.3)";
    Profile { name: "ethernet-100", about, up: way.clone(), down: way, access: None }
}

/// One stream, 20 MHz, long guard interval: 65 Mbit/s on the air, half duplex, of which retries take a seventh. That is
/// an estimate, as is the jitter they show as: it gives the 44 Mbit/s of TCP that Barreira had (2014, table 6.1).
/// Source: IEEE 802.11-2020, 19.5 (MCS 7).
fn wifi_n() -> Profile {
    let queue = Some(QueueDepth::Packets(256));
    let way = Figures { overhead: Some(WIFI_OVERHEAD), ..radio(55.0, micros(1000), micros(1000), queue) };
    let about = "802.11n, one stream at 65 Mbit/s less retries, half duplex (IEEE 802.11-2020, 19.5)";
    Profile { name: "802.11n", about, up: way.clone(), down: way, access: Some(Access::wifi_n()) }
}

/// The same air, most of it others': a quarter of the rate is left, waits vary by many ms, and bursts are lost where
/// retries do not help. An estimate: Barreira had 2.5 to 7.8 Mbit/s of TCP in a university's Wi-Fi (2014, table 6.2).
fn campus_wifi() -> Profile {
    let way = Figures {
        rate: mbit(13.0),
        delay: micros(4000),
        jitter: micros(6000),
        loss: rare_bursts(0.05, 20.0),
        ..wifi_n().up
    };
    let about = "a crowded campus Wi-Fi: what others leave of the air, half duplex (an estimate)";
    Profile { name: "campus-wifi", about, up: way.clone(), down: way, access: Some(Access::wifi_n()) }
}

/// LTE: 20 Mbit/s down and 10 up, 25 ms one way, deep queues. Estimates after Huang et al., An In-depth Study of LTE,
/// SIGCOMM 2013 (medians of 13 Mbit/s down, 6 up, 70 ms of round trip) and Barreira (2014, table 6.2: 9 Mbit/s up); the
/// queue after Jiang et al., Tackling Bufferbloat in 3G/4G Networks, IMC 2012.
fn lte() -> Profile {
    let way = |mbps| radio(mbps, micros(25_000), micros(4000), time(400));
    let about = "LTE: 20 Mbit/s down, 10 up, deep queues (after Huang et al. 2013, Jiang et al. 2012)";
    Profile { name: "4g", about, up: way(10.0), down: way(20.0), access: None }
}

/// HSPA: 6 Mbit/s down and 1.5 up, 50 ms one way, the deepest queues. Estimates after Jiang et al., IMC 2012.
fn umts() -> Profile {
    let way = |mbps| radio(mbps, micros(50_000), micros(10_000), time(800));
    let about = "HSPA: 6 Mbit/s down, 1.5 up, the deepest queues (after Jiang et al. 2012)";
    Profile { name: "3g", about, up: way(1.5), down: way(6.0), access: None }
}

/// ADSL2+: 16 Mbit/s down and 1 up, interleaved. Source: ITU-T G.992.5; Dischinger et al., Characterizing Residential
/// Broadband Networks, IMC 2007 (queues upwards of 600 ms, delays of 5 to 15 ms).
fn dsl() -> Profile {
    let way = |mbps, queue| Figures {
        rate: mbit(mbps),
        overhead: Some(DSL_OVERHEAD),
        delay: micros(10_000),
        queue: time(queue),
        ..Figures::default()
    };
    let about = "ADSL2+: 16 Mbit/s down, 1 up (ITU-T G.992.5, Dischinger et al. 2007)";
    Profile { name: "dsl", about, up: way(1.0, 600), down: way(16.0, 130), access: None }
}

/// Low orbit: 120 Mbit/s down and 12 up, 22 ms one way with jitter, short bursts of loss. Estimates after Michel et
/// al., A First Look at Starlink Performance, IMC 2022. The reassignments every 15 s are a scenario's events, or a
/// trace: a profile does not change.
fn starlink() -> Profile {
    let way = |mbps| Figures {
        loss: rare_bursts(0.1, 10.0),
        discipline: Some(Discipline::DropTail),
        ..radio(mbps, micros(22_000), micros(5000), time(100))
    };
    let about = "Starlink-like: 120 Mbit/s down, 12 up, short bursts of loss (after Michel et al. 2022)";
    Profile { name: "starlink", about, up: way(12.0), down: way(120.0), access: None }
}

/// A way through the air: its delay varies.
fn radio(mbps: f64, delay: Option<Duration>, jitter: Option<Duration>, queue: Option<QueueDepth>) -> Figures {
    let (rate, jitter_distribution) = (mbit(mbps), Some(Spread::Normal));
    Figures { rate, delay, jitter, jitter_distribution, queue, ..Figures::default() }
}

fn mbit(megabits: f64) -> Option<Rate> {
    Some(Rate::mbit(megabits))
}

fn micros(time: u64) -> Option<Duration> {
    Some(Duration::from_micros(time))
}

fn time(millis: u64) -> Option<QueueDepth> {
    Some(QueueDepth::Time(Duration::from_millis(millis)))
}

/// Bursts of this many packets, all lost, that begin with this many percent of packets.
fn rare_bursts(begin_percent: f64, length: f64) -> Option<Loss> {
    Some(bursts(Probability::percent(begin_percent)?, Probability::new(1.0 / length)?))
}

/// Bursts of which all is lost, and between which nothing is.
pub(super) fn bursts(to_bad: Probability, to_good: Probability) -> Loss {
    let (lost_in_good, lost_in_bad) = (Probability::NEVER, Probability::ALWAYS);
    Loss::Bursts(GilbertElliott { to_bad, to_good, lost_in_good, lost_in_bad })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_a_rate_a_queue_and_a_source_and_a_name_of_its_own() {
        let all = profiles();
        for profile in &all {
            for way in [&profile.up, &profile.down] {
                assert!(way.rate.is_some() && way.queue.is_some() && way.delay.is_some(), "{}", profile.name);
            }
            assert!(profile.about.contains('('), "{}", profile.name);
            assert_eq!(all.iter().filter(|other| other.name == profile.name).count(), 1, "{}", profile.name);
        }
    }

    #[test]
    fn bursts_lose_what_they_say() {
        let Some(Loss::Bursts(model)) = rare_bursts(0.1, 10.0) else { panic!("they are bursts") };
        let share = model.to_bad.get() / (model.to_bad.get() + model.to_good.get());
        assert!((share - 0.0099).abs() < 0.0001, "{share}");
    }
}
