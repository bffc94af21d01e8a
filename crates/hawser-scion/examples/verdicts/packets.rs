//! Random packets: whole ones, changed ones, noise.
//!
//! 1. [`any`] chooses.
//! 2. A whole packet is put together from its end: what it carries, extensions, then the header.
//! 3. Changes: bits, bytes, lengths, cuts.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;

/// Bytes of noise, at most.
const NOISE_LEN: u64 = 200;
/// Changes made to one packet, at most.
const MAX_CHANGES: u64 = 4;
/// Quotes within quotes, at most.
const MAX_DEPTH: u32 = 2;

/// Types of SCMP messages, with the bytes that each has before its quote or data; the last two are not known.
const MESSAGES: [(u8, usize); 11] =
    [(1, 4), (2, 4), (4, 4), (5, 16), (6, 24), (128, 4), (129, 4), (130, 20), (131, 20), (3, 4), (200, 0)];
/// Bytes of the header in which lengths and types stand.
const LENGTH_FIELDS: [usize; 6] = [4, 5, 6, 7, 8, 9];

/// Any packet: of ten, four are whole, four changed, two are noise.
pub fn any(rng: &mut ChaCha20Rng) -> Vec<u8> {
    match below(rng, 10) {
        0..4 => whole(rng, 0),
        4..8 => {
            let mut packet = whole(rng, 0);
            for _ in 0..=below(rng, MAX_CHANGES) {
                change(rng, &mut packet);
            }
            packet
        }
        8 => noise(rng, NOISE_LEN),
        _ => {
            // Noise behind a common header that may be right, so that it is not refused at once.
            let mut packet = noise(rng, NOISE_LEN);
            let head =
                [0, 0, 0, 1, 17, 10 + below(rng, 20) as u8, 0, 0, below(rng, 4) as u8, [0, 0x33, 3][below3(rng)]];
            let len = head.len().min(packet.len());
            packet[..len].copy_from_slice(&head[..len]);
            packet
        }
    }
}

fn whole(rng: &mut ChaCha20Rng, depth: u32) -> Vec<u8> {
    let (destination, source) = (host_kind(rng), host_kind(rng));
    let hosts_len = 4 * (2 + usize::from(destination & 3) + usize::from(source & 3));
    let addresses = noise_of(rng, 16 + hosts_len);
    let (path_type, path) = path(rng);
    let (mut next, mut payload) = carried(rng, &addresses, depth);
    for extension in [201, 200] {
        if one_in(rng, 10) {
            payload = [with_extension(rng, next), payload].concat();
            next = if one_in(rng, 20) { 200 } else { extension };
        }
    }
    let header_len = 12 + addresses.len() + path.len();
    let mut packet = noise_of(rng, 12);
    packet[0] &= 0xf;
    packet[4..6].copy_from_slice(&[next, (header_len / 4) as u8]);
    packet[6..8].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    packet[8..10].copy_from_slice(&[path_type, destination << 4 | source]);
    [packet, addresses, path, payload].concat()
}

/// Mostly IPv4 and IPv6; some services, and types that are not known.
fn host_kind(rng: &mut ChaCha20Rng) -> u8 {
    match below(rng, 50) {
        0..24 => 0,
        24..48 => 3,
        48 => 4,
        _ => below(rng, 16) as u8,
    }
}

fn path(rng: &mut ChaCha20Rng) -> (u8, Vec<u8>) {
    let (kind, mut path) = match below(rng, 20) {
        0..4 => (0, Vec::new()),
        4..17 => (1, scion_path(rng)),
        17 => (2, noise_of(rng, 32)),
        18 => (3, [noise_of(rng, 16), scion_path(rng)].concat()),
        _ => (below(rng, 256) as u8, scion_path(rng)),
    };
    if one_in(rng, 50) {
        path.extend([0; 4]);
    }
    (kind, path)
}

/// Mostly right; some have gaps, too many hops, no hops, or stand nowhere.
fn scion_path(rng: &mut ChaCha20Rng) -> Vec<u8> {
    let segments = 1 + below3(rng);
    let mut lens = [0; 3];
    lens[..segments].fill_with(|| 1 + below(rng, 4) as u32);
    if one_in(rng, 20) {
        lens = [0; 3].map(|_: u32| [0, 1, 30, 63][below(rng, 4) as usize]);
    }
    let (infos, hops) = (lens.iter().filter(|len| **len > 0).count(), lens.iter().sum::<u32>());
    let current = below(rng, hops.max(1).into()) as u32;
    let mut info = u32::from(current >= lens[0]) + u32::from(current >= lens[0] + lens[1]);
    if one_in(rng, 10) {
        info = below(rng, 4) as u32;
    }
    let reserved = below(rng, 64) as u32;
    let meta = info << 30 | (current & 0x3f) << 24 | reserved << 18 | lens[0] << 12 | lens[1] << 6 | lens[2];
    let mut path = meta.to_be_bytes().to_vec();
    path.extend(noise_of(rng, 8 * infos + 12 * hops as usize));
    path
}

/// An extension of random options, most of which fill it.
fn with_extension(rng: &mut ChaCha20Rng, next: u8) -> Vec<u8> {
    let len = 4 * (1 + below(rng, 5) as usize);
    let mut extension = vec![next, (len / 4 - 1) as u8];
    while extension.len() < len {
        let room = len - extension.len();
        let data = below(rng, room as u64) as usize;
        if room < 2 || one_in(rng, 4) {
            extension.push(0);
        } else {
            let data = data.min(room - 2);
            let said = if one_in(rng, 30) { data + 1 } else { data };
            extension.extend([1 + below(rng, 4) as u8, said as u8]);
            extension.extend(noise_of(rng, data));
        }
    }
    extension
}

/// A protocol's number and its bytes.
fn carried(rng: &mut ChaCha20Rng, addresses: &[u8], depth: u32) -> (u8, Vec<u8>) {
    match below(rng, 20) {
        0..9 => {
            let payload = noise(rng, 80);
            let mut udp = noise_of(rng, 4);
            let len = match below(rng, 30) {
                0 => 0,
                1 => below(rng, 100),
                _ => 8 + payload.len() as u64,
            };
            udp.extend((len as u16).to_be_bytes());
            udp.extend([0; 2]);
            udp.extend(payload);
            put_checksum(rng, 17, addresses, &mut udp, 6);
            (17, udp)
        }
        9..18 => {
            let mut scmp = message(rng, depth);
            put_checksum(rng, 202, addresses, &mut scmp, 2);
            (202, scmp)
        }
        18 => (6, noise(rng, 40)),
        _ => (below(rng, 256) as u8, noise(rng, 40)),
    }
}

fn message(rng: &mut ChaCha20Rng, depth: u32) -> Vec<u8> {
    let (kind, body_len) = MESSAGES[below(rng, MESSAGES.len() as u64) as usize];
    let mut message = vec![kind, below(rng, 8) as u8, 0, 0];
    let mut body = noise_of(rng, body_len);
    if !one_in(rng, 50) {
        // Interfaces end traceroutes, and follow the AS of errors.
        let interfaces: &[usize] = match kind {
            5 => &[8],
            6 => &[8, 16],
            130 | 131 => &[12],
            _ => &[],
        };
        interfaces.iter().for_each(|at| body[*at..*at + 6].fill(0));
    }
    message.extend(body);
    if depth < MAX_DEPTH && !one_in(rng, 5) {
        let quote = whole(rng, depth + 1);
        let cut = if one_in(rng, 3) { below(rng, quote.len() as u64) as usize } else { quote.len() };
        message.extend(&quote[..cut]);
    } else {
        message.extend(noise(rng, 60));
    }
    message
}

/// The right checksum, as RFC 1071 tells it, for two of three packets.
fn put_checksum(rng: &mut ChaCha20Rng, protocol: u8, addresses: &[u8], upper: &mut [u8], at: usize) {
    if one_in(rng, 3) {
        return;
    }
    let pseudo = [0, 0, (upper.len() >> 8) as u8, upper.len() as u8, 0, protocol];
    let mut sum = 0u32;
    for bytes in [addresses, &pseudo, upper] {
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    upper[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn change(rng: &mut ChaCha20Rng, packet: &mut Vec<u8>) {
    if packet.is_empty() {
        return;
    }
    let at = below(rng, packet.len() as u64) as usize;
    match below(rng, 6) {
        0 => packet[at] ^= 1 << below(rng, 8),
        1 => packet[at] = [0, 1, 0x3f, 0x7f, 0x80, 0xff][below(rng, 6) as usize],
        2 => packet.truncate(at),
        3 => packet.extend(noise(rng, 20)),
        4 => packet.insert(at, below(rng, 256) as u8),
        _ => {
            let field = LENGTH_FIELDS[below(rng, LENGTH_FIELDS.len() as u64) as usize];
            if let Some(byte) = packet.get_mut(field) {
                *byte = byte.wrapping_add(below(rng, 5) as u8).wrapping_sub(2);
            }
        }
    }
}

fn noise(rng: &mut ChaCha20Rng, end: u64) -> Vec<u8> {
    let len = below(rng, end) as usize;
    noise_of(rng, len)
}

fn noise_of(rng: &mut ChaCha20Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn one_in(rng: &mut ChaCha20Rng, count: u64) -> bool {
    below(rng, count) == 0
}

fn below3(rng: &mut ChaCha20Rng) -> usize {
    below(rng, 3) as usize
}

fn below(rng: &mut ChaCha20Rng, end: u64) -> u64 {
    rng.next_u64() % end
}
