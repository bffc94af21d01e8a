//! SCION packets: read where they lie, written from a template (scion-header.rst, scmp.rst;
//! draft-dekater-scion-dataplane).
//!
//! Writing, once a flow and then once a packet:
//! 1. [`Template::new`] serialises headers of a flow and sums what every checksum has in common.
//! 2. [`Template::finish`] copies them before a payload and fills in lengths and checksum; [`Template::finish_run`]
//!    does so for packets of one length that lie in a row; [`Template::finish_tcp`] does without UDP, for a segment of
//!    TCP; [`Template::write_scmp`] writes a control message.
//!
//! Reading:
//! 3. [`Header`]: common header, addresses and path ([`DataplaneView`]).
//! 4. `extensions`: those of hops and of end hosts, passed over.
//! 5. [`parse`]: the whole of it, with what it carries: [`UdpView`], [`ScmpView`] or [`TcpView`].
//! 6. [`Quote`]: the beginning of a packet that an SCMP error came back with.
//! 7. [`dispatched_port`]: whose packet it is.

mod checksum;
mod dataplane;
mod dispatch;
mod extensions;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod header;
mod quote;
mod scmp;
mod tcp;
mod template;
mod udp;
mod view;
mod wire;

pub use dataplane::{DataplaneView, HopField, InfoField, NotReversible, PathType};
pub use dispatch::{ENDHOST_PORT, Undeliverable, dispatched_port};
pub use header::{Header, Host, Malformed, Part, Service};
pub use quote::{Quote, Quoted};
pub use scmp::{Echo, ScmpView, Traceroute};
pub use tcp::TcpView;
pub use template::{FlowId, Template, TemplateError};
pub use udp::UdpView;
pub use view::{Packet, Upper, parse};
pub use wire::{MAX_HEADER_LEN, MAX_SCMP_LEN, MAX_UDP_PAYLOAD, UDP_LEN, protocol};
