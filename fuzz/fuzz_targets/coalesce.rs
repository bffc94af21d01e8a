//! Any packets on their way to TUN.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::packet::fuzz::coalesce(data));
