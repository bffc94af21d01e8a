//! Any bytes as a message to either side of a handshake.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::handshake::fuzz::handshake(data));
