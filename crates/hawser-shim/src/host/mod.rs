//! The shim's place in the host: interfaces, addresses, routes and rules.
//!
//! 1. [`Devices::make`] makes the TUN devices, among the host's own or in two namespaces (`devices`, `spaces`).
//! 2. [`Layout`] says what they are called, and `numbers` which routing tables are the shim's.
//! 3. `plan` says what the system is to have for a [`Layout`] and a map: pure, so that it can be tested as text.
//! 4. [`System`] sets it through the journal of `hawser_net::netcfg`, follows the map, and undoes all of it.
//! 5. [`own_addresses`] are the addresses by which servers here are reached.
//!
//! Which table a packet looks up, in this order:
//!
//! ```text
//!   came in by one of the shim's interfaces     nowhere: what is not for this host is not forwarded
//!   from egress k                               egress k     or nowhere: it never leaks
//!   from ingress                                ingress
//!   IPv4, no source yet, to the range           egress 1     a client that connects
//!   IPv6, any source, to surrogates             ingress      what a server answers from another address of its host
//!   IPv4, any source, to the range              ingress      the same
//!   IPv6, no source yet, to surrogates          egress 1
//!   no source yet, to the map, TCP or UDP       egress 1     as the map says
//! ```
//!
//! The shim's own packets are UDP to border routers and shims: surrogate and derived addresses they never have, and
//! rules for the map take what has no source yet, which they have.

mod address;
mod devices;
mod numbers;
mod plan;
mod spaces;
mod system;
#[cfg(test)]
mod tests;

pub use address::own_addresses;
pub use devices::{Devices, DevicesError};
pub use plan::{Interface, Layout};
pub use spaces::Spaces;
pub use system::{JOURNALS, System};
