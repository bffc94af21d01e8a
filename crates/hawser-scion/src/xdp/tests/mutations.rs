//! Random damage to good frames, compared with what the rest of the crate reads of them.

use std::net::{IpAddr, SocketAddr};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::frame::{ETHERNET_LEN, IPV4, IPV6, Outer, SERVICE_VLAN, TAG_LEN, UDP_LEN, VLAN};
use super::frame::{datagram, extended, message, template};
use super::program::{Bench, OPEN, assert_only_forwarded, families, u16_at};
use crate::packet::{ENDHOST_PORT, Echo, Malformed, Part, ScmpView, Upper, dispatched_port, parse};

/// Frames that are tried: some seconds.
const ROUNDS: u64 = 40_000;
/// How many of them must go either way, so that the comparison means something.
const EITHER_WAY: u64 = 2_000;

#[test]
fn what_is_forwarded_is_what_the_codec_would_dispatch() {
    let bench = Bench::new("xrandom");
    let good = good_frames();
    let mut random = ChaCha8Rng::seed_from_u64(30_041);
    let (mut forwarded, mut left) = (0, 0);
    bench.run(|| {
        for round in 0..ROUNDS {
            let (outer, whole) = &good[random.next_u64() as usize % good.len()];
            let frame = damaged(outer, whole, &mut random);
            let passed = bench.pass(&frame);
            let expected = expectation(&frame);
            let (at, outer) = match &expected {
                Some((at, outer, _)) => (*at, outer),
                None => (0, outer),
            };
            if passed == frame {
                left += 1;
                let must = matches!(expected, Some((_, _, Expected::Must)));
                assert!(!must, "round {round} is to be forwarded: {frame:02x?}");
            } else {
                forwarded += 1;
                assert!(expected.is_some(), "round {round} is to be left alone: {frame:02x?}");
                assert_eq!(outer.udp_at(), at);
                assert_only_forwarded(outer, &frame, &passed, OPEN);
            }
        }
    });
    assert!(forwarded > EITHER_WAY && left > EITHER_WAY, "{forwarded} forwarded, {left} left");
}

/// Whether a frame is to be forwarded to the open port.
enum Expected {
    /// It must be.
    Must,
    /// It may be: the program is stricter or laxer there, and either is right.
    May,
}

/// Frames of all kinds that the program forwards.
fn good_frames() -> Vec<(Outer, Vec<u8>)> {
    let mut good = Vec::new();
    for (outer, application) in families() {
        for tags in [vec![], vec![VLAN], vec![SERVICE_VLAN, VLAN]] {
            let outer = Outer { tags, ..outer.clone() };
            for segments in [&[][..], &[2], &[2, 3, 2]] {
                let there = template(outer.source, application, segments);
                let plain = datagram(&there, b"a good packet");
                let ours = datagram(&template(application, outer.source, segments), b"what came back");
                let down = ScmpView::DestinationUnreachable { code: 1, quoted: &ours };
                let echo = ScmpView::EchoReply(Echo { id: OPEN, seq: 7, data: b"data" });
                let packets = [
                    extended(&plain, &[(200, 1), (201, 0)]),
                    extended(&plain, &[(201, 2)]),
                    message(&there, &down),
                    message(&there, &echo),
                    plain,
                ];
                good.extend(packets.map(|packet| (outer.clone(), outer.frame(&packet))));
            }
        }
    }
    good
}

/// A frame with a few bytes changed, some of them to what means something, or cut.
fn damaged(outer: &Outer, frame: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    const TELLING: [u8; 12] = [0, 1, 4, 6, 17, 44, 200, 201, 202, 0x45, 0x60, 255];
    let mut pick = |most: usize| random.next_u64() as usize % most;
    let mut frame = frame.to_vec();
    for _ in 0..pick(3) {
        // Addresses, ports and payload need less of it than the rest.
        let at = if pick(4) == 0 { pick(frame.len()) } else { outer.udp_at() + pick(frame.len() - outer.udp_at()) };
        frame[at] = match pick(3) {
            0 => TELLING[pick(TELLING.len())],
            1 => frame[at] ^ 1 << pick(8),
            _ => pick(256) as u8,
        };
    }
    if pick(8) == 0 {
        frame.truncate(ETHERNET_LEN + pick(frame.len() - ETHERNET_LEN));
    }
    frame
}

/// What is to become of a frame, with its headers as they are now: read here without the program's help.
fn expectation(frame: &[u8]) -> Option<(usize, Outer, Expected)> {
    let (mut ip_at, mut tags) = (ETHERNET_LEN, Vec::new());
    while tags.len() < 2 && frame.len() >= ip_at && [VLAN, SERVICE_VLAN].contains(&u16_at(frame, ip_at - 2)) {
        tags.push(u16_at(frame, ip_at - 2));
        ip_at += TAG_LEN;
    }
    if frame.len() < ip_at {
        return None;
    }
    let ip = &frame[ip_at..];
    let (source, destination, udp_at, len): (IpAddr, IpAddr, usize, usize) = match u16_at(frame, ip_at - 2) {
        IPV4 if ip.len() >= 20 && ip[0] == 0x45 && ip[9] == 17 && u16_at(ip, 6) & 0x3fff == 0 => {
            let octets = |at: usize| <[u8; 4]>::try_from(&ip[at..at + 4]).expect("four");
            (octets(12).into(), octets(16).into(), ip_at + 20, usize::from(u16_at(ip, 2)).checked_sub(20)?)
        }
        IPV6 if ip.len() >= 40 && ip[0] >> 4 == 6 && ip[6] == 17 => {
            let octets = |at: usize| <[u8; 16]>::try_from(&ip[at..at + 16]).expect("sixteen");
            (octets(8).into(), octets(24).into(), ip_at + 40, u16_at(ip, 4).into())
        }
        _ => return None,
    };
    let udp = frame.get(udp_at..).filter(|udp| udp.len() >= UDP_LEN)?;
    let udp_len = usize::from(u16_at(udp, 4));
    let payload = udp.get(UDP_LEN..udp_len).filter(|_| udp_len <= len && u16_at(udp, 2) == ENDHOST_PORT)?;
    let outer = Outer {
        tags,
        source: SocketAddr::new(source, u16_at(udp, 0)),
        destination: SocketAddr::new(destination, ENDHOST_PORT),
        macs: [0; 12],
    };
    verdict(payload, destination).map(|expected| (udp_at, outer, expected))
}

/// What is to become of a SCION packet that came to this host.
fn verdict(packet: &[u8], host: IpAddr) -> Option<Expected> {
    let parsed = match parse(packet) {
        Ok(parsed) => parsed,
        // The program reads neither an extension's options nor an interface of SCMP: the application does.
        Err(Malformed::Truncated { part: Part::ExtensionOption, .. } | Malformed::Interface(_)) => {
            return Some(Expected::May);
        }
        Err(_) => return None,
    };
    // TCP has a port too, but no socket here.
    let is_other = matches!(parsed.upper(), Upper::Other(_));
    if is_other || parsed.destination().1 != host || dispatched_port(&parsed) != Ok(OPEN) {
        return None;
    }
    let hosts = |host: IpAddr| if host.is_ipv4() { 4 } else { 16 };
    let header = 28 + hosts(host) + hosts(parsed.source().1) + parsed.dataplane().as_bytes().len();
    let fills_header = parsed.header().as_bytes().len() == header;
    let has_hops = parsed.dataplane().as_bytes().len() != 4;
    let path_is_read = matches!(packet[8], 0 | 1);
    // An error's quote is read as strictly as the packet itself, and must come from this host.
    let quotes = matches!(parsed.upper(), Upper::Scmp(message) if message.quoted().is_some());
    Some(if fills_header && has_hops && path_is_read && !quotes { Expected::Must } else { Expected::May })
}
