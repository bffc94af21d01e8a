//! SCION for end hosts.
//!
//! 1. [`addr`]: who is meant: ISD, AS, host and port.
//! 2. [`path`]: a path to an AS, as its daemon told it.

pub mod addr;
pub mod path;

pub use addr::{Asn, EndpointAddr, Isd, IsdAs};
pub use path::{Dataplane, Fingerprint, InterfaceId, Path, PathInterface};
