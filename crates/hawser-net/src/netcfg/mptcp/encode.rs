//! Numbers and attributes of the family `mptcp_pm`. Source of all numbers: linux/mptcp_pm.h.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{EndpointFlags, EndpointId, MptcpEndpoint, MptcpLimits};
use crate::{
    genetlink::{Attributes, Message, find, u16_of, u32_of},
    netcfg::types::IfIndex,
};

/// The generic netlink family.
pub const MPTCP_FAMILY: &str = "mptcp_pm";
/// Its version.
pub const MPTCP_VERSION: u8 = 1;
/// The group that its events go to.
pub const MPTCP_EVENT_GROUP: &str = "mptcp_pm_events";

pub(super) const ADD_ADDR: u8 = 1;
pub(super) const DEL_ADDR: u8 = 2;
pub(super) const GET_ADDR: u8 = 3;
pub(super) const FLUSH_ADDRS: u8 = 4;
pub(super) const SET_LIMITS: u8 = 5;
pub(super) const GET_LIMITS: u8 = 6;
pub(super) const SET_FLAGS: u8 = 7;

pub(super) const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;

const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_V4: u16 = 3;
const ADDR_V6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const ADDR_IF_IDX: u16 = 7;

/// Address families (socket(2)).
const INET: u16 = 2;
const INET6: u16 = 10;

/// The attributes of an address, as the family takes it nested: with an id, a port, flags, where there are any.
pub fn encode_address(address: IpAddr, id: Option<u8>, port: Option<u16>, flags: EndpointFlags) -> Attributes {
    let mut inner = Attributes::default();
    match address {
        IpAddr::V4(v4) => inner.bytes(ADDR_FAMILY, &INET.to_ne_bytes()).bytes(ADDR_V4, &v4.octets()),
        IpAddr::V6(v6) => inner.bytes(ADDR_FAMILY, &INET6.to_ne_bytes()).bytes(ADDR_V6, &v6.octets()),
    };
    if let Some(id) = id {
        inner.bytes(ADDR_ID, &[id]);
    }
    if let Some(port) = port {
        inner.bytes(ADDR_PORT, &port.to_ne_bytes());
    }
    if flags != EndpointFlags::default() {
        inner.bytes(ADDR_FLAGS, &flags.bits().to_ne_bytes());
    }
    inner
}

/// An address in a list of attributes, in which `family` says which of two `kinds` it is.
pub fn address_in(list: &[u8], family: u16, kinds: [u16; 2]) -> Option<IpAddr> {
    match u16_of(find(list, family)?)? {
        INET => Some(<[u8; 4]>::try_from(find(list, kinds[0])?).map(Ipv4Addr::from).ok()?.into()),
        INET6 => Some(<[u8; 16]>::try_from(find(list, kinds[1])?).map(Ipv6Addr::from).ok()?.into()),
        _ => None,
    }
}

pub(super) fn endpoint(endpoint: &MptcpEndpoint, id: Option<EndpointId>) -> Attributes {
    let mut inner = encode_address(endpoint.address, id.map(|id| id.0), endpoint.port, endpoint.flags);
    if let Some(interface) = endpoint.interface {
        inner.bytes(ADDR_IF_IDX, &interface.get().to_ne_bytes());
    }
    let mut attributes = Attributes::default();
    attributes.nested(ATTR_ADDR, &inner);
    attributes
}

pub(super) fn endpoint_of(answer: &Message) -> Option<(EndpointId, MptcpEndpoint)> {
    let inner = find(&answer.attributes, ATTR_ADDR)?;
    let id = EndpointId(*find(inner, ADDR_ID)?.first()?);
    let endpoint = MptcpEndpoint {
        address: address_in(inner, ADDR_FAMILY, [ADDR_V4, ADDR_V6])?,
        port: find(inner, ADDR_PORT).and_then(u16_of).filter(|port| *port != 0),
        interface: find(inner, ADDR_IF_IDX).and_then(u32_of).and_then(IfIndex::new),
        flags: EndpointFlags::from_bits(find(inner, ADDR_FLAGS).and_then(u32_of).unwrap_or(0)),
    };
    Some((id, endpoint))
}

pub(super) fn limits(limits: MptcpLimits) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.bytes(ATTR_SUBFLOWS, &limits.subflows.to_ne_bytes());
    attributes.bytes(ATTR_RCV_ADD_ADDRS, &limits.accepted.to_ne_bytes());
    attributes
}

pub(super) fn limits_of(answer: &Message) -> Option<MptcpLimits> {
    let read = |kind| find(&answer.attributes, kind).and_then(u32_of);
    Some(MptcpLimits { subflows: read(ATTR_SUBFLOWS)?, accepted: read(ATTR_RCV_ADD_ADDRS)? })
}
