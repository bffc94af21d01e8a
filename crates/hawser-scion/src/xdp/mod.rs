//! The dispatcher bypass: packets that come to a host's dispatcher port go straight to their application.
//!
//! 1. `bpf/dispatch.bpf.c` is the program that an interface runs for each packet; [`layout`] is what it shares with
//!    this side.
//! 2. [`bypass`] loads it, attaches it and takes it off again; [`pins`] is where it stays meanwhile, [`interfaces`]
//!    what it runs on.
//! 3. [`lease`] is how an application has its port put on the [`whitelist`]; [`sockets`] tells which ports are nobody's
//!    any more.
//! 4. [`error`]: without a bypass packets go by the dispatcher, and the reason can be told.

mod bypass;
mod error;
mod interfaces;
mod layout;
mod lease;
mod pins;
mod sockets;
mod whitelist;

pub use bypass::{Allowed, Attached, Bypass, On, Status, Wanted, detach, status};
pub use error::XdpError;
pub use interfaces::Mode;
pub use layout::{Counters, Left};
pub use lease::{Arrangement, Delivery, DeliveryError, Lease};

#[cfg(test)]
mod tests;
