//! The ordinary internet between client and server: one emulated link, at addresses of its own.

use std::net::Ipv4Addr;

use hawser_wire::{Counters, Direction, EmulatedLink, End, LinkSpec, Way};

use crate::cleanup;
use crate::error::LabError;
use crate::localnet::Host;

/// The client's ordinary address (RFC 5737).
const INTERNET_CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The server's.
pub const INTERNET_SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Their interface.
const INTERFACE: &str = "inet0";

/// The link. Starts whole; removed on drop. One owner.
#[derive(Debug)]
pub struct Beside(EmulatedLink);

impl Beside {
    /// Between two hosts, the same both ways.
    pub fn join(client: &Host, server: &Host, way: &Direction) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let end = |host: &Host, address: Ipv4Addr| End::new(&host.namespace, INTERFACE, &[&format!("{address}/24")]);
        let ends = (end(client, INTERNET_CLIENT), end(server, INTERNET_SERVER));
        Ok(Self(EmulatedLink::new(LinkSpec::symmetric(INTERFACE, ends.0, ends.1, way))?))
    }

    /// What the client has sent by it.
    pub fn sent(&self) -> Counters {
        self.0.counters(Way::BOTH[0])
    }
}
