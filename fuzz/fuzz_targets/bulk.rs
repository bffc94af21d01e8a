//! Any bytes as a frame or message of the bulk protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_bulk::wire::fuzz::frames(data));
