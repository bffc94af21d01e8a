//! Captures that are made up, and what is decoded of them.

use std::io;

use hawser_core::handshake::SealKey;
use hawser_core::handshake::secrets::KeyLogEntry;
use hawser_core::units::{PacketNumber, PathId};
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, TAG_LEN, TruncatedNumber};
use hawser_decode::{DecodeError, Keys, Marks, Sighting, Sink, Summary, decode, json};

/// Link types, as libpcap numbers them.
pub const ETHERNET: u32 = 1;
pub const RAW: u32 = 101;
pub const SLL: u32 = 113;
pub const SLL2: u32 = 276;

/// A pcap file with microseconds; each packet is a second after the one before.
pub fn pcap(link_type: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link_type] {
        file.extend(u32::to_le_bytes(word));
    }
    for (second, packet) in (1..).zip(packets) {
        let len = packet.len() as u32;
        [second, 500_000, len, len].iter().for_each(|word| file.extend(u32::to_le_bytes(*word)));
        file.extend(packet);
    }
    file
}

pub fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let header = [source.to_be_bytes(), destination.to_be_bytes(), len.to_be_bytes(), [0, 0]];
    [&header.concat(), payload].concat()
}

pub fn tcp(source: u16, destination: u16, sequence: u32, syn: bool, payload: &[u8]) -> Vec<u8> {
    let mut header = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    header.extend(sequence.to_be_bytes());
    header.extend([0, 0, 0, 0, 0x50, if syn { 0x02 } else { 0x10 }, 0xff, 0xff, 0, 0, 0, 0]);
    [&header, payload].concat()
}

pub fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend((20 + payload.len() as u16).to_be_bytes());
    header.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    [&header, payload].concat()
}

pub fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([protocol, 64]);
    for host in [1, 2] {
        header.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    [&header, payload].concat()
}

pub fn ethernet(packet: &[u8]) -> Vec<u8> {
    let ether_type: [u8; 2] = if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&[2; 12], &ether_type[..], packet].concat()
}

/// A line of a key log whose secrets are of this byte.
pub fn key_log(peer: &str, byte: u8, new: bool, protection: &str) -> String {
    let hex = |byte: u8, len: usize| format!("{byte:02x}").repeat(len);
    let direction = |byte| format!("{} {} {}", hex(byte, 16), hex(byte, 12), hex(byte, 32));
    let new = if new { "new" } else { "next" };
    let (sent, received) = (direction(byte), direction(byte | 0x80));
    format!("hawser-keys-1 {peer} {new} aes-128-gcm {protection} sent {sent} received {received}\n")
}

/// A data datagram under the sending keys of the first line.
pub fn data(key_log: &str, path: u32, number: u64, frames: &[u8]) -> Vec<u8> {
    let entry: KeyLogEntry = key_log.parse().expect("a line");
    let key = SealKey::new(&entry.secrets.sent);
    let header = DataHeader { label: key.label(PathId(path)), number: TruncatedNumber::of(PacketNumber(number)) };
    let mut datagram = [&header.encode()[..], frames, &[0; TAG_LEN]].concat();
    assert!(datagram.len() > DATA_HEADER_LEN + TAG_LEN);
    key.seal(PathId(path), PacketNumber(number), &mut datagram).expect("it has room");
    datagram
}

/// A DATA frame with a small inner packet that names a number.
pub fn data_frame(bucket: u16, sequence: u32, number: u8) -> (Vec<u8>, Vec<u8>) {
    let packet = ipv4(200, &[number; 5]);
    let mut frame = vec![0x08];
    frame.extend(bucket.to_be_bytes());
    frame.extend(&sequence.to_be_bytes()[1..]);
    frame.extend(&packet);
    (frame, packet)
}

/// What was decoded. Empty at first.
#[derive(Default)]
pub struct Decoded {
    pub inner: Vec<Vec<u8>>,
    pub times: Vec<u64>,
    pub lines: Vec<serde_json::Value>,
}

impl Sink for Decoded {
    fn datagram(&mut self, sighting: &Sighting<'_>) -> io::Result<()> {
        self.lines.push(json::line(sighting));
        Ok(())
    }

    fn inner(&mut self, time: u64, packet: &[u8]) -> io::Result<()> {
        self.inner.push(packet.to_vec());
        self.times.push(time);
        Ok(())
    }
}

pub fn decoded(file: &[u8], key_log: &str) -> (Decoded, Summary, Result<(), DecodeError>) {
    let mut sink = Decoded::default();
    let keys = Keys::read(key_log).expect("a key log");
    let (summary, result) = decode(file, keys, Marks::default(), &mut sink);
    (sink, summary, result)
}
