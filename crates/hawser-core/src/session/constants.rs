//! The session's constants, each with its unit and source.

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
/// Time without inner packets after which a session is idle, and so is a path of a tier that is not used. Until then it
/// is asked as often as one in use: pauses of web and calls are shorter.
pub const IDLE_AFTER: Duration = Duration::from_secs(10);
/// On an idle path its opener says something this often, which keeps a NAT binding and is not answered: Linux forgets a
/// UDP flow after 30 s (nf_conntrack_udp_timeout); WireGuard's advice is 25 s. With [`crate::handshake::IDLE_REKEY`]
/// that is 9.9 MB in 30 days on a link, both ways together, IP headers included.
pub const IDLE_KEEPALIVE: Duration = Duration::from_secs(29);
/// The same on a path of a tier that is not used: 85 kB a day. Linux keeps a flow that was answered for 120 s.
pub const STANDBY_KEEPALIVE: Duration = Duration::from_secs(55);
/// Time without a datagram on an idle path after which the receiving side pings it: three keepalives of a standby path
/// were lost.
pub const IDLE_DEAF: Duration = Duration::from_secs(180);
/// A path that is down for long is probed this often while the session is idle: once in a part ([`EAGER_PARTS`]) of the
/// time that it is down, but no more seldom.
pub const IDLE_PROBE: Duration = Duration::from_secs(60);
/// A packet is retransmitted at most this often; then the far side is told that it is gone.
pub const MAX_TRIES: u8 = 6;
/// A path that carried data within this time counts for the hold time.
pub const LATELY: Duration = Duration::from_secs(1);
/// Without an acknowledgement on any path for this long at most, or the probe timeout of the fastest if that is longer,
/// the peer is sent a new initiation.
pub const SILENCE: Duration = Duration::from_secs(1);
/// But for this many probe timeouts of its slowest path, and at least so long: a peer that was killed and started again
/// is back within half a second, and one that is only slow is left alone.
pub const SILENCE_PTOS: u32 = 3;
/// See [`SILENCE_PTOS`].
pub const SILENCE_LEAST: Duration = Duration::from_millis(350);
/// A peer that was not heard for so long is gone: its session ends, and its keys are erased (WireGuard whitepaper
/// section 6.3: three times Reject-After-Time).
pub const SESSION_SILENCE: Duration = Duration::from_secs(540);
/// A silent peer is asked as often as any path that is down for so long; then ever more seldom.
pub const EAGER: Duration = Duration::from_secs(60);
/// From then on once in this part of the silence, or of what a path is down: who returns is noticed after 4 % of that.
pub const EAGER_PARTS: u32 = 24;
/// But at least this often while there is a session or something to send (WireGuard's Rekey-Timeout).
pub const ASK_LEAST: Duration = Duration::from_secs(5);
/// What waited so long in the ingress queue is of no use: TCP has sent it three times since (RFC 6298 section 5.5:
/// after 1, 3 and 7 s).
pub const QUEUED_FOR: Duration = Duration::from_secs(10);
/// What comes from or for a peer of a hub that may be this member's in a moment is held for so long: a few round trips
/// of a claim, and what a router takes to notice that its owner died, three times 30 ms and more (RFC 5880 section
/// 6.8.4).
pub const HELD_FOR: Duration = Duration::from_millis(500);
/// Packets from a peer that are held at most: 50 Mbit/s for 60 ms.
pub const HELD_PACKETS: usize = 256;
/// What waits this long for a strict rule's links, none of which works, is dropped: a link that was lost for a moment
/// is back.
pub const STRICT_WAIT: Duration = Duration::from_secs(1);
/// The TUN's MTU never goes below this (RFC 8200 section 5).
pub const TUN_MTU_MIN: u16 = 1280;
/// The TUN's MTU is raised at most this often: hosts then find each change once.
pub const TUN_MTU_RAISE: Duration = Duration::from_secs(60);
/// Path ids of the peer's, ahead of the highest that was used, for which labels are known (docs/wire.md).
pub const LABELS_AHEAD: u32 = 16;
/// Old receive keys live this many of the largest probe timeouts (RFC 9001 section 6.1).
pub const OLD_KEY_TIMEOUTS: u32 = 3;
/// Handshakes that both sides began are over within so long of the first one's end: each side hears the other under the
/// other's keys within a round trip, but for what is lost and repeated.
pub const CROSSING: Duration = Duration::from_secs(5);
/// But within no less than this many of the largest probe timeouts: one, and another for the loss.
pub const CROSSING_TIMEOUTS: u32 = 2;
/// The largest probe timeouts that new keys take until both sides seal under them: initiation, response and first
/// datagram are three ways, and who answers has keys that are a way older.
pub const REKEY_TIMEOUTS: u32 = 2;
/// A driver that did not call for so long did not run: the endpoint asks to be woken each second at least
/// (housekeeping), and a quarter is what a busy machine may be late by.
pub const ASLEEP: Duration = Duration::from_millis(1_250);
