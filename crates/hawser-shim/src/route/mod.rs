//! Where a TCP address is in SCION, and which TCP addresses a SCION host has.
//!
//! 1. [`Surrogate`]: an IPv6 address that embeds a shim's SCION end. No map is needed for it.
//! 2. [`Derived`]: IPv4 addresses by a hash of a SCION host, which cannot be turned back.
//! 3. [`Addresses`]: both, as an interface of a shim has them.
//! 4. [`RouteTable`]: the surrogate decoded, else the map; and what a SCION host may send as inner source.
//! 5. [`Keeper`]: makes a new table when the map's file or what names mean changes.

mod addresses;
mod derived;
mod keeper;
mod surrogate;
mod table;
#[cfg(test)]
mod tests;

pub use addresses::{Addresses, InterfaceIndex, MAX_EGRESS, NoAddress, ScionHost};
pub use derived::{DEFAULT_RANGE, Derived, LONGEST_RANGE};
pub use keeper::{Keeper, KeeperError, Source};
pub use surrogate::{NoSurrogate, SURROGATES, ShimEnd, Surrogate};
pub use table::{Clash, Destination, Port, RouteTable, Side, Target};
