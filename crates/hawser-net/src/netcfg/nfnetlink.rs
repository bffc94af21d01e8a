//! What nftables tells, and sets that it looks at, without the program `nft`: both are too quick for that.
//!
//! 1. [`PacketLog`] hears of the packets that a rule logs to a group (`log group N`), whole.
//! 2. [`SetElements`] puts addresses into a set, each for a time, in one transaction: what is there already gets the
//!    new time.
//!
//! Numbers: linux/netfilter/nfnetlink.h, nfnetlink_log.h, nf_tables.h.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use netlink_sys::{
    AsyncSocket as _, AsyncSocketExt as _, Socket, SocketAddr, TokioSocket, protocols::NETLINK_NETFILTER,
};

use super::nft::NftName;
use crate::genetlink::{Attributes, find, readable};

/// Headers of netlink (netlink(7)) and of its family netfilter.
const MESSAGE_HEADER: usize = 16;
const FAMILY_HEADER: usize = 4;
const ALIGNMENT: usize = 4;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const CREATE: u16 = 0x400;
const ERROR: u16 = 2;
/// Subsystems, in the upper byte of a message's type.
const LOG: u16 = 4 << 8;
const NFTABLES: u16 = 10 << 8;
const LOG_PACKET: u16 = LOG;
const LOG_CONFIG: u16 = LOG | 1;
const NEW_ELEMENTS: u16 = NFTABLES | 12;
const DELETE_ELEMENTS: u16 = NFTABLES | 14;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// What a batch is about (`NFNL_SUBSYS_NFTABLES`), and the family `inet` (`NFPROTO_INET`).
const OF_NFTABLES: u16 = 10;
const INET: u8 = 1;
/// Attributes of the log's configuration, its commands, and of a logged packet.
const CONFIG_COMMAND: u16 = 1;
const CONFIG_MODE: u16 = 2;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const PAYLOAD: u16 = 9;
/// All of a packet.
const COPY_ALL: u32 = 0xffff;
/// Attributes of elements.
const TABLE: u16 = 1;
const SET: u16 = 2;
const ELEMENTS: u16 = 3;
const ELEMENT: u16 = 1;
const KEY: u16 = 1;
const TIMEOUT: u16 = 4;
const VALUE: u16 = 1;
/// The kernel answers while it is called.
const PATIENCE: Duration = Duration::from_secs(2);

/// The packets that rules log to one group. From the start it hears; whoever holds it reads.
pub struct PacketLog(TokioSocket);

impl PacketLog {
    /// Step 1, in the calling thread's network namespace, inside a tokio runtime.
    ///
    /// # Errors
    /// What the kernel says: `EPERM` without CAP_NET_ADMIN, `EBUSY` where another process has the group.
    pub fn open(group: u16) -> io::Result<Self> {
        let mut heard = TokioSocket::new(NETLINK_NETFILTER)?;
        heard.socket_mut().bind_auto()?;
        let socket = heard.socket_ref();
        let mut command = Attributes::default();
        command.bytes(CONFIG_COMMAND, &[BIND]);
        ask(socket, &message(LOG_CONFIG, REQUEST | ACKNOWLEDGE, 0, group, &command))?;
        let mut mode = Attributes::default();
        let [a, b, c, d] = COPY_ALL.to_be_bytes();
        mode.bytes(CONFIG_MODE, &[a, b, c, d, COPY_PACKET, 0]);
        ask(socket, &message(LOG_CONFIG, REQUEST | ACKNOWLEDGE, 0, group, &mode))?;
        // What was lost in between is heard with the next answer of the name's.
        socket.set_no_enobufs(true)?;
        Ok(Self(heard))
    }

    /// The next packets, from their IP headers on. At least one.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn next(&mut self) -> io::Result<Vec<Vec<u8>>> {
        loop {
            let (datagram, _) = self.0.recv_from_full().await?;
            let packets: Vec<Vec<u8>> = messages(&datagram).filter_map(payload).collect();
            if !packets.is_empty() {
                return Ok(packets);
            }
        }
    }
}

/// The packet of a message of the log's.
fn payload((kind, body): (u16, &[u8])) -> Option<Vec<u8>> {
    let attributes = body.get(FAMILY_HEADER..).filter(|_| kind == LOG_PACKET)?;
    find(attributes, PAYLOAD).map(<[u8]>::to_vec)
}

/// Sets of the tables of one family, `inet`. From the start it can set; the control thread owns it.
#[derive(Debug)]
pub struct SetElements(Socket);

impl SetElements {
    /// In the calling thread's network namespace.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open() -> io::Result<Self> {
        socket().map(Self)
    }

    /// Step 2. The set holds addresses of one IP version, and these are of that version.
    ///
    /// # Errors
    /// What the kernel says: `ENOENT` where there is no such set.
    pub fn put(&self, table: &NftName, set: &str, addresses: &[(IpAddr, Duration)]) -> io::Result<()> {
        let kept = elements(table, set, addresses, true);
        let bare = elements(table, set, addresses, false);
        // An element that is there keeps its old time (before Linux 6.13), so it goes, and comes anew.
        let batch = [
            message(BATCH_BEGIN, REQUEST, 0, OF_NFTABLES, &Attributes::default()),
            message(NEW_ELEMENTS, REQUEST | CREATE, INET, 0, &bare),
            message(DELETE_ELEMENTS, REQUEST, INET, 0, &bare),
            message(NEW_ELEMENTS, REQUEST | CREATE | ACKNOWLEDGE, INET, 0, &kept),
            message(BATCH_END, REQUEST, 0, OF_NFTABLES, &Attributes::default()),
        ];
        // Each message of a batch that fails has an answer, and only the first was waited for.
        while readable(&self.0, Duration::ZERO)? {
            self.0.recv_from_full()?;
        }
        ask(&self.0, &batch.concat())
    }
}

fn elements(table: &NftName, set: &str, addresses: &[(IpAddr, Duration)], timed: bool) -> Attributes {
    let mut list = Attributes::default();
    for (address, time) in addresses {
        let (mut key, mut element) = (Attributes::default(), Attributes::default());
        match address {
            IpAddr::V4(address) => key.bytes(VALUE, &address.octets()),
            IpAddr::V6(address) => key.bytes(VALUE, &address.octets()),
        };
        element.nested(KEY, &key);
        if timed {
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            element.bytes(TIMEOUT, &millis.to_be_bytes());
        }
        list.nested(ELEMENT, &element);
    }
    let text = |text: &str| [text.as_bytes(), &[0]].concat();
    let mut attributes = Attributes::default();
    attributes.bytes(TABLE, &text(&table.to_string())).bytes(SET, &text(set)).nested(ELEMENTS, &list);
    attributes
}

fn socket() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    Ok(socket)
}

/// Sends what ends with one message that is acknowledged, and waits for that, or for the first error.
fn ask(socket: &Socket, request: &[u8]) -> io::Result<()> {
    socket.send_to(request, &SocketAddr::new(0, 0), 0)?;
    loop {
        if !readable(socket, PATIENCE)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (datagram, _) = socket.recv_from_full()?;
        if let Some((_, body)) = messages(&datagram).find(|(kind, _)| *kind == ERROR) {
            let code = body.get(..4).and_then(|code| code.try_into().ok()).map_or(0, i32::from_ne_bytes);
            return if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.saturating_neg())) };
        }
    }
}

/// `id` is the group of a log, or what a batch is about (`res_id`).
fn message(kind: u16, flags: u16, family: u8, id: u16, attributes: &Attributes) -> Vec<u8> {
    let attributes = attributes.as_bytes();
    let length = MESSAGE_HEADER + FAMILY_HEADER + attributes.len();
    let mut message = Vec::with_capacity(length);
    message.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and port: one request at a time, and the kernel knows the socket.
    message.extend([0; 8]);
    message.extend([family, 0]);
    message.extend(id.to_be_bytes());
    message.extend(attributes);
    message
}

/// The types and bodies of messages.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = datagram.get(..4)?.try_into().map(u32::from_ne_bytes).ok()? as usize;
        let kind = datagram.get(4..6)?.try_into().map(u16::from_ne_bytes).ok()?;
        let body = datagram.get(MESSAGE_HEADER..length)?;
        datagram = datagram.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_in_a_datagram_and_a_broken_one_ends_it() {
        let mut packet = Attributes::default();
        packet.bytes(1, &[7; 3]).bytes(PAYLOAD, b"packet");
        let one = message(LOG_PACKET, 0, 2, 9, &packet);
        let other = message(LOG_CONFIG, 0, 2, 9, &packet);
        let found = |datagram: &[u8]| messages(datagram).filter_map(payload).collect::<Vec<_>>();
        assert_eq!(found(&[one.clone(), other, one.clone()].concat()), [b"packet".to_vec(), b"packet".to_vec()]);
        for end in 0..one.len() {
            assert_eq!(found(&one[..end]), [] as [Vec<u8>; 0], "{end} bytes");
        }
    }
}
