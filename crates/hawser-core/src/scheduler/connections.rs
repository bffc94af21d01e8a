//! Which flows are subflows of one MPTCP connection (RFC 8684).
//!
//! A connection begins with MP_CAPABLE, which carries the keys of its ends; a further subflow names one end by its
//! token, the first 32 bits of the SHA-256 of that end's key (section 3.2). Both directions are looked at, because the
//! far end's key, or a far end's wish to join, comes by the tunnel.

use crate::packet::inner::TCP_HEADER;
use crate::packet::tcp_options::options;
use crate::packet::{Inner, Transport};
use crate::units::Time;
use ring::digest::{SHA256, digest};

/// Connections that are remembered: the one silent for longest makes room.
const REMEMBERED: usize = 1_024;
/// The option of MPTCP (RFC 8684 section 3).
const MPTCP: u8 = 30;
/// Its subtypes MP_CAPABLE and MP_JOIN, in the upper half of the third byte (section 8.2).
const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
/// The version whose tokens are made by SHA-256, in the lower half (section 3.1).
const VERSION: u8 = 1;
/// Lengths of MP_CAPABLE with the sender's key (SYN/ACK), with both (ACK), and both with data (section 3.1).
const ONE_KEY: usize = 12;
const BOTH_KEYS: [usize; 3] = [20, 22, 24];
/// The length of MP_JOIN in a SYN (section 3.2).
const JOIN: usize = 12;

/// The name of one end of a connection. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Token(pub(super) u32);

/// What a packet tells of its connection. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MptcpOption {
    /// The first subflow: the tokens of the ends whose keys are shown.
    Capable([Option<Token>; 2]),
    /// A further subflow, of the connection with this token.
    Join(Token),
}

impl MptcpOption {
    /// What this packet tells; none for nearly all.
    pub fn of(packet: &[u8], inner: &Inner) -> Option<MptcpOption> {
        let Transport::Tcp { header } = inner.transport else { return None };
        let at = usize::from(inner.transport_at);
        let bytes = packet.get(at + TCP_HEADER..at + usize::from(header))?;
        find(bytes).and_then(read)
    }
}

/// The option of MPTCP, with kind and length.
fn find(bytes: &[u8]) -> Option<&[u8]> {
    options(bytes).map_while(Result::ok).find(|option| option[0] == MPTCP)
}

fn read(option: &[u8]) -> Option<MptcpOption> {
    let subtype = option.get(2)? >> 4;
    let key = |at: usize| option.get(at..at + 8).map(token);
    match (subtype, option.len()) {
        (MP_CAPABLE, len) if option[2] & 0x0f == VERSION => match len {
            ONE_KEY => Some(MptcpOption::Capable([key(4), None])),
            len if BOTH_KEYS.contains(&len) => Some(MptcpOption::Capable([key(4), key(12)])),
            _ => None,
        },
        (MP_JOIN, JOIN) => option[4..].first_chunk().map(|bytes| MptcpOption::Join(Token(u32::from_be_bytes(*bytes)))),
        _ => None,
    }
}

/// The most significant 32 bits of the key's hash.
fn token(key: &[u8]) -> Token {
    let hash = digest(&SHA256, key);
    let first = hash.as_ref().first_chunk().expect("a hash has 32 bytes");
    Token(u32::from_be_bytes(*first))
}

/// A connection's name in its session, never used again for another. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ConnectionId(u64);

#[derive(Copy, Clone, Debug)]
struct Connection {
    id: ConnectionId,
    tokens: [Option<Token>; 2],
    seen: Time,
}

/// The connections seen of late. None at first; the `flow` scheduler owns them.
#[derive(Default)]
pub(super) struct Connections {
    known: Vec<Connection>,
    next: u64,
}

impl Connections {
    /// Whose option this is; a connection that nobody knows begins with it.
    pub fn of(&mut self, now: Time, option: MptcpOption) -> ConnectionId {
        let tokens = match option {
            MptcpOption::Capable(tokens) => tokens,
            MptcpOption::Join(token) => [Some(token), None],
        };
        let told = |token: &Option<Token>| token.is_some() && tokens.contains(token);
        if let Some(known) = self.known.iter_mut().find(|known| known.tokens.iter().any(told)) {
            known.seen = now;
            if tokens.iter().all(Option::is_some) {
                known.tokens = tokens;
            }
            return known.id;
        }
        if self.known.len() == REMEMBERED
            && let Some(oldest) = (0..REMEMBERED).min_by_key(|at| self.known[*at].seen)
        {
            self.known.swap_remove(oldest);
        }
        let id = ConnectionId(self.next);
        self.next += 1;
        self.known.push(Connection { id, tokens, seen: now });
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tcp_options::{END, NOTHING};

    const NOW: Time = Time::from_nanos(1_000_000_000);
    const A: [u8; 8] = *b"key of a";
    const B: [u8; 8] = *b"key of b";

    fn capable(keys: &[[u8; 8]], version: u8, more: usize) -> Vec<u8> {
        let mut option = vec![MPTCP, 0, MP_CAPABLE << 4 | version, 0x01];
        keys.iter().for_each(|key| option.extend(key));
        option.resize(option.len() + more, 0);
        option[1] = option.len() as u8;
        option
    }

    fn join(Token(token): Token) -> Vec<u8> {
        [vec![MPTCP, JOIN as u8, MP_JOIN << 4, 2], token.to_be_bytes().to_vec(), vec![9; 4]].concat()
    }

    #[test]
    fn a_token_is_the_first_32_bits_of_the_keys_sha_256() {
        // FIPS 180-4's example: SHA-256("abc") begins with ba7816bf.
        assert_eq!(token(b"abc"), Token(0xba78_16bf));
    }

    #[test]
    fn keys_and_tokens_are_read_from_the_option_and_nothing_from_others() {
        let (a, b) = (token(&A), token(&B));
        let table = [
            ("no key yet", capable(&[], VERSION, 0), None),
            ("syn/ack", capable(&[B], VERSION, 0), Some(MptcpOption::Capable([Some(b), None]))),
            ("ack", capable(&[A, B], VERSION, 0), Some(MptcpOption::Capable([Some(a), Some(b)]))),
            ("ack with data", capable(&[A, B], VERSION, 2), Some(MptcpOption::Capable([Some(a), Some(b)]))),
            (
                "ack with data and checksum",
                capable(&[A, B], VERSION, 4),
                Some(MptcpOption::Capable([Some(a), Some(b)])),
            ),
            ("version 0 hashes otherwise", capable(&[A, B], 0, 0), None),
            ("join", join(b), Some(MptcpOption::Join(b))),
            ("join's answer has no token", [vec![MPTCP, 16, MP_JOIN << 4], vec![0; 13]].concat(), None),
            ("dss", vec![MPTCP, 8, 0x20, 0, 0, 0, 0, 0], None),
            ("cut short", join(b)[..7].to_vec(), None),
            ("length zero", vec![MPTCP, 0, 0, 0], None),
            ("nothing", vec![], None),
        ];
        for (what, option, expected) in table {
            assert_eq!(find(&option).and_then(read), expected, "{what}");
            let among = [vec![NOTHING, 2, 4, 5, 180, NOTHING], option.clone(), vec![END, MPTCP]].concat();
            assert_eq!(find(&among).and_then(read), expected, "{what}, behind others");
        }
    }

    #[test]
    fn either_token_names_the_connection_once_both_were_seen_together() {
        let (a, b, c) = (token(&A), token(&B), token(b"key of c"));
        let mut connections = Connections::default();
        let first = connections.of(NOW, MptcpOption::Capable([Some(b), None]));
        assert_eq!(connections.of(NOW, MptcpOption::Capable([Some(a), Some(b)])), first);
        assert_eq!(connections.of(NOW, MptcpOption::Join(a)), first);
        assert_eq!(connections.of(NOW, MptcpOption::Join(b)), first);
        assert_ne!(connections.of(NOW, MptcpOption::Join(c)), first);
    }

    #[test]
    fn the_connection_silent_for_longest_makes_room() {
        let mut connections = Connections::default();
        let of = |connections: &mut Connections, n: u32| {
            connections.of(NOW + std::time::Duration::from_millis(u64::from(n)), MptcpOption::Join(Token(n)))
        };
        let first = of(&mut connections, 0);
        (1..=REMEMBERED as u32).for_each(|n| assert_ne!(of(&mut connections, n), first));
        assert_eq!(connections.known.len(), REMEMBERED);
        assert_ne!(of(&mut connections, 0), first);
    }
}
