//! Network namespaces, and an emulated link between two of them.
//!
//! 1. [`Namespace`] makes a network namespace of our own, runs closures, threads and commands inside,
//!    and sets addresses, routes, offloads and sysctls there.
//! 2. [`veth`] joins two namespaces with an unshaped pair.
//! 3. [`EmulatedLink`] joins two namespaces with a link that has a rate, a queue, delay, jitter and loss,
//!    each way apart, changeable while it runs. This works on two TUN devices, without netem.
//!    [`fidelity`] says how well.
//! 4. [`Capture`] keeps what passes; a [`Watch`] looks at it.
//! 5. [`traffic`] sends and receives over what was built, and says what arrived.
//!
//! Everything here needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN) and says so where it lacks it.

mod capture;
mod clock;
mod emulate;
mod error;
mod ethtool;
pub mod fidelity;
mod folder;
mod namespace;
mod netlink;
mod packet_socket;
mod sweep;
mod sysctl;
pub mod traffic;
mod watch;

pub use capture::Capture;
pub use clock::{Moment, keep_time};
pub use emulate::{
    Access, Backend, Backoff, Codel, Counters, Direction, EmulatedLink, GilbertElliott, Jitter, LinkSpec, Loss, Medium,
    Probability, QueueDepth, Rate, Recording, Reorder, Spread, Timekeeping, Trace, TraceError, Way, emulate_until,
};
pub use error::WireError;
pub use ethtool::Feature;
pub use namespace::Namespace;
pub use netlink::{End, veth};
pub use sweep::{Whose, inhabitants, is_gone, sweep, teardown};
pub use sysctl::RpFilter;
pub use watch::{Look, Watch};
