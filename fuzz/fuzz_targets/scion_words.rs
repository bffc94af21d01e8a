//! Any bytes as a packet that came to a SCION link: what routers say by SCMP.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_scion::link::fuzz::words(data));
