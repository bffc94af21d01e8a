//! What happens to connections and subflows, as the kernel tells it. Source of all numbers: linux/mptcp.h,
//! MPTCP_EVENT_* and MPTCP_ATTR_*.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hawser_net::genetlink::{Generic, Message, find, u16_of, u32_of};
use hawser_net::netcfg::{
    Feature, IfIndex, MPTCP_EVENT_GROUP, MPTCP_FAMILY, MPTCP_VERSION, NetConfigError, address_in,
};
use rustix::io::Errno;

use crate::mptcp::{AddressId, ResetReason, Token};

const CREATED: u8 = 1;
const ESTABLISHED: u8 = 2;
const CLOSED: u8 = 3;
const ANNOUNCED: u8 = 6;
const REMOVED: u8 = 7;
const SUB_ESTABLISHED: u8 = 10;
const SUB_CLOSED: u8 = 11;
const SUB_PRIORITY: u8 = 13;

const TOKEN: u16 = 1;
const FAMILY: u16 = 2;
const LOCAL_ID: u16 = 3;
const REMOTE_ID: u16 = 4;
const SOURCE: [u16; 2] = [5, 6];
const DESTINATION: [u16; 2] = [7, 8];
const SOURCE_PORT: u16 = 9;
const DESTINATION_PORT: u16 = 10;
const BACKUP: u16 = 11;
const ERROR: u16 = 12;
const INTERFACE: u16 = 15;
const RESET_REASON: u16 = 16;
const SERVER_SIDE: u16 = 18;

/// Something happened to a connection. There is no default. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A connection begins, and may yet turn out to be plain TCP.
    Created(Connected),
    /// A connection is one of MPTCP: subflows may join it.
    Established(Connected),
    /// A connection has ended.
    Closed(Token),
    /// The peer has told of an address.
    Announced {
        /// Of which connection.
        token: Token,
        /// What the peer calls it.
        id: AddressId,
        /// Where it can be reached: without a port of its own, at the connection's.
        address: SocketAddr,
    },
    /// The peer no longer has an address.
    Removed {
        /// Of which connection.
        token: Token,
        /// What the peer called it.
        id: AddressId,
    },
    /// A subflow is there.
    SubflowEstablished(SubflowEvent),
    /// A subflow is gone.
    SubflowClosed(SubflowEvent, Lost),
    /// A subflow is a backup from now on, or no more.
    SubflowPriority(SubflowEvent),
}

/// The first subflow of a connection, which its token names from now on.
/// There is no default. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connected {
    /// The connection's name at this host.
    pub token: Token,
    /// This host's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// The peer asked for it.
    pub is_server: bool,
}

/// The ends of a subflow. There is no default. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Subflow {
    /// This host's.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

/// A subflow to which something happened. There is no default. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowEvent {
    /// Of which connection.
    pub token: Token,
    /// Its ends.
    pub subflow: Subflow,
    /// What the peer calls this host's end.
    pub local_id: AddressId,
    /// What the peer calls its own.
    pub remote_id: AddressId,
    /// It carries data only where no other subflow does.
    pub backup: bool,
    /// The interface that it is bound to.
    pub interface: Option<IfIndex>,
}

/// Why a subflow is gone. Nothing is said by default: it ended in order. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// The socket's errno.
    pub error: Option<i32>,
    /// What a reset said (linux 5.13).
    pub reset: Option<ResetReason>,
}

/// Hears events of the network namespace of the thread that opened it.
/// Hears from its opening on. One owner.
#[derive(Debug)]
pub struct Events(Generic);

impl Events {
    /// Joins the kernel's group of events.
    ///
    /// # Errors
    /// [`NetConfigError::MissingFeature`] where the kernel has no MPTCP, or no events of it.
    pub fn open() -> Result<Self, NetConfigError> {
        let what = "events of mptcp";
        match Generic::subscribe(MPTCP_FAMILY, MPTCP_VERSION, MPTCP_EVENT_GROUP) {
            Ok(generic) => Ok(Self(generic)),
            Err(Errno::NOENT) => Err(match Generic::open(MPTCP_FAMILY, MPTCP_VERSION) {
                Ok(_) => NetConfigError::lacking("hear", what, Feature::MptcpEvents),
                Err(_) => NetConfigError::lacking("hear", what, Feature::Mptcp),
            }),
            Err(errno) => Err(NetConfigError::refused("hear", what, errno)),
        }
    }

    /// What has happened since, waiting so long for it; what is of no interest here is left out.
    ///
    /// # Errors
    /// `ENOBUFS` where more happened than could be kept: what is known of connections is to be thrown away.
    pub fn next(&self, patience: Duration) -> Result<Vec<Event>, NetConfigError> {
        let messages = self.0.events(patience);
        let messages = messages.map_err(|errno| NetConfigError::refused("hear", "events of mptcp", errno))?;
        Ok(messages.iter().filter_map(Event::parse).collect())
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Event {
    /// What a message of the group says; none where it is of no interest here, or lacks what it must have.
    fn parse(message: &Message) -> Option<Self> {
        let list = Attributes(&message.attributes);
        Some(match message.command {
            CREATED => Self::Created(list.connected()?),
            ESTABLISHED => Self::Established(list.connected()?),
            CLOSED => Self::Closed(list.token()?),
            ANNOUNCED => Self::Announced {
                token: list.token()?,
                id: AddressId(list.byte(REMOTE_ID)?),
                address: SocketAddr::new(list.announced()?, list.port(DESTINATION_PORT)?),
            },
            REMOVED => Self::Removed { token: list.token()?, id: AddressId(list.byte(REMOTE_ID)?) },
            SUB_ESTABLISHED => Self::SubflowEstablished(list.subflow()?),
            SUB_CLOSED => Self::SubflowClosed(list.subflow()?, list.lost()),
            SUB_PRIORITY => Self::SubflowPriority(list.subflow()?),
            _ => return None,
        })
    }
}

/// The attributes of an event. Lives while it is read.
struct Attributes<'m>(&'m [u8]);

impl Attributes<'_> {
    fn byte(&self, kind: u16) -> Option<u8> {
        find(self.0, kind)?.first().copied()
    }

    fn number(&self, kind: u16) -> Option<u32> {
        find(self.0, kind).and_then(u32_of)
    }

    /// Ports stand in the network's byte order here.
    fn port(&self, kind: u16) -> Option<u16> {
        find(self.0, kind).and_then(u16_of).map(u16::from_be)
    }

    fn token(&self) -> Option<Token> {
        self.number(TOKEN).map(Token)
    }

    /// An announced address comes without its family.
    fn announced(&self) -> Option<IpAddr> {
        let [v4, v6] = DESTINATION.map(|kind| find(self.0, kind));
        match (v4, v6) {
            (Some(octets), _) => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
            (None, Some(octets)) => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
            (None, None) => None,
        }
    }

    fn ends(&self) -> Option<Subflow> {
        let local = SocketAddr::new(address_in(self.0, FAMILY, SOURCE)?, self.port(SOURCE_PORT)?);
        let remote = SocketAddr::new(address_in(self.0, FAMILY, DESTINATION)?, self.port(DESTINATION_PORT)?);
        Some(Subflow { local, remote })
    }

    fn connected(&self) -> Option<Connected> {
        let Subflow { local, remote } = self.ends()?;
        Some(Connected { token: self.token()?, local, remote, is_server: self.byte(SERVER_SIDE) == Some(1) })
    }

    fn subflow(&self) -> Option<SubflowEvent> {
        Some(SubflowEvent {
            token: self.token()?,
            subflow: self.ends()?,
            local_id: AddressId(self.byte(LOCAL_ID)?),
            remote_id: AddressId(self.byte(REMOTE_ID)?),
            backup: self.byte(BACKUP) == Some(1),
            interface: self.number(INTERFACE).and_then(IfIndex::new),
        })
    }

    fn lost(&self) -> Lost {
        let error = self.byte(ERROR).filter(|error| *error != 0).map(i32::from);
        let reset = self.number(RESET_REASON).and_then(|reason| u8::try_from(reason).ok()).map(ResetReason);
        Lost { error, reset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with an IPv4 subflow, and these attributes more.
    fn message(command: u8, more: &[(u16, &[u8])]) -> Message {
        let mut list = hawser_net::genetlink::Attributes::default();
        list.bytes(TOKEN, &7_u32.to_ne_bytes()).bytes(FAMILY, &2_u16.to_ne_bytes());
        list.bytes(LOCAL_ID, &[1]).bytes(REMOTE_ID, &[2]);
        list.bytes(SOURCE[0], &[10, 0, 0, 1]).bytes(DESTINATION[0], &[10, 0, 0, 2]);
        list.bytes(SOURCE_PORT, &4000_u16.to_be_bytes()).bytes(DESTINATION_PORT, &80_u16.to_be_bytes());
        for (kind, value) in more {
            list.bytes(*kind, value);
        }
        Message { command, attributes: list.into_bytes() }
    }

    #[test]
    fn every_event_is_read() {
        let (local, remote) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        let connected = Connected { token: Token(7), local, remote, is_server: false };
        let subflow = SubflowEvent {
            token: Token(7),
            subflow: Subflow { local, remote },
            local_id: AddressId(1),
            remote_id: AddressId(2),
            backup: false,
            interface: None,
        };
        let (token, id) = (Token(7), AddressId(2));
        let lost = Lost { error: Some(104), reset: Some(ResetReason::UNACCEPTABLE_PERFORMANCE) };
        let three = 3_u32.to_ne_bytes();
        let five = 5_u32.to_ne_bytes();
        let table: [(Message, Event); 11] = [
            (message(CREATED, &[]), Event::Created(connected)),
            (message(ESTABLISHED, &[(SERVER_SIDE, &[0])]), Event::Established(connected)),
            (
                message(ESTABLISHED, &[(SERVER_SIDE, &[1])]),
                Event::Established(Connected { is_server: true, ..connected }),
            ),
            (message(CLOSED, &[]), Event::Closed(token)),
            (message(ANNOUNCED, &[]), Event::Announced { token, id, address: remote }),
            (message(REMOVED, &[]), Event::Removed { token, id }),
            (message(SUB_ESTABLISHED, &[]), Event::SubflowEstablished(subflow)),
            (
                message(SUB_ESTABLISHED, &[(INTERFACE, &three)]),
                Event::SubflowEstablished(SubflowEvent { interface: IfIndex::new(3), ..subflow }),
            ),
            (message(SUB_CLOSED, &[]), Event::SubflowClosed(subflow, Lost::default())),
            (message(SUB_CLOSED, &[(ERROR, &[104]), (RESET_REASON, &five)]), Event::SubflowClosed(subflow, lost)),
            (
                message(SUB_PRIORITY, &[(BACKUP, &[1])]),
                Event::SubflowPriority(SubflowEvent { backup: true, ..subflow }),
            ),
        ];
        for (message, event) in table {
            assert_eq!(Event::parse(&message), Some(event));
        }
    }

    #[test]
    fn events_of_no_interest_and_incomplete_ones_are_none() {
        assert_eq!(Event::parse(&message(15, &[])), None, "a listener");
        for command in [CREATED, CLOSED, ANNOUNCED, REMOVED, SUB_CLOSED] {
            assert_eq!(Event::parse(&Message { command, attributes: vec![] }), None);
        }
    }
}
