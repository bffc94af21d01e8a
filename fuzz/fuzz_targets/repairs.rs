//! Any frames to the decoder of repairs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::fec::fuzz::repairs(data));
