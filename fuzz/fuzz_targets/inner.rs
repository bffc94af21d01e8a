//! Any bytes as a packet from TUN.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::packet::fuzz::packet(data));
