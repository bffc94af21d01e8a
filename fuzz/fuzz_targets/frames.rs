//! Any bytes as an opened payload.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::wire::fuzz::frames(data));
