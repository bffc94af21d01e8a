//! Any bytes as the stream of a TCP link.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_net::link::tcp::fuzz::records(data));
