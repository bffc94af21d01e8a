//! What is changed in segments on their way.

use hawser_core::packet::checksum;
use hawser_core::packet::inner::TCP_HEADER;

use crate::mptcp::{Flags, Segment};

/// The option, its length (RFC 9293 section 3.2), and options without a length.
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const OPTION_LEN: usize = 4;
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// Where a TCP header has its checksum (RFC 9293 section 3.1).
const CHECKSUM_AT: usize = 16;

/// Lowers the largest segment that a SYN says its sender takes. Says whether it was larger. `partial`: the checksum is
/// the pseudo-header's sum alone, which no option is part of.
pub(super) fn clamp(packet: &mut [u8], most: u16, partial: bool) -> bool {
    let Ok(segment) = Segment::parse(packet) else { return false };
    if !segment.flags.has(Flags::SYN) {
        return false;
    }
    let tcp_at = usize::from(segment.tcp_at);
    let end = tcp_at + TCP_HEADER + segment.options_len();
    let mut at = tcp_at + TCP_HEADER;
    while at < end {
        match packet[at] {
            END => return false,
            NO_OPERATION => at += 1,
            kind => {
                let Some(&len) = packet.get(at + 1).filter(|len| **len >= 2 && at + usize::from(**len) <= end) else {
                    return false;
                };
                if kind == MAXIMUM_SEGMENT_SIZE && usize::from(len) == OPTION_LEN {
                    return lower(packet, tcp_at, at + 2, most, partial);
                }
                at += usize::from(len);
            }
        }
    }
    false
}

fn lower(packet: &mut [u8], tcp_at: usize, at: usize, most: u16, partial: bool) -> bool {
    let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
    if old <= most {
        return false;
    }
    // The sum is over pairs of bytes from the header's start on: a value at an odd place is summed in swapped bytes.
    let swap = |value: u16| if (at - tcp_at).is_multiple_of(2) { value } else { value.swap_bytes() };
    packet[at..at + 2].copy_from_slice(&most.to_be_bytes());
    if !partial {
        let place = tcp_at + CHECKSUM_AT;
        let sum = u16::from_be_bytes([packet[place], packet[place + 1]]);
        let sum = checksum::update(sum, swap(old), swap(most));
        packet[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::TcpOption;
    use crate::mptcp::samples::{Draft, v6};

    fn said(packet: &[u8]) -> Option<u16> {
        Segment::parse(packet).unwrap().options().find_map(|option| match option {
            TcpOption::MaximumSegmentSize(size) => Some(size),
            _ => None,
        })
    }

    fn verifies(packet: &[u8]) -> bool {
        let segment = Segment::parse(packet).unwrap();
        let tcp = &packet[usize::from(segment.tcp_at)..];
        checksum::verifies(checksum::pseudo(segment.source.ip(), segment.destination.ip(), 6, tcp.len()), tcp)
    }

    #[test]
    fn a_syn_says_no_more_than_the_path_takes_and_its_checksum_stays_right() {
        let mss = [2, 4, 5, 180];
        let table: [(&[u8], u16, Option<u16>, bool); 6] = [
            (&mss, 1300, Some(1300), true),
            (&mss, 1460, Some(1460), false),
            (&mss, 2000, Some(1460), false),
            (&[1, 2, 4, 5, 180], 1300, Some(1300), true),
            (&[0, 0, 0, 0, 2, 4, 5, 180], 1300, None, false),
            (&[], 1300, None, false),
        ];
        for (options, most, expected, changed) in table {
            for (from, to) in [(Draft::default().from, Draft::default().to), (v6(1), v6(2))] {
                let draft = Draft { from, to, flags: Flags::SYN, options: options.to_vec(), ..Draft::default() };
                let mut packet = draft.packet();
                assert_eq!(clamp(&mut packet, most, false), changed, "{options:?}");
                assert_eq!((said(&packet), verifies(&packet)), (expected, true), "{options:?}");
            }
        }
    }

    #[test]
    fn other_segments_and_partial_checksums_are_left_alone() {
        let draft = Draft { options: vec![2, 4, 5, 180], ..Draft::default() };
        let mut packet = draft.packet();
        assert!(!clamp(&mut packet, 100, false));
        assert_eq!(packet, draft.packet());
        let mut syn = Draft { flags: Flags::SYN, ..draft }.packet();
        let before = syn[36..38].to_vec();
        assert!(clamp(&mut syn, 100, true));
        assert_eq!((said(&syn), &syn[36..38]), (Some(100), &before[..]));
    }

    #[test]
    fn nothing_cut_short_is_changed() {
        let draft = Draft { flags: Flags::SYN, options: vec![1, 1, 1, 2], ..Draft::default() };
        let mut packet = draft.packet();
        assert!(!clamp(&mut packet, 100, false));
        for len in 0..packet.len() {
            clamp(&mut packet[..len], 100, false);
        }
    }
}
