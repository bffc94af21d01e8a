//! The kernel's path manager of MPTCP: endpoints, limits, subflows. Source of all numbers: linux/mptcp_pm.h.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_net::genetlink::{Attributes, Generic, Message, find, u16_of, u32_of};
use hawser_wire::Namespace;
use rustix::io::Errno;

use super::{KERNEL, LabError};

/// The generic netlink family, and the group of its events.
pub(super) const FAMILY: &str = "mptcp_pm";
pub(super) const VERSION: u8 = 1;
pub(super) const EVENTS: &str = "mptcp_pm_events";

const ADD_ADDR: u8 = 1;
const DEL_ADDR: u8 = 2;
const GET_ADDR: u8 = 3;
const FLUSH_ADDRS: u8 = 4;
const SET_LIMITS: u8 = 5;
const GET_LIMITS: u8 = 6;
const SUBFLOW_CREATE: u8 = 10;

const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ATTR_TOKEN: u16 = 4;
const ATTR_ADDR_REMOTE: u16 = 6;

const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_V4: u16 = 3;
const ADDR_V6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const ADDR_IF_IDX: u16 = 7;

/// The server tells its peers of the address.
pub(super) const SIGNAL: u32 = 1 << 0;
/// The client opens subflows from the address, to every one that the server has.
pub(super) const FULLMESH: u32 = 1 << 1 | 1 << 3;
/// Address families. Source: socket(2).
pub(super) const INET: u16 = 2;
const INET6: u16 = 10;

/// How many subflows there may be beside the first, and how many announced addresses are taken. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub subflows: u32,
    pub accepted: u32,
}

/// An address of ours that the path manager knows. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub id: u8,
    pub address: IpAddr,
}

/// A namespace's path manager. One owner; what it set stays when it drops.
#[derive(Debug)]
pub(super) struct Manager {
    generic: Generic,
    whose: String,
}

impl Manager {
    pub(super) fn open(namespace: &Namespace) -> Result<Self, LabError> {
        let generic = namespace.run(|| Generic::open(FAMILY, VERSION))?;
        let generic = generic.map_err(|error| match error {
            Errno::NOENT => LabError::missing("the kernel's path manager of MPTCP", KERNEL),
            error => LabError::system("reach the path manager of MPTCP", error),
        })?;
        Ok(Self { generic, whose: namespace.name().to_owned() })
    }

    pub(super) fn limits(&self) -> Result<Limits, LabError> {
        let answers = self.ask("read limits", GET_LIMITS, &Attributes::default())?;
        let read = |kind| answers.first().and_then(|answer| u32_of(find(&answer.attributes, kind)?));
        let limits = read(ATTR_SUBFLOWS).zip(read(ATTR_RCV_ADD_ADDRS));
        let (subflows, accepted) = limits.ok_or_else(|| LabError::system("read limits of MPTCP", Errno::BADMSG))?;
        Ok(Limits { subflows, accepted })
    }

    pub(super) fn set_limits(&self, limits: Limits) -> Result<(), LabError> {
        let Limits { subflows, accepted } = limits;
        self.tell("set limits", SET_LIMITS, |all| {
            all.bytes(ATTR_SUBFLOWS, &subflows.to_ne_bytes()).bytes(ATTR_RCV_ADD_ADDRS, &accepted.to_ne_bytes())
        })
    }

    /// Adds an endpoint; connections that live learn of it at once.
    pub(super) fn add(&self, address: IpAddr, interface: Option<u32>, flags: u32) -> Result<(), LabError> {
        let mut inner = encoded(address);
        inner.bytes(ADDR_FLAGS, &flags.to_ne_bytes());
        if let Some(index) = interface {
            inner.bytes(ADDR_IF_IDX, &index.to_ne_bytes());
        }
        self.tell(&format!("add endpoint {address}"), ADD_ADDR, |all| all.nested(ATTR_ADDR, &inner))
    }

    /// Removes an endpoint, and the subflows from it.
    pub(super) fn remove(&self, endpoint: Endpoint) -> Result<(), LabError> {
        let mut inner = encoded(endpoint.address);
        inner.bytes(ADDR_ID, &[endpoint.id]);
        self.tell(&format!("remove endpoint {}", endpoint.address), DEL_ADDR, |all| all.nested(ATTR_ADDR, &inner))
    }

    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>, LabError> {
        let answers = self.generic.list(GET_ADDR).map_err(|error| self.fault("list endpoints", error))?;
        Ok(answers.iter().filter_map(endpoint).collect())
    }

    pub(super) fn flush(&self) -> Result<(), LabError> {
        self.tell("remove all endpoints", FLUSH_ADDRS, |none| none)
    }

    /// Opens a subflow of a connection, by the userspace path manager.
    pub(super) fn open_subflow(&self, subflow: &Subflow) -> Result<(), LabError> {
        let mut local = encoded(subflow.local);
        local.bytes(ADDR_ID, &[subflow.id]);
        let mut remote = encoded(subflow.remote);
        remote.bytes(ADDR_PORT, &subflow.port.to_ne_bytes());
        self.tell(&format!("open a subflow to {}", subflow.remote), SUBFLOW_CREATE, |all| {
            all.bytes(ATTR_TOKEN, &subflow.token.to_ne_bytes());
            all.nested(ATTR_ADDR, &local).nested(ATTR_ADDR_REMOTE, &remote)
        })
    }

    /// Asks for something to be done, with the attributes that are put in.
    fn tell(
        &self,
        action: &str,
        command: u8,
        put: impl FnOnce(&mut Attributes) -> &mut Attributes,
    ) -> Result<(), LabError> {
        let mut attributes = Attributes::default();
        put(&mut attributes);
        self.ask(action, command, &attributes).map(|_| ())
    }

    fn ask(&self, action: &str, command: u8, attributes: &Attributes) -> Result<Vec<Message>, LabError> {
        self.generic.ask(command, attributes).map_err(|error| self.fault(action, error))
    }

    fn fault(&self, action: &str, error: Errno) -> LabError {
        LabError::system(format!("{action} of MPTCP in {}", self.whose), error)
    }
}

/// A subflow to be opened beside a connection's first. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subflow {
    /// Of which connection.
    pub token: u32,
    pub local: IpAddr,
    /// What the peer calls the local address.
    pub id: u8,
    pub remote: IpAddr,
    pub port: u16,
}

/// An address of the kind that the family takes.
fn encoded(address: IpAddr) -> Attributes {
    let mut inner = Attributes::default();
    match address {
        IpAddr::V4(v4) => inner.bytes(ADDR_FAMILY, &INET.to_ne_bytes()).bytes(ADDR_V4, &v4.octets()),
        IpAddr::V6(v6) => inner.bytes(ADDR_FAMILY, &INET6.to_ne_bytes()).bytes(ADDR_V6, &v6.octets()),
    };
    inner
}

fn endpoint(answer: &Message) -> Option<Endpoint> {
    let inner = find(&answer.attributes, ATTR_ADDR)?;
    let id = *find(inner, ADDR_ID)?.first()?;
    let address = address(inner, ADDR_FAMILY, [ADDR_V4, ADDR_V6])?;
    Some(Endpoint { id, address })
}

/// An address among attributes: its family says which of two it is.
pub(super) fn address(list: &[u8], family: u16, kinds: [u16; 2]) -> Option<IpAddr> {
    match u16_of(find(list, family)?)? {
        INET => Some(<[u8; 4]>::try_from(find(list, kinds[0])?).map(Ipv4Addr::from).ok()?.into()),
        INET6 => Some(<[u8; 16]>::try_from(find(list, kinds[1])?).map(Ipv6Addr::from).ok()?.into()),
        _ => None,
    }
}
