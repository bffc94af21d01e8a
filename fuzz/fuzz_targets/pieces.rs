//! Any pieces of packets.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::resequence::fuzz::pieces(data));
