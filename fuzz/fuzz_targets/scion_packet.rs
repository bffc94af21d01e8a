//! Any bytes as a SCION packet.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_scion::packet::fuzz::packet(data));
