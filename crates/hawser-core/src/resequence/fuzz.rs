//! What the fuzz target `pieces`, and the test `fuzz_smoke`, run on any bytes.

use super::{Arrival, Reassembler};
use crate::units::Time;
use std::time::Duration;

/// For how long a packet waits for its pieces.
const HOLD: Duration = Duration::from_millis(300);
/// Packets in progress at most.
const PARTIAL_MAX: usize = 64;

/// Any pieces of packets, of seven bytes each: its packet, offset, flags, the time since the last in ms, and its
/// length. What is put together is what was cut, and no more is kept than may be.
pub fn pieces(input: &[u8]) {
    let (mut reassembler, mut now) = (Reassembler::new(), Time::from_nanos(1));
    for piece in input.as_chunks::<7>().0 {
        let [id, at_high, at_low, flags, wait, len_high, len_low] = *piece;
        let (at, len) = (u16::from_be_bytes([at_high, at_low]), u16::from_be_bytes([len_high, len_low]) % 2_000);
        now = now + Duration::from_millis(u64::from(wait));
        let bytes: Vec<u8> = (0..usize::from(len)).map(|place| byte(id, usize::from(at) + place)).collect();
        let arrival = Arrival { partial: flags & 2 != 0, ..Arrival::default() };
        let more = flags & 1 != 0;
        if let Ok(Some(whole)) = reassembler.on_piece(now, id.into(), at, more, arrival, &bytes, HOLD) {
            assert_eq!(whole.arrival, arrival);
            let right = whole.packet.iter().enumerate().all(|(place, got)| *got == byte(id, place));
            assert!(right && !whole.packet.is_empty(), "packet {id} is another");
        }
        assert!(reassembler.in_progress() <= PARTIAL_MAX);
    }
    reassembler.expire(now + HOLD + HOLD, HOLD);
    assert_eq!(reassembler.in_progress(), 0, "all is forgotten in time");
}

/// The byte of a packet at that place.
fn byte(id: u8, place: usize) -> u8 {
    (place * 7 + place / 251) as u8 ^ id
}
