//! Any SCION packet, written again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_scion::packet::fuzz::roundtrip(data));
