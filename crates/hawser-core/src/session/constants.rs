//! The session's constants, each with its unit and source.

use crate::units::ByteCount;
use std::time::Duration;

/// Frames of one datagram must leave room for its header and tag.
pub use crate::wire::DATA_OVERHEAD;

/// Segments in one batch to one path: Linux sends at most 64 per UDP_SEGMENT call before 6.9.
pub const BATCH_SEGMENTS: u16 = 64;
/// Bytes in one batch: the largest UDP payload, less room for headers.
pub const BATCH_BYTES: usize = 65_000;
/// Round trip assumed before one is measured (RFC 9002 section 6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// An idle path is asked this often whether it still lives: it finds a silent cut before traffic
/// does and keeps a NAT binding; at most one probe a second is what a metered link accepts.
pub const KEEPALIVE: Duration = Duration::from_secs(1);
/// A probe of a suspect path is answered this late beyond a round trip: an acknowledgement waits for a quarter of it, and a
/// host may be busy.
pub const DOUBT: Duration = Duration::from_millis(15);
/// A packet is sent again at most this often; then the far side is told that it is gone.
pub const MAX_TRIES: u8 = 6;
/// A path that carried data within this time counts for the hold time.
pub const LATELY: Duration = Duration::from_secs(1);
/// A word on the hold time is repeated this often while data flows, because it is not acknowledged.
pub const HOLD_REPEAT: Duration = Duration::from_millis(200);
/// A change of the hold time by more than this share is told at once.
pub const HOLD_CHANGE: f64 = 0.25;
/// A gap is waited for as many of the largest probe timeouts: what was lost twice is home by then.
pub const HOLD_TIMEOUTS: u32 = 3;
/// The same in times until a loss is noticed: what is sent again then may be late too.
pub const HOLD_LOSSES: u32 = 2;
/// The least and the most that a gap is worth waiting for. Below the first the hosts' own jitter
/// decides; beyond the second a congestion-controlled sender has long sent it again itself.
pub const HOLD_MIN: Duration = Duration::from_millis(10);
/// See `HOLD_MIN`.
pub const HOLD_MAX: Duration = Duration::from_secs(3);
/// Without an acknowledgement on any path for this long, the peer is greeted anew (DESIGN section 4).
pub const SILENCE: Duration = Duration::from_secs(1);
/// CoDel's interval is at least this (RFC 8289 section 4.2).
pub const CODEL_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// While the rate of a path is sought, CoDel's interval is as many of its round trips: what waits finds that rate out.
pub const EXPLORATION_ROUNDS: u32 = 6;
/// But no more than this by them; what CoDel's interval has otherwise is not bounded so.
pub const CODEL_INTERVAL_MAX: Duration = Duration::from_millis(1_000);
/// CoDel's target is at least this: a flow of the kernel's CUBIC loses nothing at 20 ms round trip.
pub const CODEL_TARGET_MIN: Duration = Duration::from_millis(10);
/// CoDel's target is at least what so many bytes take at the bond's rate: a flow's initial window
/// (RFC 6928: ten segments) is no standing queue, however thin the bond.
pub const CODEL_TARGET_BYTES: ByteCount = ByteCount(15_000);
/// CoDel's target is at most this, however long the round trip.
pub const CODEL_TARGET_MAX: Duration = Duration::from_millis(60);
/// How many mean deviations the late packets of a path take beyond the average (as RFC 6298 section 2 has it, K).
pub const LATE_JITTERS: u32 = 4;
/// The most that a bulk flow's packets wait for a slower path's sake.
pub const CODEL_REACH_MAX: Duration = Duration::from_millis(400);
/// A bulk flow's turn lasts this long at the bond's rate, so that trains stay whole where there are hundreds of flows: 64 KiB
/// from 3.5 Gbit/s on, one packet below 80 Mbit/s.
pub const QUANTUM_TIME: Duration = Duration::from_micros(150);
/// And is at most one large train.
pub const QUANTUM_MAX: ByteCount = ByteCount(65_536);
/// Where a bond splits flows, acknowledgements of bulk are this far apart: HyStart takes a gap of 2 ms for the end of a train of
/// them (Linux, `hystart_ack_delta_us`), and hosts are late by half a millisecond.
pub const ACK_SPACING: Duration = Duration::from_millis(3);
/// But only where the least round trip is so many times as long.
pub const ACK_SPACING_PART: u32 = 6;
/// A slow start is over in so many round trips: ten segments (RFC 6928) that double each time are 40 MB then.
pub const SLOW_START_ROUNDS: u32 = 12;
/// What may wait at all: 100 ms of the bond's rate, at least the queue's own limit (reached at 670 Mbit/s), at most a window of
/// 100 KB for each of 300 flows.
pub const QUEUE_TIME: Duration = Duration::from_millis(100);
/// See `QUEUE_TIME`.
pub const QUEUE_MAX: ByteCount = ByteCount(32 << 20);
/// For so long after the bond lost rate its queue keeps room for what it carried before: links that
/// flap, hand over or restart mostly return within that time.
pub const RATE_MEMORY: Duration = Duration::from_secs(30);
/// The queue keeps room for at most so many times the present rate.
pub const RATE_MEMORY_MAX: f64 = 4.0;
/// The TUN's MTU never goes below this (RFC 8200 section 5).
pub const TUN_MTU_MIN: u16 = 1280;
/// The TUN's MTU is raised at most this often (DESIGN section 4).
pub const TUN_MTU_RAISE: Duration = Duration::from_secs(60);
/// Path ids ahead of the highest seen for which labels are known (docs/wire.md).
pub const LABELS_AHEAD: u32 = 16;
/// Closed path ids of the peer that are told apart; those far below them count as closed.
pub const CLOSED_KEPT: usize = 64;
/// Old receive keys live this many of the largest probe timeouts (DESIGN section 3).
pub const OLD_KEY_TIMEOUTS: u32 = 3;
