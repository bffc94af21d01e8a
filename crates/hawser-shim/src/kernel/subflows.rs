//! The path manager in user space: what is done to one connection. Source of all numbers: linux/mptcp_pm.h.

use std::net::{IpAddr, SocketAddr};

use hawser_net::genetlink::{Attributes, Generic};
use hawser_net::netcfg::{
    EndpointFlags, Feature, IfIndex, MPTCP_FAMILY, MPTCP_VERSION, NetConfigError, encode_address,
};
use rustix::io::Errno;

use crate::mptcp::{AddressId, Token};

const SET_FLAGS: u8 = 7;
const ANNOUNCE: u8 = 8;
const REMOVE: u8 = 9;
const SUBFLOW_CREATE: u8 = 10;
const SUBFLOW_DESTROY: u8 = 11;

const ATTR_ADDR: u16 = 1;
const ATTR_TOKEN: u16 = 4;
const ATTR_LOC_ID: u16 = 5;
const ATTR_ADDR_REMOTE: u16 = 6;
const ADDR_IF_IDX: u16 = 7;

/// Tells the kernel what to do with subflows of connections, by their tokens, in the network namespace of the thread
/// that opened it. There is no default. One owner; what it did stays when it drops.
#[derive(Debug)]
pub struct Subflows(Generic);

impl Subflows {
    /// Opens a connection to the kernel's path manager.
    ///
    /// # Errors
    /// [`NetConfigError::MissingFeature`] where the kernel has no MPTCP.
    pub fn open() -> Result<Self, NetConfigError> {
        Generic::open(MPTCP_FAMILY, MPTCP_VERSION).map(Self).map_err(|errno| match errno {
            Errno::NOENT => NetConfigError::lacking("reach", "path manager of mptcp", Feature::Mptcp),
            errno => NetConfigError::refused("reach", "path manager of mptcp", errno),
        })
    }

    /// Tells the peer of another address of ours; the peer's kernel may open a subflow to it.
    ///
    /// # Errors
    /// `EINVAL` where there is no such connection, it is not ours to manage, or `id` is 0 or another address's.
    pub fn announce(&self, of: Token, id: AddressId, address: IpAddr, port: Option<u16>) -> Result<(), NetConfigError> {
        let mut request = begin(of);
        request.nested(ATTR_ADDR, &encode_address(address, Some(id.0), port, EndpointFlags::SIGNAL));
        self.ask("announce", address.to_string(), ANNOUNCE, &request)
    }

    /// Tells the peer that an address is gone; subflows that use it end.
    ///
    /// # Errors
    /// `EINVAL` where there is no such connection, it is not ours to manage, or has no address of this id.
    pub fn remove(&self, of: Token, id: AddressId) -> Result<(), NetConfigError> {
        let mut request = begin(of);
        request.bytes(ATTR_LOC_ID, &[id.0]);
        self.ask("remove", format!("address {} of mptcp connection {of}", id.0), REMOVE, &request)
    }

    /// Opens a subflow from an address, which the peer will know by `id`, out of an interface where one is named. It is
    /// established when [`super::Event::SubflowEstablished`] says so.
    ///
    /// # Errors
    /// `EINVAL` where there is no such connection, it is not ours to manage, or `id` is another address's.
    pub fn create(
        &self,
        of: Token,
        id: AddressId,
        local: IpAddr,
        interface: Option<IfIndex>,
        remote: SocketAddr,
    ) -> Result<(), NetConfigError> {
        let mut from = encode_address(local, Some(id.0), None, EndpointFlags::default());
        if let Some(interface) = interface {
            from.bytes(ADDR_IF_IDX, &interface.get().to_ne_bytes());
        }
        let mut request = begin(of);
        request.nested(ATTR_ADDR, &from).nested(ATTR_ADDR_REMOTE, &end(remote));
        self.ask("create", format!("subflow from {local} to {remote}"), SUBFLOW_CREATE, &request)
    }

    /// Ends a subflow; what it has in flight goes by the others.
    ///
    /// # Errors
    /// `ESRCH` where the connection has no such subflow.
    pub fn destroy(&self, of: Token, local: SocketAddr, remote: SocketAddr) -> Result<(), NetConfigError> {
        let mut request = begin(of);
        request.nested(ATTR_ADDR, &end(local)).nested(ATTR_ADDR_REMOTE, &end(remote));
        self.ask("destroy", format!("subflow from {local} to {remote}"), SUBFLOW_DESTROY, &request)
    }

    /// Makes a subflow a backup, or none any more; the peer is told.
    ///
    /// # Errors
    /// `EINVAL` where the connection has no such subflow, or is not ours to manage.
    pub fn set_backup(
        &self,
        of: Token,
        local: SocketAddr,
        remote: SocketAddr,
        backup: bool,
    ) -> Result<(), NetConfigError> {
        let flags = if backup { EndpointFlags::BACKUP } else { EndpointFlags::default() };
        let local_end = encode_address(local.ip(), None, Some(local.port()), flags);
        let mut request = begin(of);
        request.nested(ATTR_ADDR, &local_end).nested(ATTR_ADDR_REMOTE, &end(remote));
        self.ask("set backup of", format!("subflow from {local} to {remote}"), SET_FLAGS, &request)
    }

    fn ask(
        &self,
        operation: &'static str,
        subject: String,
        command: u8,
        request: &Attributes,
    ) -> Result<(), NetConfigError> {
        match self.0.ask(command, request) {
            Ok(_) => Ok(()),
            Err(Errno::OPNOTSUPP) => Err(NetConfigError::lacking(operation, subject, Feature::MptcpUserspace)),
            Err(errno) => Err(NetConfigError::refused(operation, subject, errno)),
        }
    }
}

fn begin(of: Token) -> Attributes {
    let mut request = Attributes::default();
    request.bytes(ATTR_TOKEN, &of.0.to_ne_bytes());
    request
}

fn end(of: SocketAddr) -> Attributes {
    encode_address(of.ip(), None, Some(of.port()), EndpointFlags::default())
}
