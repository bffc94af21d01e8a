//! Every constant of the policy, law by law, with its unit, its source and the value that switches its law off.
//!
//! The default is what was measured to work. [`Tuning::neutral`] switches one law off (`law.rs`), for ablation.

use super::Law;
use crate::congestion::Departures;
use crate::packet::flow::GAP_MAX;
use crate::path::health::FlapHold;
use crate::units::ByteCount;
use std::time::Duration;

/// All constants. Today's values by default. A plain value, the same for all sessions of a portal.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Tuning {
    /// How often what follows measurements is decided anew, time.
    pub interval: Duration,
    /// See `tier.rs`.
    pub tier: Tier,
    /// See `fastest.rs`.
    pub fastest: Fastest,
    /// See `delay.rs`.
    pub delay: Delay,
    /// See `active_set.rs`.
    pub active_set: ActiveSet,
    /// See `overflow.rs`.
    pub overflow: Overflow,
    /// See `probing.rs`.
    pub probing: Probing,
    /// See `retry.rs`.
    pub retry: Retry,
    /// See `reinjection.rs`.
    pub reinjection: Reinjection,
    /// See `hedge.rs`.
    pub hedge: Hedge,
    /// See `aqm.rs`.
    pub aqm: Aqm,
    /// See `ack_filter.rs`.
    pub ack_filter: AckFilter,
    /// See `hold.rs`.
    pub hold: Hold,
    /// When a path that drops again and again is used again: `path/health/flaps.rs`.
    pub flaps: FlapHold,
    /// What differs from BBR's draft: `congestion/bbr/departures.rs`.
    pub bbr: Departures,
}

impl Tuning {
    /// The default, with one law switched off.
    pub fn neutral(law: Law) -> Tuning {
        let mut tuning = Tuning::default();
        law.switch_off(&mut tuning);
        tuning
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            interval: Duration::from_millis(100),
            tier: Tier::default(),
            fastest: Fastest::default(),
            delay: Delay::default(),
            active_set: ActiveSet::default(),
            overflow: Overflow::default(),
            probing: Probing::default(),
            retry: Retry::default(),
            reinjection: Reinjection::default(),
            hedge: Hedge::default(),
            aqm: Aqm::default(),
            ack_filter: AckFilter::default(),
            hold: Hold::default(),
            flaps: FlapHold::default(),
            bbr: Departures::default(),
        }
    }
}

/// A struct of constants and its default, each field beside its value.
macro_rules! constants {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $value:expr,)* }) => {
        $(#[$about])*
        #[derive(Copy, Clone, PartialEq, Debug)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $value,)* }
            }
        }
    };
}

constants! {
    /// When a tier is left. A plain value.
    Tier {
        /// The answer to a probe is awaited for as many smoothed round trips (one, as the probe takes). Neutral: 0.
        doubt_rounds: u32 = 1,
        /// And this time: an acknowledgement waits for a quarter of a round trip, and a host may be busy. Neutral: 0.
        doubt: Duration = Duration::from_millis(15),
    }
}

constants! {
    /// When another path becomes the fastest. A plain value.
    Fastest {
        /// How much sooner it must be, µs: less would make sparse flows hop (measured). Neutral: 0.
        margin_us: i64 = 1_000,
        /// Or as many mean deviations of the present one's delay, if that is more. Neutral: 0.
        margin_jitters: i64 = 1,
    }
}

constants! {
    /// What counts as a path's delay to a bulk flow. A plain value.
    Delay {
        /// Deviation up to the round trip over this is the path's own; beyond, a queue that came and went. Neutral:
        /// MAX.
        jitter_part: u32 = 8,
        /// Or up to the spread of those that overtake each other over this, if that is more. Neutral: MAX.
        spread_part: u32 = 2,
    }
}

constants! {
    /// Which paths are worth their delay. A plain value.
    ActiveSet {
        /// The exponent by which a longer round trip weighs against more rate. 40 Mbit/s 10 ms beside 10 Mbit/s 40 ms
        /// must be used (below 0.24), 5 Mbit/s 75 ms ± 20 beside 100 Mbit/s 10 ms must not (above 0.03). Links of 37, 8
        /// and 3 Mbit/s, 12, 45 and 90 ms carry 0.97 of what they have with 0.08, 0.90 with 0.17. Neutral: 0.
        delay_weight: f64 = 0.08,
        /// A path that is probed with a flow's own packets costs it at most this factor of its score; else redundant
        /// copies probe it: a round trip longer by a third does. Neutral: 0.
        cheap: f64 = 0.975,
        /// The least round trip that is told apart, µs: below, the hosts' own delays dominate.
        round_trip_min_us: f64 = 5_000.0,
    }
}

constants! {
    /// When slower paths take. A plain value.
    Overflow {
        /// The share of an active path's delay that must wait before it is used, at first. Neutral: 1.
        first: f64 = 0.1,
        /// And at least. Neutral: 1.
        least: f64 = 0.1,
        /// It shrinks by this with each decision, while the fastest path is never idle.
        step: f64 = 0.05,
        /// It grows by this when the fastest path was idle.
        back: f64 = 0.25,
        /// Without anything to send for this share of the time the fastest path was idle.
        idle: f64 = 0.05,
    }
}

constants! {
    /// How a path's rate is found out. A plain value.
    Probing {
        /// Growth of the bandwidth in a round that counts as such (draft-ietf-ccwg-bbr section 5.3.1.2).
        growth: f64 = 1.25,
        /// Rounds without growth that end the probing (the same).
        rounds: u32 = 3,
        /// A queue on top of half a round trip that ends it after one round without growth, time.
        queue: Duration = Duration::from_millis(5),
        /// The longest that a path is fed for its rate's sake, time. Neutral: 0.
        longest: Duration = Duration::from_secs(3),
    }
}

constants! {
    /// When a path that is left out is probed anew. A plain value.
    Retry {
        /// After this time at first: what it can may have changed. Neutral: MAX.
        first: Duration = Duration::from_secs(5),
        /// Twice as long each time that it was in vain, because probing costs bytes, but at most this. Neutral: MAX.
        last: Duration = Duration::from_secs(160),
        /// A path that bulk flows use for so long is of use; shorter, and the choice wavers.
        in_use: Duration = Duration::from_secs(1),
        /// A path that another scheduler used within this time is in use.
        lately: Duration = Duration::from_secs(1),
    }
}

constants! {
    /// What goes by a second path too. A plain value.
    Reinjection {
        /// A segment goes by one path alone up to this try: the third loss would hold its flow up. Neutral: MAX.
        tries_alone: u8 = 2,
        /// With at most this part of its window in flight a path is nearly idle: half of what fills it, where the
        /// window is two bandwidth-delay products. Neutral: 0.
        idle_part: u32 = 4,
        /// An answer may take this much longer than the least round trip: an acknowledgement waits for 5 ms, and a host
        /// may be busy for as long again.
        patience: Duration = Duration::from_millis(10),
        /// Of what a path lets go at once, this part is sparse flows' before anything is retransmitted: they wait for
        /// no window of lost packets, and retransmissions never starve. Neutral: 0.
        sparse_part: f64 = 0.5,
    }
}

constants! {
    /// What of sparse flows goes by a second path too. A plain value.
    Hedge {
        /// As many mean deviations of the round trip an answer may be late (RFC 6298 section 2, K): with 1 and 2,
        /// copies of what is not late fill the queues of loss-based controllers (two links with OLIA carry 5 % less),
        /// and calls fare no better.
        deviations: u32 = 4,
        /// And this long in any case: an acknowledgement waits for 5 ms, and a host or a cell may be busy for as long
        /// again.
        patience: Duration = Duration::from_millis(10),
        /// The share of what is sent that copies may cost. Neutral: 0.
        share: f64 = 0.05,
        /// What of it is saved up, bytes: what twenty calls of 50 packets a second send in a third of a second.
        saved: ByteCount = ByteCount(64 << 10),
    }
}

constants! {
    /// The ingress queue. A plain value.
    Aqm {
        /// What may wait, as time at the bond's rate; at least the queue's own limit (reached at 670 Mbit/s).
        limit_time: Duration = Duration::from_millis(100),
        /// And at most, bytes: a window of 100 KB for each of 300 flows. Neutral: the queue's own limit.
        limit_max: ByteCount = ByteCount(32 << 20),
        /// A bulk flow's turn lasts this long at the bond's rate, so that trains stay whole where there are hundreds of
        /// flows: 64 KiB from 3.5 Gbit/s on, one packet below 80 Mbit/s.
        quantum_time: Duration = Duration::from_micros(150),
        /// And is at most one large train, bytes. Neutral: 0.
        quantum_max: ByteCount = ByteCount(65_536),
        /// CoDel's target where rates are steady, at what the paths carried most of late. Neutral: 5 ms (RFC 8289
        /// section 4.3).
        target: Duration = Duration::from_millis(100),
        /// For how long that is remembered: what most outages last. Neutral: 0.
        memory: Duration = Duration::from_secs(10),
        /// And where they vary: recorded drives carry 3 % more with 0.2 s than with a round trip of the fastest path, 6
        /// % with
        /// 0.4 s and 0.6 s, no more with 0.8 s. Neutral: `target`.
        target_varying: Duration = Duration::from_millis(600),
        /// That is where they vary by this on the average (`congestion::Controller::variation`); less where less. Links
        /// in cars have 0.1 to 0.3.
        varies: f64 = 0.1,
        /// A drop leaves so much of a flow's queue that lasts four times as long, time: a stream's gap is twice this
        /// and a round trip, for what the sender adds meanwhile waits ahead of what it retransmits. With 100 ms the
        /// kernel's streams had gaps of 260 ms; on recorded drives either is as good. Neutral: MAX.
        kept: Duration = Duration::from_millis(50),
        /// CoDel's interval is at least this (RFC 8289 section 4.2).
        interval_min: Duration = Duration::from_millis(100),
    }
}

constants! {
    /// How acknowledgements of bulk are spaced. A plain value.
    AckFilter {
        /// The time between two: HyStart takes a gap of 2 ms for the end of a train of them (Linux,
        /// `hystart_ack_delta_us`), and hosts are late by half a millisecond. Neutral: 0.
        gap: Duration = Duration::from_millis(3),
        /// But only where the least round trip is this many times as long.
        part: u32 = 6,
        /// A slow start is over in this many round trips: ten segments (RFC 6928) that double each time are 40 MB then.
        slow_start_rounds: u32 = 12,
        /// As many go at once after a pause: what acknowledges an answer of thirty packets.
        burst: u16 = 16,
    }
}

constants! {
    /// How long a gap is waited for. A plain value.
    Hold {
        /// As many of the largest probe timeouts: what was lost twice has arrived by then.
        timeouts: u32 = 3,
        /// The same in times until a loss is noticed: what is retransmitted then may be late too.
        losses: u32 = 2,
        /// The least that a gap is worth waiting for: below, the hosts' own jitter decides. Neutral: `max`.
        min: Duration = Duration::from_millis(10),
        /// And the most, after which a bucket may be another flow's, too.
        max: Duration = GAP_MAX,
        /// It is repeated this often while data flows, because it is not acknowledged.
        repeat: Duration = Duration::from_millis(200),
        /// A change by more than this share is told at once.
        change: f64 = 0.25,
        /// A lost packet is worth retransmitting for this many times as long.
        useful: u32 = 2,
    }
}
