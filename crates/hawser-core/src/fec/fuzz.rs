//! What the fuzz target `repairs` and the test `fuzz_smoke` run on any bytes.

use super::decoder::Decoder;
use crate::units::Time;
use crate::wire::{Frame, Frames};
use std::time::Duration;

/// A decoder that is fed any frames, each behind a byte for its length and one for the time since the last: it neither
/// panics nor grows, and what it hands out fits into what it was given.
pub fn repairs(input: &[u8]) {
    let (mut decoder, mut now) = (Decoder::default(), Time::from_nanos(1));
    let mut rest = input;
    while let [len, wait, behind @ ..] = rest {
        let (frame, behind) = behind.split_at(usize::from(*len).min(behind.len()));
        rest = behind;
        now = now + Duration::from_millis(u64::from(*wait) * 10);
        let check = |(_, packet): (_, &[u8])| assert!(!packet.is_empty() && packet.len() <= usize::from(u8::MAX));
        match Frames::new(frame).next() {
            Some(Ok(Frame::Protected(frame))) => decoder.on_source(now, &frame, check),
            Some(Ok(Frame::Repair(frame))) => decoder.on_repair(now, &frame, check),
            _ => {}
        }
        decoder.check();
    }
}
