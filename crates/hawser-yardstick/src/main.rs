//! The yardstick: the least that carries IP packets over UDP, encrypted, as fast as ready-made parts allow.
//!
//! **Frozen.** Hawser is measured against it, in turns on one machine (`make bench`). No feature may enter it, and
//! nothing that Hawser does better may be brought here: else the bar moves with what it measures. It has one path, one
//! static key, no scheduling, no acknowledgements, no replay window, no rekey. It is a tool of the lab, and protects
//! nobody.
//!
//! 1. Out, a thread: a super-packet from TUN, split into segments (tun-rs); each sealed into a batch (ring), which is
//!    sent as one (quinn-udp, GSO) when the TUN has no more, or when the next segment does not fit.
//! 2. In, a thread: a batch received (quinn-udp, GRO), each datagram opened, all written to TUN coalesced (tun-rs).
//!
//! A datagram: a counter (8 bytes, little endian), the sealed packet, its tag (16). The nonce is the sender's role and
//! the counter.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::thread;

use clap::{Parser, ValueEnum};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::digest;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

/// Bytes of a datagram beside the inner packet: before and behind it.
const HEAD: usize = size_of::<u64>();
const TAG: usize = 16;
/// Inner MTU over 1500: less IPv4 and UDP headers (RFC 791, RFC 768), and ours.
const MTU: u16 = 1500 - 20 - 8 - (HEAD + TAG) as u16;
/// The largest packet, and the largest UDP payload over IPv4. Source: RFC 791, RFC 768.
const LARGEST: usize = 65_535;
const LARGEST_PAYLOAD: usize = LARGEST - 20 - 8;
/// Bytes that the socket holds, so that a burst of a stream fits: as Hawser's.
const SOCKET_BUFFER: usize = 4 << 20;

/// Carry IP packets between a TUN device and a UDP socket: the lab's yardstick, for no other use
#[derive(Debug, Parser)]
struct Arguments {
    /// The TUN device to make
    #[arg(long)]
    tun: String,
    /// Own address and port
    #[arg(long)]
    bind: SocketAddr,
    /// The other one's
    #[arg(long)]
    peer: SocketAddr,
    /// Which of the two this is
    #[arg(long)]
    role: Role,
    #[arg(long)]
    cipher: Cipher,
    /// What the key is derived from
    #[arg(long)]
    secret: String,
}

/// Keeps the nonces of both directions apart. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Local,
    Remote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cipher {
    #[value(name = "aes-128-gcm")]
    Aes128Gcm,
    #[value(name = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

/// Seals and opens. Constant after it was made; shared by both threads.
struct Key(LessSafeKey);

impl Key {
    fn new(cipher: Cipher, secret: &str) -> Self {
        let algorithm = match cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        let hash = digest::digest(&digest::SHA256, secret.as_bytes());
        let key = UnboundKey::new(algorithm, &hash.as_ref()[..algorithm.key_len()]);
        Self(LessSafeKey::new(key.expect("a hash is as long as the longest key")))
    }

    /// Appends a datagram with the packet to a batch.
    fn seal(&self, sender: Role, counter: u64, packet: &[u8], batch: &mut Vec<u8>) {
        batch.extend_from_slice(&counter.to_le_bytes());
        let start = batch.len();
        batch.extend_from_slice(packet);
        let sealed = self.0.seal_in_place_separate_tag(nonce(sender, counter), Aad::empty(), &mut batch[start..]);
        batch.extend_from_slice(sealed.expect("a packet is shorter than a cipher's limit").as_ref());
    }

    /// Puts the packet of a datagram behind the room for a virtio header. False for what was not sealed by the other
    /// one.
    fn open(&self, sender: Role, datagram: &[u8], buffer: &mut Vec<u8>) -> bool {
        let Some((counter, sealed)) = datagram.split_first_chunk() else { return false };
        buffer.clear();
        buffer.resize(VIRTIO_NET_HDR_LEN, 0);
        buffer.extend_from_slice(sealed);
        let nonce = nonce(sender, u64::from_le_bytes(*counter));
        let opened = self.0.open_in_place(nonce, Aad::empty(), &mut buffer[VIRTIO_NET_HDR_LEN..]);
        let Ok(length) = opened.map(|packet| packet.len()) else { return false };
        buffer.truncate(VIRTIO_NET_HDR_LEN + length);
        true
    }
}

fn nonce(sender: Role, counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[0] = sender as u8;
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// What both threads use. Constant; both borrow it.
struct Forwarder {
    tun: SyncDevice,
    socket: UdpSocket,
    state: UdpSocketState,
    key: Key,
    role: Role,
    peer: SocketAddr,
}

impl Forwarder {
    fn new(arguments: &Arguments) -> io::Result<Self> {
        let tun = DeviceBuilder::new().name(&arguments.tun).mtu(MTU).with(|device| {
            device.offload(true);
        });
        let tun = tun.build_sync()?;
        tun.set_nonblocking(true)?;
        let socket = UdpSocket::bind(arguments.bind)?;
        set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)?;
        let state = UdpSocketState::new((&socket).into())?;
        let key = Key::new(arguments.cipher, &arguments.secret);
        Ok(Self { tun, socket, state, key, role: arguments.role, peer: arguments.peer })
    }

    /// Step 1.
    fn outbound(&self) -> io::Result<()> {
        let mut packet = vec![0; VIRTIO_NET_HDR_LEN + LARGEST];
        let mut segments = vec![vec![0; MTU.into()]; IDEAL_BATCH_SIZE];
        let mut sizes = [0; IDEAL_BATCH_SIZE];
        let (mut batch, mut segment_size, mut counter) = (Vec::with_capacity(LARGEST), 0, 0);
        loop {
            let count = match self.tun.recv_multiple(&mut packet, &mut segments, &mut sizes, 0) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.send(&mut batch, segment_size)?;
                    wait(&self.tun, PollFlags::IN)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            for (segment, size) in segments.iter().zip(sizes).take(count) {
                let size_sealed = HEAD + size + TAG;
                if !fits(batch.len(), segment_size, size_sealed, self.state.max_gso_segments()) {
                    self.send(&mut batch, segment_size)?;
                }
                if batch.is_empty() {
                    segment_size = size_sealed;
                }
                self.key.seal(self.role, counter, &segment[..size], &mut batch);
                counter += 1;
            }
        }
    }

    /// Sends what is there, and empties it. What the network refuses is lost, as on the way.
    fn send(&self, batch: &mut Vec<u8>, segment_size: usize) -> io::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let (destination, segment_size) = (self.peer, Some(segment_size));
        let transmit = Transmit { destination, ecn: None, contents: batch, segment_size, src_ip: None };
        while self.state.send((&self.socket).into(), &transmit).is_err() {
            wait(&self.socket, PollFlags::OUT)?;
        }
        batch.clear();
        Ok(())
    }

    /// Step 2.
    fn inbound(&self) -> io::Result<()> {
        let other = if self.role == Role::Local { Role::Remote } else { Role::Local };
        let mut received = vec![0; BATCH_SIZE * LARGEST];
        let mut buffers: Vec<IoSliceMut<'_>> = received.chunks_exact_mut(LARGEST).map(IoSliceMut::new).collect();
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut packets: Vec<Vec<u8>> = Vec::new();
        let mut table = GROTable::new();
        loop {
            let count = match self.state.recv((&self.socket).into(), &mut buffers, &mut metas) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.socket, PollFlags::IN)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut opened = 0;
            for (meta, buffer) in metas.iter().zip(&buffers).take(count).filter(|(meta, _)| meta.len > 0) {
                for datagram in buffer[..meta.len].chunks(meta.stride) {
                    if opened == packets.len() {
                        packets.push(Vec::with_capacity(VIRTIO_NET_HDR_LEN + LARGEST));
                    }
                    opened += usize::from(self.key.open(other, datagram, &mut packets[opened]));
                }
            }
            // The kernel refuses what is no IP packet: that is lost, and the rest was written.
            let _ = self.tun.send_multiple(&mut table, &mut packets[..opened], VIRTIO_NET_HDR_LEN);
        }
    }
}

/// Whether a datagram may join a batch: all but the last are of one size.
fn fits(batch: usize, segment_size: usize, size: usize, most_segments: usize) -> bool {
    let is_even = batch == 0 || batch.is_multiple_of(segment_size) && size <= segment_size;
    is_even && batch + size <= LARGEST_PAYLOAD && batch < most_segments * segment_size.max(1)
}

fn wait(on: &impl std::os::fd::AsFd, event: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(on, event)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn main() -> ExitCode {
    let run = || -> io::Result<()> {
        let forwarder = Forwarder::new(&Arguments::parse())?;
        thread::scope(|scope| {
            scope.spawn(|| end("out", forwarder.outbound()));
            end("in", forwarder.inbound())
        })
    };
    let Err(error) = run() else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

/// Neither direction is of use without the other.
fn end(direction: &str, result: io::Result<()>) -> ! {
    if let Err(error) = result {
        eprintln!("error: {direction}: {error}");
    }
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_seals_only_the_other_opens() {
        for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
            let (key, stranger) = (Key::new(cipher, "a"), Key::new(cipher, "b"));
            let (mut batch, mut buffer) = (Vec::new(), Vec::new());
            key.seal(Role::Local, 7, b"packet", &mut batch);
            assert_eq!(batch.len(), HEAD + 6 + TAG);
            assert!(key.open(Role::Local, &batch, &mut buffer));
            assert_eq!(&buffer[VIRTIO_NET_HDR_LEN..], b"packet");
            assert!(!key.open(Role::Remote, &batch, &mut buffer), "reflected");
            assert!(!stranger.open(Role::Local, &batch, &mut buffer), "another key");
            assert!(!key.open(Role::Local, &batch[..HEAD + 3], &mut buffer), "cut short");
            batch[HEAD] ^= 1;
            assert!(!key.open(Role::Local, &batch, &mut buffer), "changed");
        }
    }

    #[test]
    fn a_batch_is_of_one_size_but_for_its_last() {
        let table = [
            (0, 0, 1472, true, "the first"),
            (1472, 1472, 1472, true, "an equal one"),
            (2944, 1472, 100, true, "a shorter one"),
            (3044, 1472, 100, false, "after a shorter one"),
            (1472, 1472, 1473, false, "a longer one"),
            (64 * 100, 100, 100, false, "one more than the kernel segments"),
            (44 * 1472, 1472, 1472, false, "more than a datagram holds"),
        ];
        for (batch, segment_size, size, expected, name) in table {
            assert_eq!(fits(batch, segment_size, size, 64), expected, "{name}");
        }
    }
}
