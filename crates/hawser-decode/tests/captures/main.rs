//! What is decoded of captures: whatever carries it, whatever they hold, and a whole session.

mod carriers;
mod garbage;
mod session;
#[path = "../support/mod.rs"]
mod support;
