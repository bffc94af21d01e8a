//! SCION for end hosts.
//!
//! 1. [`addr`]: who is meant: ISD, AS, host and port.
//! 2. [`path`]: a path to an AS, as its daemon told it.
//! 3. [`packet`]: packets, read where they lie and written from a template.
//! 4. [`conn`]: connections and sockets, whose paths are kept good.
//! 5. [`daemon`]: asks it for paths.
//! 6. [`select`]: which of them to use.
//! 7. [`probe`]: whether they work.
//! 8. [`service`]: keeps them fresh, and tells what changes.
//! 9. [`link`]: paths as links of a portal.
//! 10. [`xdp`]: the dispatcher bypass.
//! 11. [`bulk`]: files over several paths at once.

pub mod addr;
pub mod bulk;
pub mod conn;
pub mod daemon;
pub mod link;
pub mod packet;
pub mod path;
pub mod probe;
pub mod select;
pub mod service;
pub mod xdp;

pub use addr::{Asn, EndpointAddr, Isd, IsdAs};
pub use path::{Dataplane, Fingerprint, InterfaceId, Path, PathInterface};
