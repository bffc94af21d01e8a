//! Any bytes as a data datagram's header.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| hawser_core::wire::fuzz::header(data));
