//! The sans-IO core of the bulk protocol: files over several paths at once. README.md has the protocol, byte by byte.
//!
//! 1. [`trust`]: who may send to whom, and the keys of a handshake.
//! 2. [`wire`]: frames, and the messages of the control stream ([`stream`]).
//! 3. [`layout`]: files, blocks, chunks; [`digest`]: what proves that a file is whole.
//! 4. [`sender`]: one queue of chunks, and paths with a window and a pace of their own.
//! 5. [`receiver`]: sessions, what acknowledgements say, and blocks being filled.
#![forbid(unsafe_code)]

pub mod digest;
pub mod layout;
pub mod receiver;
pub mod sender;
pub mod stream;
pub mod trust;
pub mod wire;

pub use layout::{BLOCK_LEN, BlockId, FileInfo, FileName, Layout};
