//! Whether a portal answers by a link, and at which address it sees the question: asked beside a portal that runs.
//!
//! 1. A [`Probe`] has a socket of its own, by the link, and a key that nobody knows.
//! 2. [`Probe::ask`] sends an initiation. Who holds the private key of the peer answers with a cookie (docs/wire.md),
//!    keeps nothing and changes no session.
//! 3. The cookie goes by the address and port that the question came from: two that differ came from two, as [`Seen`]
//!    says. The portal draws a new secret every two minutes, and then all differ.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use hawser_config::PublicKey;
use hawser_core::handshake::{Cookie, Identity, Initiator, Memory, Psk, Way};
use hawser_core::units::{Random, Time};
use hawser_core::wire::handshake::{HandshakeIndex, KEY_LEN};
use hawser_core::wire::{Cipher, CipherSet, InstanceId, Offer, Protection};
use socket2::Socket;

use crate::run::SystemRandom;

/// An initiation is repeated this often, as by a portal (docs/wire.md).
const EVERY: Duration = Duration::from_millis(500);
/// Longest datagram that is an answer, in bytes: more than any.
const DATAGRAM_MAX: usize = 512;

/// The address that a portal saw, as far as it tells: the same one makes the same value, for two minutes. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(Cookie);

/// A socket that asks one portal by one link. Opened by whoever asks, who owns it.
#[derive(Debug)]
pub struct Probe {
    socket: Socket,
    initiator: Initiator,
    random: SystemRandom,
    opened: Instant,
}

impl Probe {
    /// Step 1: asks the portal of this key by a socket of UDP that is connected to it.
    ///
    /// # Errors
    /// [`io::ErrorKind::Other`] where the system has no randomness.
    pub fn by(socket: Socket, portal: &PublicKey) -> io::Result<Self> {
        let mut random = SystemRandom::new().map_err(io::Error::other)?;
        let mut private = [0; KEY_LEN];
        random.fill(&mut private);
        let (identity, offer) = (Identity::new(private), offer(random.next_u64()));
        let portal = hawser_core::handshake::PublicKey(*portal.as_bytes());
        let initiator = Initiator::new(&identity, &portal, Psk::default(), offer, Memory::default());
        Ok(Self { socket, initiator, random, opened: Instant::now() })
    }

    /// Steps 2 and 3; none where no answer came within `patience`, which is all that it takes.
    pub fn ask(&mut self, patience: Duration) -> Option<Seen> {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            let round_ends = end.min(Instant::now() + EVERY);
            let left = || Some(round_ends.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
            let _ = self.initiate();
            while let Some(within) = left() {
                match self.hear(within) {
                    Ok(true) => return self.initiator.cookie().map(Seen),
                    Ok(false) => {}
                    // What is refused now, by the system or by ICMP, may pass in the next round.
                    Err(_) => std::thread::sleep(left().unwrap_or_default()),
                }
            }
        }
        None
    }

    fn initiate(&mut self) -> io::Result<usize> {
        let now = Time::from_nanos(self.opened.elapsed().as_nanos() as u64);
        self.initiator.begin_round(now);
        let index = HandshakeIndex(self.random.next_u64() as u32);
        let message = self.initiator.initiation(now, Way::ONLY, index, &mut self.random);
        self.socket.send(&message.map_err(io::Error::other)?)
    }

    /// Whether what came is a cookie for us.
    fn hear(&mut self, within: Duration) -> io::Result<bool> {
        let mut bytes = [0; DATAGRAM_MAX];
        self.socket.set_read_timeout(Some(within))?;
        let length = (&self.socket).read(&mut bytes)?;
        Ok(self.initiator.on_cookie(&bytes[..length]).is_ok())
    }
}

/// Nobody takes it up.
fn offer(instance: u64) -> Offer {
    let ciphers = CipherSet::of(&[Cipher::ChaCha20Poly1305]);
    Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(instance) }
}

/// What answers as a portal does, for tests.
#[cfg(test)]
pub(crate) mod stranger {
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::{Arc, Mutex};
    use std::thread::JoinHandle;

    use hawser_core::handshake::Responder;
    use hawser_core::wire::handshake::INITIATION_LEN;

    use super::*;

    /// It answers until it is dropped. Its socket is closed then.
    pub struct Portal {
        /// Where it answers.
        pub address: SocketAddr,
        lives: Arc<Mutex<bool>>,
        thread: Option<JoinHandle<()>>,
    }

    /// Answers strangers as a portal of `key` does.
    pub fn portal(place: SocketAddr, key: [u8; KEY_LEN]) -> Portal {
        let socket = UdpSocket::bind(place).expect("a socket");
        let address = socket.local_addr().expect("an address");
        socket.set_read_timeout(Some(Duration::from_millis(10))).expect("it takes one");
        let lives = Arc::new(Mutex::new(true));
        let held = lives.clone();
        let thread = std::thread::spawn(move || {
            let (mut responder, mut bytes) = (Responder::new(Identity::new(key), offer(0)), [0; INITIATION_LEN]);
            let mut random = SystemRandom::new().expect("randomness");
            while *held.lock().expect("no panic") {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
                let initiation = &bytes[..length];
                if responder.initiation_id(initiation).is_none() {
                    continue;
                }
                let cookie = responder.cookie(Time::ZERO, initiation, from, &mut random).expect("it is an initiation");
                socket.send_to(&cookie, from).expect("sent");
            }
        });
        Portal { address, lives, thread: Some(thread) }
    }

    impl Drop for Portal {
        fn drop(&mut self) {
            *self.lives.lock().expect("no panic") = false;
            drop(self.thread.take().map(JoinHandle::join));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

    use super::stranger::portal;
    use super::*;

    /// How long a test waits for what comes at once.
    const PATIENCE: Duration = Duration::from_secs(10);
    const KEY: [u8; KEY_LEN] = [7; KEY_LEN];
    const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn public(key: [u8; KEY_LEN]) -> PublicKey {
        PublicKey::new(Identity::new(key).public().0).expect("not zero")
    }

    fn probe(endpoint: SocketAddr, key: &PublicKey) -> Probe {
        let socket = UdpSocket::bind(ANYWHERE).expect("a socket");
        socket.connect(endpoint).expect("connected");
        Probe::by(socket.into(), key).expect("randomness")
    }

    #[test]
    fn a_portal_sees_two_ports_as_two_and_one_as_the_same() {
        let portal = portal(ANYWHERE, KEY);
        let [mut one, mut other] = [(); 2].map(|()| probe(portal.address, &public(KEY)));
        let seen = one.ask(PATIENCE).expect("an answer");
        assert_ne!(other.ask(PATIENCE).expect("an answer"), seen);
        assert_eq!(one.ask(PATIENCE), Some(seen));
    }

    #[test]
    fn another_key_and_a_closed_port_are_asked_for_as_long_as_is_said() {
        let portal = portal(ANYWHERE, KEY);
        let closed = UdpSocket::bind(ANYWHERE).expect("a socket").local_addr().expect("an address");
        let other = PublicKey::new([9; KEY_LEN]).expect("not zero");
        for endpoint in [portal.address, closed] {
            let (start, patience) = (Instant::now(), Duration::from_millis(700));
            assert_eq!(probe(endpoint, &other).ask(patience), None);
            assert!(start.elapsed() >= patience);
        }
    }
}
