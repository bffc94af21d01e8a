//! Somebody on the way who repeats what passed, and sends what is none.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::lab::{ENDPOINT, ms, parse};

/// All protocols. Source: packet(7).
const ETH_P_ALL: u16 = 3;
/// A raw socket that takes whole IP packets. Source: raw(7).
const IPPROTO_RAW: i32 = 255;
/// Where the remote portal listens.
const PORT: u16 = 4_920;
/// Packets that are kept for their return.
const KEPT: usize = 400;
/// How long is listened for them.
const LISTEN: Duration = Duration::from_millis(300);
/// Longest garbage, bytes.
const GARBAGE: usize = 1_400;

/// Datagrams of the session that pass a namespace: those to the remote portal, and those from it.
fn record(namespace: &Namespace) -> [Vec<Vec<u8>>; 2] {
    let listen = || {
        let all = Protocol::from(i32::from(ETH_P_ALL.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(all)).expect("a packet socket (needs root)");
        socket.set_read_timeout(Some(ms(50))).expect("an option");
        let (start, mut found, mut bytes) = (Instant::now(), [Vec::new(), Vec::new()], [0; 2_048]);
        while start.elapsed() < LISTEN {
            let Ok(length) = (&socket).read(&mut bytes) else { continue };
            if let Some(way) = way(&bytes[..length]).filter(|way| found[*way].len() < KEPT) {
                found[way].push(bytes[..length].to_vec());
            }
        }
        found
    };
    namespace.run(listen).expect("the namespace can be entered")
}

/// 0 to the remote portal, 1 from it: whole UDP datagrams over IPv4 without options (RFC 791, RFC 768).
fn way(packet: &[u8]) -> Option<usize> {
    let port = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let total = usize::from(port(2)?);
    if packet.first() != Some(&0x45) || packet.len() < 28 || packet[9] != 17 || total != packet.len() || total > 1_500 {
        return None;
    }
    [port(22)?, port(20)?].iter().position(|port| *port == PORT)
}

/// Repeats to both portals what passed, and sends the remote one garbage, for that time. Gives how many of each.
pub fn send(local: &Namespace, remote: &Namespace, dice: &mut ChaCha8Rng, time: Duration) -> (u64, u64) {
    let [up, down] = record(local);
    let start = Instant::now();
    let (mut replayed, mut garbage) = (0, 0);
    while start.elapsed() < time {
        replayed += again(local, &up) + again(remote, &down);
        garbage += nonsense(local, dice);
        std::thread::sleep(ms(100));
    }
    (replayed, garbage)
}

/// Sends packets as they were, from whom they were.
fn again(namespace: &Namespace, packets: &[Vec<u8>]) -> u64 {
    let send = || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(IPPROTO_RAW))).expect("a raw socket");
        let to = |packet: &[u8]| Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
        let sent =
            |packet: &&Vec<u8>| socket.send_to(packet, &SockAddr::from(SocketAddrV4::new(to(packet), 0))).is_ok();
        packets.iter().filter(sent).count() as u64
    };
    namespace.run(send).expect("the namespace can be entered")
}

/// A hundred datagrams of chance, each with the first byte of a true one or any.
fn nonsense(namespace: &Namespace, dice: &mut ChaCha8Rng) -> u64 {
    let mut send = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
        let mut sent = 0;
        for _ in 0..100 {
            let mut bytes = vec![0; dice.next_u32() as usize % GARBAGE + 1];
            dice.fill_bytes(&mut bytes);
            bytes[0] %= 16;
            sent += u64::from(socket.send_to(&bytes, (parse::<Ipv4Addr>(ENDPOINT), PORT)).is_ok());
        }
        sent
    };
    namespace.run(&mut send).expect("the namespace can be entered")
}
