//! Generic netlink, as far as the path manager of MPTCP needs it; one request at a time, on plain threads.
//!
//! 1. A socket is opened in a namespace, and asks the kernel's controller for the family's number and that of its
//!    events.
//! 2. A request is sent and acknowledged; answers are lists of attributes.
//! 3. Events come by a socket that joined their group, and asks for nothing.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Sizes of headers. Source: linux/netlink.h, linux/genetlink.h.
const MESSAGE_HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// What every length is rounded up to. Source: linux/netlink.h, NLMSG_ALIGNTO.
const ALIGNMENT: usize = 4;
/// Flags and types of messages. Source: linux/netlink.h.
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Attributes may carry flags in their type. Source: linux/netlink.h, NLA_TYPE_MASK, NLA_F_NESTED.
const TYPE_MASK: u16 = 0x3fff;
const NESTED: u16 = 0x8000;
/// The controller. Source: linux/genetlink.h.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
/// How long the kernel may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A message: its command and its attributes, header taken off.
/// There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Which command of the family's, or which event.
    pub command: u8,
    /// What it says; [`find`] reads it.
    pub attributes: Vec<u8>,
}

/// A socket to a family. Starts without requests. One owner.
#[derive(Debug)]
pub struct Generic {
    socket: Socket,
    family: u16,
    version: u8,
}

impl Generic {
    /// Step 1, in the calling thread's namespace.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no such family.
    pub fn open(name: &str, version: u8) -> Result<Self, Errno> {
        let (family, _) = lookup(name)?;
        Ok(Self { socket: socket()?, family, version })
    }

    /// Step 1, for step 3.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no such family, or the family no such group.
    pub fn subscribe(name: &str, version: u8, group: &str) -> Result<Self, Errno> {
        let (family, groups) = lookup(name)?;
        let found = groups.iter().find(|(name, _)| name == group);
        let (_, group) = found.ok_or(Errno::NOENT)?;
        let socket = socket()?;
        socket.add_membership(*group).map_err(errno)?;
        Ok(Self { socket, family, version })
    }

    /// Step 2: one request, and what is answered.
    ///
    /// # Errors
    /// What the kernel answers instead; `ETIMEDOUT` where it does not.
    pub fn ask(&self, command: u8, attributes: &Attributes) -> Result<Vec<Message>, Errno> {
        self.exchange(command, attributes, ACKNOWLEDGE)
    }

    /// Step 2: everything there is.
    ///
    /// # Errors
    /// As [`Generic::ask`].
    pub fn list(&self, command: u8) -> Result<Vec<Message>, Errno> {
        self.exchange(command, &Attributes::default(), DUMP)
    }

    fn exchange(&self, command: u8, attributes: &Attributes, flags: u16) -> Result<Vec<Message>, Errno> {
        let request = encode(self.family, REQUEST | flags, command, self.version, attributes);
        self.socket.send_to(&request, &SocketAddr::new(0, 0), 0).map_err(errno)?;
        let mut answers = Vec::new();
        loop {
            if !readable(&self.socket, PATIENCE)? {
                return Err(Errno::TIMEDOUT);
            }
            let (datagram, _) = self.socket.recv_from_full().map_err(errno)?;
            if decode(&datagram, &mut answers)? {
                return Ok(answers);
            }
        }
    }

    /// Step 3: what has happened, waiting this long for it.
    ///
    /// # Errors
    /// `ENOBUFS` where more has happened than the socket could hold: what was lost is to be asked for.
    pub fn events(&self, patience: Duration) -> Result<Vec<Message>, Errno> {
        let mut events = Vec::new();
        if readable(&self.socket, patience)? {
            let (datagram, _) = self.socket.recv_from_full().map_err(errno)?;
            decode(&datagram, &mut events)?;
        }
        Ok(events)
    }
}

impl AsFd for Generic {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket() -> Result<Socket, Errno> {
    let mut socket = Socket::new(NETLINK_GENERIC).map_err(errno)?;
    socket.bind_auto().map_err(errno)?;
    Ok(socket)
}

/// Whether something can be read before this time is over.
///
/// # Errors
/// What poll(2) says.
pub fn readable(socket: &Socket, patience: Duration) -> Result<bool, Errno> {
    let time = Timespec::try_from(patience).map_err(|_| Errno::INVAL)?;
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// A family's number, and the names and numbers of its groups.
fn lookup(name: &str) -> Result<(u16, Vec<(String, u32)>), Errno> {
    let controller = Generic { socket: socket()?, family: CONTROLLER, version: 1 };
    let answers = controller.ask(GET_FAMILY, Attributes::default().string(FAMILY_NAME, name))?;
    let answer = answers.first().ok_or(Errno::NOENT)?;
    let family = find(&answer.attributes, FAMILY_ID).and_then(u16_of).ok_or(Errno::BADMSG)?;
    let groups = find(&answer.attributes, GROUPS).unwrap_or_default();
    let group = |(_, group): (u16, &[u8])| {
        let name = find(group, GROUP_NAME)?;
        let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next()?).into_owned();
        Some((name, find(group, GROUP_ID).and_then(u32_of)?))
    };
    Ok((family, attributes(groups).filter_map(group).collect()))
}

fn encode(family: u16, flags: u16, command: u8, version: u8, attributes: &Attributes) -> Vec<u8> {
    let length = MESSAGE_HEADER + GENERIC_HEADER + attributes.0.len();
    let mut message = Vec::with_capacity(length);
    message.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and port: one request at a time, and the kernel knows the socket.
    message.extend([0; 8]);
    message.extend([command, version, 0, 0]);
    message.extend(&attributes.0);
    message
}

/// Adds a datagram's messages to those had; true where it holds the end of the answer.
fn decode(mut datagram: &[u8], messages: &mut Vec<Message>) -> Result<bool, Errno> {
    let mut ended = false;
    while let Some(length) = datagram.get(..4).and_then(u32_of) {
        let length = length as usize;
        let message = datagram.get(MESSAGE_HEADER..length).ok_or(Errno::BADMSG)?;
        match u16_of(&datagram[4..6]) {
            Some(ERROR) => {
                let code = message.get(..4).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes);
                match code {
                    Some(0) => ended = true,
                    Some(code) => return Err(Errno::from_raw_os_error(code.saturating_neg())),
                    None => return Err(Errno::BADMSG),
                }
            }
            Some(DONE) => ended = true,
            _ => {
                let command = *message.first().ok_or(Errno::BADMSG)?;
                let attributes = message.get(GENERIC_HEADER..).ok_or(Errno::BADMSG)?.to_vec();
                messages.push(Message { command, attributes });
            }
        }
        datagram = datagram.get(aligned(length)..).unwrap_or_default();
    }
    Ok(ended)
}

/// Attributes of a request. Starts empty; plain data.
#[derive(Debug, Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// Adds one.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(aligned(self.0.len()), 0);
        self
    }

    /// The list as a message has it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The list as a message has it.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn string(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut text = value.as_bytes().to_vec();
        text.push(0);
        self.bytes(kind, &text)
    }

    /// Adds a list as one.
    pub fn nested(&mut self, kind: u16, inner: &Self) -> &mut Self {
        self.bytes(kind | NESTED, &inner.0)
    }
}

/// The attributes of a list, by their kinds.
fn attributes(mut list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_of(list.get(..2)?)?);
        let kind = u16_of(list.get(2..4)?)? & TYPE_MASK;
        let value = list.get(ATTRIBUTE_HEADER..length)?;
        list = list.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of a kind.
pub fn find(list: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(list).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// A number in the machine's byte order, where the bytes are one.
pub fn u16_of(bytes: &[u8]) -> Option<u16> {
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

/// A number in the machine's byte order, where the bytes are one.
pub fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_nested_and_found_again() {
        let mut inner = Attributes::default();
        inner.bytes(2, &[7]).bytes(1, &513_u16.to_ne_bytes());
        let mut outer = Attributes::default();
        outer.nested(5, &inner).string(6, "abcd");
        assert_eq!(outer.0.len() % ALIGNMENT, 0);
        let nested = find(&outer.0, 5).expect("it is there");
        assert_eq!(find(nested, 1).and_then(u16_of), Some(513));
        assert_eq!(find(nested, 2), Some([7].as_slice()));
        assert_eq!(find(&outer.0, 6), Some(b"abcd\0".as_slice()));
        assert_eq!(find(&outer.0, 7), None);
    }

    #[test]
    fn an_answer_ends_with_its_acknowledgement_and_an_error_is_one() {
        let mut attributes = Attributes::default();
        attributes.bytes(1, &[1, 2, 3, 4]);
        let answer = encode(30, 0, 9, 1, &attributes);
        let mut messages = Vec::new();
        assert_eq!(decode(&answer, &mut messages), Ok(false));
        assert_eq!((messages[0].command, find(&messages[0].attributes, 1)), (9, Some([1, 2, 3, 4].as_slice())));
        let verdict = |code: i32| {
            let mut message = vec![20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            message.extend(code.to_ne_bytes());
            decode(&message, &mut Vec::new())
        };
        assert_eq!((verdict(0), verdict(-22)), (Ok(true), Err(Errno::INVAL)));
        assert_eq!(decode(&answer[..19], &mut Vec::new()), Err(Errno::BADMSG), "cut short");
    }
}
