//! The call that uses a token: our key becomes known to the portal that made it.
//!
//! 1. A UDP socket for each uplink and endpoint, bound to the uplink's interface. 2. Twice a second, an initiation by
//!    each.
//! 3. The first response that opens ends it: the portal holds the secret, and has written our key. No answer is an
//!    error that says what the sockets heard: a port that is closed tells so.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_config::{InterfaceName, PrivateKey};
use hawser_core::handshake::{Identity, Initiator, PublicKey, Way};
use hawser_core::units::{LinkId, Random, Time};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{Cipher, CipherSet, DatagramKind, InstanceId, Offer, Protection};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use super::Token;
use crate::run::SystemRandom;

/// An initiation is repeated this often, as by a portal.
const EVERY: Duration = Duration::from_millis(500);
/// Longest datagram that is an answer, in bytes: more than any.
const DATAGRAM_MAX: usize = 512;

/// By what we call. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// The interface that packets leave by.
    pub interface: InterfaceName,
}

/// Why we were not enrolled. Owned data.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// No socket could be opened by any uplink.
    #[error("call {endpoint} by {uplink}")]
    Socket {
        /// The endpoint that was called last.
        endpoint: SocketAddr,
        /// By which uplink.
        uplink: InterfaceName,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody said that nobody listens there.
    #[error("call {}: nothing listens there (udp)", list(.0))]
    Refused(BTreeSet<SocketAddr>),
    /// Nobody answered.
    #[error("call {}: no answer by any uplink within {} s (udp)", list(.0), .1.as_secs())]
    Silence(BTreeSet<SocketAddr>, Duration),
    /// There was nothing to call by, or nobody to call.
    #[error("call: no uplink reaches any endpoint of the token")]
    Nowhere,
    /// The system has no randomness.
    #[error("call: the system gives no random bytes")]
    NoRandomness,
    /// The system would not wait.
    #[error("wait for an answer")]
    Wait(#[source] io::Error),
}

fn list(endpoints: &BTreeSet<SocketAddr>) -> String {
    endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// One socket of the call. Its place among the others is its way's link.
struct Call {
    socket: Socket,
    endpoint: SocketAddr,
    refused: bool,
}

/// Enrols `key` by `token` at any of `endpoints`, and tells which of them answered. Blocks for `patience` at most.
///
/// # Errors
/// [`EnrolError`].
pub fn enrol(
    token: &Token,
    endpoints: &[SocketAddr],
    uplinks: &[Uplink],
    key: &PrivateKey,
    patience: Duration,
) -> Result<SocketAddr, EnrolError> {
    let mut random = SystemRandom::new().map_err(|_| EnrolError::NoRandomness)?;
    let identity = Identity::new(*key.as_bytes());
    let ciphers = CipherSet::of(&[Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305, Cipher::Blake2s]);
    let offer = Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(random.next_u64()) };
    let peer = PublicKey(*token.public_key.as_bytes());
    let mut initiator = Initiator::enrolling(&identity, &peer, &token.secret, offer);
    let mut calls = open(endpoints, uplinks)?;
    let start = Instant::now();
    while start.elapsed() < patience {
        let round = Instant::now();
        initiate(&mut initiator, &mut calls, start, &mut random);
        while let Some(left) = EVERY.checked_sub(round.elapsed()).filter(|left| !left.is_zero()) {
            if let Some(endpoint) = listen(&mut initiator, &mut calls, left)? {
                return Ok(endpoint);
            }
        }
        if calls.iter().all(|call| call.refused) {
            return Err(EnrolError::Refused(called(&calls)));
        }
    }
    // Who said nothing may be behind who refused, on another uplink.
    if calls.iter().any(|call| call.refused) {
        calls.retain(|call| call.refused);
        return Err(EnrolError::Refused(called(&calls)));
    }
    Err(EnrolError::Silence(called(&calls), patience))
}

fn called(calls: &[Call]) -> BTreeSet<SocketAddr> {
    calls.iter().map(|call| call.endpoint).collect()
}

/// Step 1. An uplink that cannot reach an endpoint does not keep the others from it.
fn open(endpoints: &[SocketAddr], uplinks: &[Uplink]) -> Result<Vec<Call>, EnrolError> {
    let (mut calls, mut failed) = (Vec::new(), None);
    for uplink in uplinks {
        for &endpoint in endpoints {
            match dial(&uplink.interface, endpoint) {
                Ok(socket) => calls.push(Call { socket, endpoint, refused: false }),
                Err(source) => {
                    failed = Some(EnrolError::Socket { endpoint, uplink: uplink.interface.clone(), source });
                }
            }
        }
    }
    if calls.is_empty() { Err(failed.unwrap_or(EnrolError::Nowhere)) } else { Ok(calls) }
}

fn dial(interface: &InterfaceName, endpoint: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(endpoint), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(interface.as_str().as_bytes()))?;
    socket.connect(&endpoint.into())?;
    Ok(socket)
}

/// Step 2: each way has an initiation of its own.
fn initiate(initiator: &mut Initiator, calls: &mut [Call], start: Instant, random: &mut dyn Random) {
    let now = Time::from_nanos(start.elapsed().as_nanos() as u64);
    initiator.begin_round(now);
    for (link, call) in (0..).map(LinkId).zip(calls) {
        let index = HandshakeIndex(random.next_u64() as u32);
        let way = Way { link, remote: call.endpoint };
        if let Ok(message) = initiator.initiation(now, way, index, random) {
            let sent = call.socket.send(&message);
            note(call, &sent);
        }
    }
}

/// Step 3: what came within `left`; the endpoint that knows us now.
fn listen(initiator: &mut Initiator, calls: &mut [Call], left: Duration) -> Result<Option<SocketAddr>, EnrolError> {
    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    let mut waiting: Vec<_> = calls.iter().map(|call| PollFd::new(&call.socket, PollFlags::IN)).collect();
    match poll(&mut waiting, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(EnrolError::Wait(error.into())),
    }
    for call in calls {
        let mut bytes = [0; DATAGRAM_MAX];
        let heard = (&call.socket).read(&mut bytes);
        note(call, &heard);
        let Ok(length) = heard else { continue };
        let datagram = &bytes[..length];
        match datagram.first().map(|first| DatagramKind::of(*first)) {
            Some(Ok(DatagramKind::Response)) if initiator.on_response(datagram).is_ok() => {
                return Ok(Some(call.endpoint));
            }
            // The next initiation by this way says the cookie.
            Some(Ok(DatagramKind::CookieReply)) => drop(initiator.on_cookie(datagram)),
            _ => {}
        }
    }
    Ok(None)
}

/// A closed port answers by ICMP, which the socket tells once, at the next call.
fn note(call: &mut Call, result: &io::Result<usize>) {
    call.refused |= result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
}
