//! Echo requests (RFC 792, RFC 4443 section 4.1), and whether they are answered: one, or one of each of several sizes.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

/// Types of requests and answers, in either IP version.
const ECHO: (u8, u8) = (8, 0);
const ECHO_V6: (u8, u8) = (128, 129);
/// Longest answer that is read, in bytes: an IP header with options, and ours.
const ANSWER_MAX: usize = 256;
/// Bytes of a header with identifier and sequence: the least that we send.
const LENGTH: usize = 8;
/// Rounds of requests of the sizes that are not answered: one may be lost.
const ROUNDS: u16 = 4;
/// Added to a round for the number of its request of a size that was answered before.
const AGAIN: u16 = 1000;

/// Which sizes pass. None at first; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Those of IP packets that were answered.
    pub answered: BTreeSet<u16>,
    /// Somebody said that one is too big.
    pub told: bool,
    /// Some that pass were lost: what was not answered may have been, too.
    pub lossy: bool,
}

/// Whether `address` answers within `patience`.
pub fn answers(address: IpAddr, patience: Duration) -> bool {
    let protocol = if address.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
    let to = SocketAddr::new(address, 0);
    let socket = Socket::new(Domain::for_address(to), Type::RAW, Some(protocol)).and_then(|socket| {
        socket.connect(&to.into())?;
        Ok(socket)
    });
    socket.is_ok_and(|socket| answers_by(socket, patience))
}

/// Whether there is an answer within `patience` to a raw socket for ICMP that is connected.
pub fn answers_by(socket: Socket, patience: Duration) -> bool {
    ask(socket, patience).unwrap_or(false)
}

/// Which of `sizes` of IP packets, least first, are answered within `patience` to a raw socket for ICMP that is
/// connected. None of them is sent in fragments, but where the kernel knows what passes: then it was told.
///
/// The largest that was answered is asked again beside those that were not. Of packets that are lost with probability p
/// each by itself, the largest is then taken for one that does not pass, without `lossy`, with p⁴ · (1 − p)¹² at most
/// where ten are asked: 0.00015.
///
/// # Errors
/// Where the system does not know the socket.
pub fn sizes_answered(socket: Socket, sizes: &[u16], patience: Duration) -> io::Result<Sizes> {
    let mut pinger = Pinger::by(socket)?;
    let (mut found, start) = (Sizes::default(), Instant::now());
    let mut again = BTreeSet::new();
    for round in 1..=ROUNDS {
        let passes = found.answered.last().map(|size| (AGAIN + round, size));
        again.extend(passes.map(|(number, _)| number));
        for (number, size) in (0..).zip(sizes).filter(|(_, size)| !found.answered.contains(size)).chain(passes) {
            found.told |= pinger.request(number, *size).is_err_and(|error| is_too_big(&error));
        }
        let until = patience * u32::from(round) / u32::from(ROUNDS);
        while found.answered.len() < sizes.len() && start.elapsed() < until {
            match pinger.hear(until.saturating_sub(start.elapsed())) {
                Ok(Some(number)) if again.remove(&number) => {}
                Ok(Some(number)) => found.answered.extend(sizes.get(usize::from(number))),
                Ok(None) => {}
                Err(error) => found.told |= is_too_big(&error),
            }
        }
        found.lossy |= has_a_hole(sizes, &found.answered);
    }
    found.lossy |= !again.is_empty();
    Ok(found)
}

/// Whether one is not answered that is less than one that is.
fn has_a_hole(sizes: &[u16], answered: &BTreeSet<u16>) -> bool {
    sizes.iter().any(|size| answered.last().is_some_and(|last| size < last) && !answered.contains(size))
}

fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

fn ask(socket: Socket, patience: Duration) -> io::Result<bool> {
    let mut pinger = Pinger::by(socket)?;
    let start = Instant::now();
    pinger.request(1, 0)?;
    while let Some(left) = patience.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        if pinger.hear(left)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A raw socket for the requests to one address. Made by a question, which owns it.
struct Pinger {
    socket: Socket,
    v4: bool,
    id: [u8; 2],
}

impl Pinger {
    fn by(socket: Socket) -> io::Result<Self> {
        let v4 = socket.domain()? == Domain::IPV4;
        Ok(Self { socket, v4, id: (std::process::id() as u16).to_be_bytes() })
    }

    /// Sends request `number` in an IP packet of `size`, or the least one.
    fn request(&self, number: u16, size: u16) -> io::Result<usize> {
        let (kind, header) = if self.v4 { (ECHO.0, 20) } else { (ECHO_V6.0, 40) };
        let (id, number) = (self.id, number.to_be_bytes());
        let mut message = vec![0; LENGTH.max(usize::from(size).saturating_sub(header))];
        message[..LENGTH].copy_from_slice(&[kind, 0, 0, 0, id[0], id[1], number[0], number[1]]);
        // In IPv6 the kernel does it (RFC 3542 section 3.1). Zeroes that follow add nothing.
        let checksum = checksum(&message[..LENGTH]);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        self.socket.send(&message)
    }

    /// The number of an answer, if that is what came; an error after `within` without anything.
    fn hear(&mut self, within: Duration) -> io::Result<Option<u16>> {
        self.socket.set_read_timeout(Some(within.max(Duration::from_millis(1))))?;
        let mut bytes = [0; ANSWER_MAX];
        let length = self.socket.read(&mut bytes)?;
        // In IPv4 the header comes along (raw(7)).
        let (reply, skipped) = if self.v4 { (ECHO.1, usize::from(bytes[0] & 0x0f) * 4) } else { (ECHO_V6.1, 0) };
        let answer = bytes[..length].get(skipped..skipped + LENGTH);
        let ours = answer.filter(|answer| answer[0] == reply && answer[4..6] == self.id);
        Ok(ours.map(|answer| u16::from_be_bytes([answer[6], answer[7]])))
    }
}

/// RFC 1071, of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(folded as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_size_that_is_not_answered_was_lost() {
        let table: [(&[u16], bool); 5] =
            [(&[], false), (&[576], false), (&[576, 1280], false), (&[576, 1500], true), (&[1280], true)];
        for (answered, expect) in table {
            let answered = answered.iter().copied().collect();
            assert_eq!(has_a_hole(&[576, 1280, 1500], &answered), expect, "{answered:?}");
        }
    }
}
