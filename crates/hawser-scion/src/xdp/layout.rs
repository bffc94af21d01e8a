//! What the program and this side share: bpf/layout.h, in Rust. The object is built from the one, and tests hold both
//! together.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The compiled program.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/dispatch.bpf.o");
/// Names in the object.
pub(super) const PROGRAM: &str = "dispatch";
pub(super) const WHITELIST: &str = "WHITELIST";
pub(super) const COUNTERS: &str = "COUNTERS";

/// Where the first counters are.
const PACKETS: usize = 0;
const FORWARDED: usize = 1;
const REASONS: usize = 2;

/// Why a SCION packet was left for the dispatcher. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Left {
    /// IPv4 options, or a fragment.
    Outer,
    /// Versions or lengths that do not fit.
    Malformed,
    /// Not addressed to the host that the outer header names.
    Address,
    /// Neither an empty path nor a SCION path.
    Path,
    /// Extensions doubled or out of order.
    Extension,
    /// Neither UDP nor SCMP.
    Protocol,
    /// SCMP that names no application, such as an echo request.
    Scmp,
    /// Its port is not on the whitelist.
    Port,
    /// Its port is on the whitelist for every address of this host, but the packet is for another host.
    Transit,
    /// Its port is on the whitelist, but no socket is open on it.
    Socket,
    /// A super-packet with packets for more than one port.
    Train,
}

/// What the program has counted since it was loaded, on all its interfaces. A super-packet counts once.
/// Zero at first. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// All packets.
    pub packets: u64,
    /// SCION packets that went straight to their application.
    pub forwarded: u64,
    left: [u64; Left::ALL.len()],
}

/// A port of an address on the whitelist; the address of zeros is every one of its family. There is no default. Plain
/// data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; Key::BYTES]);

/// Who put a port on the whitelist: a process and a number of its own for it; the port of `attach --port` has neither.
/// Nobody by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) process: u32,
    pub(super) lease: u32,
}

impl Left {
    /// In the order of their counters.
    pub const ALL: [Left; 11] = [
        Left::Outer,
        Left::Malformed,
        Left::Address,
        Left::Path,
        Left::Extension,
        Left::Protocol,
        Left::Scmp,
        Left::Port,
        Left::Transit,
        Left::Socket,
        Left::Train,
    ];

    /// In a word or two, for tables and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Left::Outer => "options or fragment",
            Left::Malformed => "malformed",
            Left::Address => "other address",
            Left::Path => "path type",
            Left::Extension => "extensions",
            Left::Protocol => "protocol",
            Left::Scmp => "scmp",
            Left::Port => "not whitelisted",
            Left::Transit => "transit",
            Left::Socket => "no socket",
            Left::Train => "mixed train",
        }
    }
}

impl Counters {
    /// How many there are.
    pub(super) const COUNT: usize = REASONS + Left::ALL.len();

    /// From the map, in its order.
    pub(super) fn from_map(counted: [u64; Self::COUNT]) -> Counters {
        let mut left = [0; Left::ALL.len()];
        left.copy_from_slice(&counted[REASONS..]);
        Counters { packets: counted[PACKETS], forwarded: counted[FORWARDED], left }
    }

    /// SCION packets left for the dispatcher.
    pub fn left_alone(&self) -> u64 {
        self.left.iter().sum()
    }

    /// Those of them left for this reason.
    pub fn left_for(&self, reason: Left) -> u64 {
        self.left[reason as usize]
    }
}

impl Key {
    /// Bytes of it: address, port, two of zero.
    pub(super) const BYTES: usize = 20;
    const PORT_AT: usize = 16;

    pub(super) fn new(address: IpAddr, port: u16) -> Key {
        let mut bytes = [0; Key::BYTES];
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        bytes[..Key::PORT_AT].copy_from_slice(&address.octets());
        bytes[Key::PORT_AT..][..2].copy_from_slice(&port.to_be_bytes());
        Key(bytes)
    }

    /// The ports of a socket that is bound like this. One that is bound to every IPv6 address has IPv4's too, unless it
    /// may not.
    pub(super) fn of_socket(address: IpAddr, port: u16, only_ipv6: bool) -> Vec<Key> {
        let mut keys = vec![Key::new(address, port)];
        if address == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !only_ipv6 {
            keys.push(Key::new(Ipv4Addr::UNSPECIFIED.into(), port));
        }
        keys
    }

    pub(super) fn address(&self) -> IpAddr {
        let (octets, _) = self.0.split_first_chunk::<{ Key::PORT_AT }>().expect("it is longer than an address");
        IpAddr::from(*octets).to_canonical()
    }

    pub(super) fn port(&self) -> u16 {
        u16::from_be_bytes([self.0[Key::PORT_AT], self.0[Key::PORT_AT + 1]])
    }

    pub(super) fn to_map(self) -> [u8; Key::BYTES] {
        self.0
    }

    pub(super) fn from_map(bytes: [u8; Key::BYTES]) -> Key {
        Key(bytes)
    }
}

impl Entry {
    pub(super) fn to_map(self) -> [u32; 2] {
        [self.process, self.lease]
    }

    pub(super) fn from_map([process, lease]: [u32; 2]) -> Entry {
        Entry { process, lease }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ring::digest::{SHA256, digest};

    use super::*;

    #[test]
    fn the_object_and_its_source_are_those_that_were_compiled_together() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        let sums = fs::read_to_string(folder.join("SHA256SUMS")).expect("`make bpf` writes it");
        let mut listed = Vec::new();
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").expect("a sum and a name");
            let is = digest(&SHA256, &fs::read(folder.join(name)).expect("it is there"));
            let is: String = is.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(is, sum, "{name} was changed: run `make bpf`, and commit what it makes");
            listed.push(name.to_owned());
        }
        let names = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
        let mut there: Vec<String> = names.map(|name| name.into_string().expect("a plain name")).collect();
        there.retain(|name| name != "SHA256SUMS");
        listed.sort();
        there.sort();
        assert_eq!(listed, there);
    }

    #[test]
    fn a_key_has_the_bytes_that_the_program_compares() {
        let key = Key::new("10.0.0.1".parse().expect("an address"), 0x1234);
        let mut bytes = [0; Key::BYTES];
        bytes[10..18].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1, 0x12, 0x34]);
        assert_eq!(key.to_map(), bytes);
        for text in ["10.0.0.1", "0.0.0.0", "::", "fd00::1"] {
            let address: IpAddr = text.parse().expect("an address");
            let key = Key::from_map(Key::new(address, 4920).to_map());
            assert_eq!((key.address(), key.port()), (address, 4920));
        }
    }

    #[test]
    fn a_socket_has_the_ports_that_the_kernel_gives_it() {
        let table: [(&str, bool, &[&str]); 5] = [
            ("0.0.0.0", false, &["0.0.0.0"]),
            ("::", false, &["::", "0.0.0.0"]),
            ("::", true, &["::"]),
            ("::ffff:10.0.0.1", false, &["10.0.0.1"]),
            ("fd00::1", false, &["fd00::1"]),
        ];
        for (bound, only_ipv6, expected) in table {
            let keys = Key::of_socket(bound.parse().expect("an address"), 1, only_ipv6);
            assert_eq!(keys.iter().map(|key| key.address().to_string()).collect::<Vec<_>>(), expected, "{bound}");
        }
    }

    #[test]
    fn every_reason_has_its_counter() {
        for (index, reason) in Left::ALL.into_iter().enumerate() {
            let mut counted = [0; Counters::COUNT];
            counted[REASONS + index] = 3;
            let counters = Counters::from_map(counted);
            assert_eq!((counters.left_for(reason), counters.left_alone()), (3, 3), "{}", reason.word());
        }
    }
}
