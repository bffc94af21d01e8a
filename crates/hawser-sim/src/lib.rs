//! Virtual links, NATs and time under the core, with end hosts.
//!
//! ```text
//!   hosts -- local portal ==[ link 0: pipes, NAT ]== remote portal -- hosts
//!                         ==[ link 1 ...         ]==
//! ```
//!
//! 1. [`world::World`] holds two portals, the links between them and the hosts behind them.
//! 2. It takes the next event (an arrival, a deadline, an act of the scenario), in virtual time.
//! 3. Whatever that moved is polled until it rests: hosts, batches, deliveries.
//! 4. Afterwards the hosts know what was sent and what came, packet by packet.
//!
//! The same seed gives the same run, to the nanosecond.
#![forbid(unsafe_code)]

pub mod ablation;
pub mod bounds;
pub mod direct;
pub mod drive;
pub mod events;
pub mod family;
pub mod fuzz;
pub mod host;
pub mod hostile;
pub mod hub;
pub mod judge;
pub mod million;
pub mod net;
pub mod outage;
pub mod portal;
pub mod random;
pub mod recorded;
pub mod situation;
pub mod tcp;
pub mod topology;
pub mod trace;
pub mod world;
pub mod year;

pub use situation::{Case, on};
pub use world::{Act, LOCAL, REMOTE, World};
