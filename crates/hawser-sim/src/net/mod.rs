//! The network between two portals: links of two directions, each with its own troubles.
//!
//! 1. A datagram leaves a portal and enters the queue of one direction of a link ([`pipe`]).
//! 2. It is sent at the link's rate, perhaps lost ([`loss`]), delayed, doubled, overtaken.
//! 3. On its way out of a home it passes a [`nat`], if there is one.

pub mod loss;
pub mod nat;
pub mod pipe;
pub mod recording;
pub mod spec;

pub use loss::Loss;
pub use nat::Nat;
pub use pipe::{Counters, Datagram, Due, Parcel, Pipe};
pub use recording::Recording;
pub use spec::{LinkSpec, Way, link};
