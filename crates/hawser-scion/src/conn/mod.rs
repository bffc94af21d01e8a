//! SCION over one UDP port: fast, and with its paths kept good.
//!
//! 1. Who knows paths implements [`Paths`]; inside the AS none are needed ([`PathTable::default`]).
//! 2. [`ScionConn`]: one destination. [`ScionSocket`]: any, and answers along the path a packet came by.
//! 3. Payloads are written in place behind their headers and leave as trains ([`Batch`]); what comes is handed out
//!    where the kernel put it ([`Datagram`]). A single packet is a batch of one.
//! 4. Paths are renewed ahead of their expiry, and replaced when a router says that they died: [`Event`] tells.
//!    What routers say is read when somebody receives.
//! 5. [`threaded`]: with threads and queues of its own, for callers that have one packet at a time.
//!    [`AsyncConn`] and [`AsyncSocket`]: on tokio. [`quic`]: quinn over it.
//!
//! Everything works by `&self` from several threads.

mod asynchronous;
mod connection;
mod counters;
mod dead;
mod echo;
mod error;
mod events;
mod flow;
mod flows;
mod keeper;
mod opts;
mod pace;
mod paths;
mod port;
pub mod quic;
mod receive;
mod renewal;
mod scmp;
mod send;
mod socket;
pub mod threaded;
mod way;

pub use asynchronous::{AsyncConn, AsyncSocket};
pub use connection::{ScionConn, Sender};
pub use counters::Stats;
pub(crate) use dead::DeadParts;
pub use dead::{DeadPart, FIRST_DEATH, LONGEST_DEATH};
pub use error::{OpenError, RecvError, RouteError, SendError};
pub use events::{Event, Remote, Unreachable};
pub use flows::WayBack;
pub use opts::{ConnOpts, DEFAULT_RECEIVE_BUFFER, END_HOST_PORT, Finding, LEAST_MTU, PortRange, TcpPackets};
pub use pace::Pace;
pub use paths::{LookupError, PathTable, Paths};
pub use receive::{Carried, Datagram};
pub use send::{Batch, PushError, Sent};
pub use socket::ScionSocket;
