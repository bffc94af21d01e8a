//! Any bytes as a packet with a TCP segment.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_shim::mptcp::fuzz::segment(data));
