//! Any bytes as a handshake message.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::wire::fuzz::messages(data));
