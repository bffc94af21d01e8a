//! Any bytes as a datagram of the shim.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_shim::compress::fuzz::datagram(data));
