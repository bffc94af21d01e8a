//! What a portal must withstand (docs/security.md), as far as the core can show it: each test says
//! what was sent, and checks what state and which bytes came back.

mod flood;
mod liar;
mod lies;
mod memory;
mod outside;
mod stage;
mod system;
