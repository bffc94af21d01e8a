//! Acknowledgements of TCP that a newer one makes useless (ACK filtering, RFC 3449 section 5.2.1).

use super::inner::{Inner, TCP_HEADER, Transport, be32};
use super::tcp_options::{Malformed, options};
use super::train::{ACK, CWR, ECE, TCP_FLAGS};

/// Where a TCP header has its sequence and acknowledgement numbers and its length (RFC 9293 section 3.1), bytes.
const SEQUENCE: usize = 4;
const ACK_NUMBER: usize = 8;
const DATA_OFFSET: usize = 12;
/// The timestamps option (RFC 7323 section 3.2) and its length, bytes.
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_LEN: u8 = 10;

/// Whether `newer` acknowledges more than `older`, and says all else that `older` does: both are of one flow, nothing
/// but acknowledgements, with the same sequence number and ECN bits and no option but timestamps. One with SACK blocks,
/// a repeated one and one that only changes the window say something of their own.
pub(super) fn supersedes(newer: (&[u8], &Inner), older: (&[u8], &Inner)) -> bool {
    let Some(new) = pure(newer) else { return false };
    let Some(old) = pure(older) else { return false };
    // With IP headers of one length, too: the queue keeps the length of the one whose place the other takes.
    let flow = |inner: &Inner| (inner.source, inner.destination, inner.ports, inner.traffic_class, inner.transport_at);
    let rest = |tcp: &[u8]| (be32(tcp, SEQUENCE), tcp[DATA_OFFSET], tcp[TCP_FLAGS]);
    let more = be32(new, ACK_NUMBER).wrapping_sub(be32(old, ACK_NUMBER)) as i32;
    flow(newer.1) == flow(older.1) && rest(new) == rest(old) && more > 0
}

/// Whether a packet is nothing but an acknowledgement, perhaps with timestamps.
pub(super) fn is_pure(packet: &[u8], inner: &Inner) -> bool {
    pure((packet, inner)).is_some()
}

/// The TCP header of a packet that is nothing but an acknowledgement, perhaps with timestamps.
fn pure<'p>((packet, inner): (&'p [u8], &Inner)) -> Option<&'p [u8]> {
    let Transport::Tcp { header } = inner.transport else { return None };
    let tcp = &packet[usize::from(inner.transport_at)..];
    let bare = tcp.len() == usize::from(header) && tcp[TCP_FLAGS] & !(ECE | CWR) == ACK;
    let timestamps = |option: Result<&[u8], Malformed>| matches!(option, Ok([TIMESTAMPS, TIMESTAMPS_LEN, ..]));
    (bare && options(&tcp[TCP_HEADER..]).all(timestamps)).then_some(tcp)
}

#[cfg(test)]
mod tests {
    use super::super::inner;
    use super::super::samples::Sample;
    use super::*;

    fn ack() -> Sample {
        Sample { payload: 0, ..Sample::default() }
    }

    fn useless(newer: &[u8], older: &[u8]) -> bool {
        let parse = |packet| inner::parse(packet).expect("a packet");
        supersedes((newer, &parse(newer)), (older, &parse(older)))
    }

    #[test]
    fn of_two_acknowledgements_the_newer_one_says_all() {
        for v6 in [false, true] {
            for ack_number in [9, u32::MAX - 3] {
                let older = Sample { v6, ack: ack_number, ..ack() };
                let newer = Sample { ack: ack_number.wrapping_add(1_000), ..older.clone() };
                assert!(useless(&newer.full(), &older.full()), "{older:?}");
                assert!(!useless(&older.full(), &newer.full()), "an overtaken one");
                assert!(!useless(&older.full(), &older.full()), "a repeated one, or a window's");
            }
        }
    }

    #[test]
    fn what_says_something_of_its_own_stays() {
        let older = ack();
        let newer = Sample { ack: 1_000, ..ack() };
        let others = [
            ("data", Sample { payload: 1, ..newer.clone() }),
            ("end", Sample { flags: 0x11, ..newer.clone() }),
            ("congestion", Sample { flags: 0x50, ..newer.clone() }),
            ("marked", Sample { traffic_class: 3, ..newer.clone() }),
            ("sequence", Sample { sequence: 5, ..newer.clone() }),
            ("header", Sample { tcp_words: 0, ..newer.clone() }),
            ("options of IP", Sample { ip_words: 1, ..newer.clone() }),
            ("flow", Sample { ports: (4_001, 443), ..newer.clone() }),
            ("address", Sample { v6: true, ..newer.clone() }),
            ("datagram", Sample { udp: true, payload: 8, ..newer }),
        ];
        for (name, other) in others {
            assert!(!useless(&other.full(), &older.full()), "{name}");
        }
    }

    #[test]
    fn options_other_than_timestamps_keep_it() {
        let (older, newer) = (ack().full(), Sample { ack: 1_000, ..ack() }.full());
        let with = |packet: &[u8], options: [u8; 12]| [&packet[..40], &options].concat();
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let cut_short = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 10];
        let trailing = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 30, 2];
        for (options, expected) in [(timestamps, true), (sack, false), (cut_short, false), (trailing, false)] {
            assert_eq!(useless(&with(&newer, options), &with(&older, options)), expected, "{options:?}");
            assert_eq!(useless(&with(&newer, timestamps), &with(&older, options)), expected, "{options:?}");
        }
    }
}
