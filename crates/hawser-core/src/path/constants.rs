//! Every number of this module, with its unit and its source.

use std::time::Duration;

// Round trips and probe timeouts.

/// The least time that a timer is trusted with (RFC 9002 section 6.1.2, kGranularity).
pub const GRANULARITY: Duration = Duration::from_millis(1);
/// What deviation counts for in a probe timeout, where a round trip is shorter (RFC 6298 section 2.4 has no timeout
/// under a second for the sake of delays that jump: here a second is added).
pub const DEVIATION_MAX: Duration = Duration::from_secs(1);
/// The round trip assumed before the first sample (RFC 9002 section 6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// A round trip that was last measured this many of them ago gives way to a shorter one at once: as many as RFC 6298's
/// smoothing (alpha 1/8) takes to forget where each brings a sample.
pub const STALE_ROUND_TRIPS: u32 = 8;
/// But at least this long ago: half of what an idle path is asked in (`session::constants::KEEPALIVE`).
pub const STALE_LEAST: Duration = Duration::from_millis(500);
/// How long the least round trip and the least one-way delay are remembered: as long as BBR's
/// min_rtt filter (draft-ietf-ccwg-bbr section 2.13.1, MinRTTFilterLen), so that a path whose delay rises recovers.
pub const MIN_WINDOW: Duration = Duration::from_secs(10);
/// The least one-way delay that the choice of paths goes by is that of two keepalives.
pub const FLOOR_WINDOW: Duration = Duration::from_secs(2);
/// How long the largest one-way delay is remembered: a second covers the jitter that a
/// resequencer must wait out, and forgets a spike soon.
pub const MAX_WINDOW: Duration = Duration::from_secs(1);
/// Probe timeouts double at most this often (RFC 9002 section 6.2.1 has no bound; health is down long before).
pub const MAX_PTO_DOUBLINGS: u32 = 6;

/// Frames that the age of packets at their acknowledgement is smoothed over.
pub const AGE_MEMORY: u32 = 32;
/// Frames after which that is taken for the path's: two or three round trips.
pub const AGE_FIRST: u32 = 8;
/// Part of the least round trip, and the least time, that packets wait for an acknowledgement's frame beside it: what
/// is more is the path's own spread.
pub const USUAL_AGE_PART: u32 = 4;
/// See [`USUAL_AGE_PART`].
pub const USUAL_AGE: Duration = Duration::from_millis(2);

// Acknowledging.

/// The longest delay of an acknowledgement: more costs the sender reaction time, less costs
/// packets (RFC 9000 section 13.2.1 has 25 ms; a bond's slow start wants less).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(5);
/// The shortest delay of an acknowledgement that waits at all: the timer's granularity.
pub const MIN_ACK_DELAY: Duration = GRANULARITY;
/// An acknowledgement waits at most for a quarter of a round trip (docs/wire.md, Data).
pub const ACK_DELAY_PARTS: u32 = 4;
/// Ack-eliciting packets that one acknowledgement waits for at least (RFC 9000 section 13.2.2).
pub const MIN_ACK_EVERY: u32 = 2;
/// Ack-eliciting packets that one acknowledgement waits for at most: half an offloaded super-packet.
pub const MAX_ACK_EVERY: u32 = 32;
/// Ranges remembered per path; the oldest goes first (RFC 9000 section 13.2.3). Where packets overtake each other by 70
/// ms, 50 Mbit/s leave about a hundred gaps that will be filled yet.
pub const MAX_RANGES_KEPT: usize = 512;
/// Ranges in one acknowledgement frame: half a packet.
pub const MAX_RANGES_SENT: usize = 256;
/// Packets below an acknowledged acknowledgement that stay in the ranges at least, since a reordered packet may
/// have come after that acknowledgement was written (RFC 9000 section 13.2.4 warns of it).
pub const TRIM_MARGIN: u64 = 128;
/// The same in multiples of the largest distance that a packet was overtaken by lately.
pub const TRIM_REACHES: u64 = 2;
/// The part of that distance that an acknowledged acknowledgement takes off: one that is seen no more is forgotten.
pub const REACH_DECAY: u64 = 64;
/// Between acknowledgements that a gap or a late packet makes due at once, at least: where packets overtake each other,
/// each of them is one.
pub const MIN_ACK_SPACING: Duration = GRANULARITY;
/// 64-bit words of the replay bitmap, a power of two (RFC 6479 section 2). One word is always being
/// refilled: the window is 255 * 64 = 16,320 numbers, 0.4 s of reordering at 500 Mbit/s.
pub const REPLAY_WORDS: usize = 256;

// Loss detection.

/// Later packets acknowledged before one is lost, at first (RFC 9002 section 6.1.1, kPacketThreshold).
pub const PACKET_THRESHOLD: u64 = 3;
/// The same where reordering was seen, at most: 100 ms of 1,400-byte packets at 450 Mbit/s. Beyond, time alone decides,
/// as RFC 8985 section 6.2 has it wherever reordering was seen.
pub const MAX_PACKET_THRESHOLD: u64 = 4_096;
/// Eighths of a round trip beyond the round trip before a packet is lost, at first (RFC 9002 section 6.1.2: 9/8).
pub const REORDER_EIGHTHS: u32 = 1;
/// How long beyond a round trip packets are waited for where they were seen to come so late. RFC 8985 section 6.2 stops
/// at one round trip; but where packets overtake each other, its samples are those of the fastest, and say nothing of
/// the others.
pub const MAX_REORDER_WAIT: Duration = Duration::from_millis(250);
/// The part of what was lacking that one loss declared too early adds to the wait: an outlier adds half of itself.
pub const REORDER_STEP: u32 = 2;
/// Loss episodes without reordering before tolerance is halved (RFC 8985 section 6.2, RACK.reo_wnd_persist).
pub const REORDER_PERSIST_EPISODES: u32 = 16;
/// Probe timeouts that a lost packet is remembered for, to notice that it was not lost.
pub const LOST_KEPT_PTOS: u32 = 3;
/// Settled packets remembered at most, whatever the probe timeout: bounds memory.
pub const MAX_SETTLED_KEPT: u64 = 16_384;
/// Probe timeouts of nothing but loss that are persistent congestion (RFC 9002 section 7.6.1).
pub const PERSISTENT_CONGESTION_PTOS: u32 = 3;

// Health.

/// How often a down path is probed at first (docs/wire.md, Data).
pub const DOWN_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Further probe timeouts of a suspect path before it is down.
pub const SUSPECT_PTOS: u32 = 3;
/// After one acknowledgement that came by another path the next ones may, for so long: a peer that suspects the path says
/// some of them by the path itself, as its quota goes ([`INACTIVE_BURST`] is there again after 1.3 s). Behind another
/// session's packets as long: what these fill has drained by then (`careful_start`, BESIDE).
pub const LATE_FOR: Duration = Duration::from_secs(1);
/// How long a path is suspect before it is down, but never less than one probe timeout.
pub const SUSPECT_FOR: Duration = Duration::from_millis(300);
/// How long where no other path works: what a link keeps it mostly delivers within that, and the path goes on as it
/// was.
pub const SUSPECT_ALONE: Duration = Duration::from_millis(1_500);
/// Drops within [`FLAP_WINDOW`] that are flapping: two returns are free, the third waits.
pub const FLAP_DROPS: usize = 3;
/// See [`FLAP_DROPS`].
pub const FLAP_WINDOW: Duration = Duration::from_secs(10);
/// Doublings of the first hold at most: 16 s of half a second.
pub const HOLD_DOUBLINGS: u32 = 5;
/// Each time that a path stays active this long takes one doubling back.
pub const HOLD_DECAY: Duration = Duration::from_secs(30);

// Validation.

/// Bytes that may go to an unvalidated address for each byte from it (RFC 9000 section 8.1).
pub const AMPLIFICATION: u64 = 3;
/// Challenges sent before validation has failed; waits double, so that it fails after 1 + 2 + 4 probe timeouts (RFC
/// 9000 section
/// 8.2.4 asks for at least three), but for the bound below. Answers count long after that.
pub const CHALLENGES: u32 = 3;
/// Probe timeouts that a move to another address may take (RFC 9000 section 8.2.4).
pub const MOVE_PTOS: u32 = 3;
/// The probe timeout of a path of which nothing is known: [`INITIAL_RTT`], and four times half of it (RFC 9002 sections
/// 6.2.1 and 6.2.2).
pub const INITIAL_PTO: Duration = Duration::from_millis(999);
/// The longest wait for an answer to a challenge before another is sent: a link that returns is found so soon.
pub const CHALLENGE_WAIT_MAX: Duration = DOWN_PROBE_INTERVAL;
/// How long the answer to a challenge counts. Links that keep packets through an outage release them afterwards:
/// cellular and satellite outages of up to 20 s were recorded (Hu et al., CoNEXT 2023), and a token is no secret that
/// ages.
pub const TOKEN_LIFE: Duration = Duration::from_secs(60);
/// Challenges of that time that are remembered for an address: four a second, twice what is sent.
pub const TOKENS_MAX: usize = 240;

// What a path that is not active may send.

/// Bytes of IP packets a second. Together with a burst, and with initiations that the session may send beside (two a
/// second of some 250 bytes), that is less than 10 kbit in any second in which it does not return: a path that may be
/// metered, or full, is not filled by looking for it.
pub const INACTIVE_RATE: u64 = 300;
/// Bytes that may go at once: a challenge, a response, and a few acknowledgements of 70 to 130 bytes.
pub const INACTIVE_BURST: u64 = 400;
/// Of them, what acknowledgements of a suspect path leave for the question whether it lives, and for its answer: three
/// pings. One that is suspected while it receives at 200 Mbit/s owes more than the quota takes: no ping would ever go, and
/// it could only return by going down.
pub const INACTIVE_RESERVE: u64 = 200;

// Path MTU.

/// Size of an IP packet that a path is taken to carry without a probe (RFC 8899 section 5.1.2, BASE_PLPMTU; RFC 8200
/// section 5).
pub const BASE_MTU: u16 = 1280;
/// Size of an IP packet below which nothing is searched (RFC 791 section 3.1: every host accepts 576).
pub const MIN_MTU: u16 = 576;
/// Sizes of IP packets that are common on real paths: PPPoE (1492), its tunnels (1452 1472), WireGuard (1420), LTE
/// (1400), IPv6's least.
pub const COMMON_MTUS: [u16; 7] = [1280, 1400, 1420, 1452, 1472, 1492, 1500];
/// Probes of one size that must be lost before it is too big (RFC 8899 section 5.1.2, MAX_PROBES).
pub const MAX_PROBES: u32 = 3;
/// How long an unanswered probe is waited for (RFC 8899 section 5.1.1: at least 1 s).
pub const PROBE_TIMER: Duration = Duration::from_secs(1);
/// How long a finished search stands (RFC 8899 section 5.1.1, PMTU_RAISE_TIMER).
pub const RAISE_TIMER: Duration = Duration::from_secs(600);
/// Bursts of lost large packets, small ones arriving after each, that are a black hole
/// (RFC 8899 section 4.3; three as MAX_PROBES).
pub const BLACK_HOLE_BURSTS: u32 = 3;

// One-way delay.

/// One part in this many of a new sample enters the smoothed delay (as RFC 6298 section 2, alpha).
pub const SMOOTH_PARTS: i64 = 8;
/// One part in this many of a new deviation enters the jitter (as RFC 6298 section 2, beta).
pub const JITTER_PARTS: i64 = 4;
