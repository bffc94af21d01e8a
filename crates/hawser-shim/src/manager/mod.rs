//! The manager: opens a subflow wherever there is a path without one, and ends those that have none.
//!
//! 1. [`prepare`] says what the kernel's MPTCP can do here, and which changes that asks for.
//! 2. [`Manager::start`]: a thread in the clients' network namespace.
//! 3. It hears the kernel's events and the packet thread's notices, and keeps a [`Book`] of connections.
//! 4. It does what the book says is due. What fails is tried again with growing pauses (`slot`).
//!
//! Only clients ask for subflows: a server's manager would only get in their way.

mod book;
mod prepare;
mod slot;
#[cfg(test)]
mod tests;
mod thread;

pub use book::{Act, Book, ORDINARY, Places};
pub use prepare::{Prepared, prepare};
pub use slot::{ANSWERED_WITHIN, FIRST_PAUSE, LONGEST_PAUSE};
pub use thread::{Input, Inputs, Manager};
