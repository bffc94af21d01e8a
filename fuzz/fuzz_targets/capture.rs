//! Any bytes as a captured file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_decode::fuzz::capture(data));
