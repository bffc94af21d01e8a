//! The emulated link: two TUN devices and a thread that carries packets between them.
//!
//! ```text
//!  namespace A                        the link's thread                          namespace B
//!  ┌───────┐  1 read  ┌───────┐ 2 serialise ┌──────┐ 3 lose ┌────────┐ 5 write  ┌───────┐
//!  │ TUN a ├─────────►│ queue ├────────────►│ rate ├───────►│ flight ├─────────►│ TUN b │
//!  └───────┘ at once  └───────┘ drop-tail   └──────┘        └────────┘ when due └───────┘
//!                                                   4 delay, jitter
//! ```
//!
//! and the same from B to A, with settings of its own. `spec` says what can be set, `pipe` is one way
//! as pure arithmetic on given times, `engine` is the thread, `link` what a user holds.

mod air;
mod backend;
mod codel;
mod counters;
mod dice;
mod engine;
mod jitter;
mod link;
mod loss;
mod medium;
mod netem;
mod pipe;
mod slab;
mod spec;
mod thread;
mod trace;
mod tun;

pub use backend::{Backend, Timekeeping};
pub use codel::Codel;
pub use counters::Counters;
pub use jitter::{Jitter, Spread};
pub use link::{EmulatedLink, LinkSpec, emulate_until};
pub use loss::{GilbertElliott, Loss};
pub use medium::{Access, Backoff, Medium};
pub use spec::{Direction, Probability, QueueDepth, Rate, Reorder, Way};
pub use trace::{Recording, Trace, TraceError};
