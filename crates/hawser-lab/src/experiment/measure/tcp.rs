//! TCP segments, and what Multipath TCP says in their options.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// TCP's option kinds. Source: RFC 9293 section 3.2, RFC 2018 section 3, RFC 8684 section 3.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const MPTCP: u8 = 30;
/// Bytes of a TCP header without options. Source: RFC 9293 section 3.1.
const HEADER: usize = 20;
/// Bytes of an option's kind and length.
const OPTION_HEADER: usize = 2;
/// Subtypes of Multipath TCP's option. Source: RFC 8684 section 8.
const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
const DSS: u8 = 2;
const ADD_ADDR: u8 = 3;
/// Bytes of a key, and of the options that hold one from the second word on. Source: RFC 8684 sections 3.1, 3.2.
const KEY: usize = 8;
const WORD: usize = 4;
/// ADD_ADDR's flag that it is an echo, and DSS's that it ends the data. Source: RFC 8684 sections 3.4.1, 3.3.
const ECHO: u8 = 0x01;
const DATA_FIN: u8 = 0x10;

/// A segment. Borrows from its packet.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'p> {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub window: u16,
    pub syn: bool,
    pub ack: bool,
    pub fin: bool,
    /// Bytes of data, whether they were captured or not.
    pub payload: u32,
    options: &'p [u8],
}

/// What Multipath TCP says in an option. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A connection is asked for or accepted; with the sender's key where it is said.
    Capable(Option<[u8; KEY]>),
    /// A subflow is to belong to the connection of this token.
    Join(u32),
    /// It is accepted or confirmed.
    Joined,
    /// Another address, with its number.
    AddAddress(u8),
    /// No more data follows.
    DataFin,
}

impl<'p> Segment<'p> {
    /// The segment in an IP packet, of which the beginning is enough; none where it holds something else.
    pub fn parse(packet: &'p [u8]) -> Option<Self> {
        let sliced = LaxSlicedPacket::from_ip(packet).ok()?;
        let (source, destination, ip_payload): (IpAddr, IpAddr, usize) = match sliced.net? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let payload = usize::from(header.total_len()).checked_sub(header.slice().len())?;
                (header.source_addr().into(), header.destination_addr().into(), payload)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let extensions = ip.extensions().slice().len();
                let payload = usize::from(header.payload_length()).checked_sub(extensions)?;
                (header.source_addr().into(), header.destination_addr().into(), payload)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
        let header = tcp.header_slice();
        Some(Self {
            source: SocketAddr::new(source, tcp.source_port()),
            destination: SocketAddr::new(destination, tcp.destination_port()),
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.acknowledgment_number(),
            window: tcp.window_size(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            fin: tcp.fin(),
            payload: u32::try_from(ip_payload.checked_sub(header.len())?).ok()?,
            options: header.get(HEADER..)?,
        })
    }

    /// Whether it acknowledges parts.
    pub fn has_sack(&self) -> bool {
        self.options().any(|(kind, _)| kind == SACK)
    }

    /// What Multipath TCP says.
    pub fn signals(&self) -> impl Iterator<Item = Signal> + use<'p> {
        let is_syn = self.syn;
        self.options().filter(|(kind, _)| *kind == MPTCP).filter_map(move |(_, body)| signal(body, is_syn))
    }

    /// Kind and body of each option, up to the first that is not whole.
    fn options(&self) -> impl Iterator<Item = (u8, &'p [u8])> + use<'p> {
        let mut rest = self.options;
        std::iter::from_fn(move || {
            loop {
                match *rest.first()? {
                    END => return None,
                    NO_OPERATION => rest = &rest[1..],
                    kind => {
                        let len = usize::from(*rest.get(1)?);
                        let body = rest.get(OPTION_HEADER..len)?;
                        rest = &rest[len..];
                        return Some((kind, body));
                    }
                }
            }
        })
    }
}

/// What the body of Multipath TCP's option says, its subtype first; none where it is of no interest here, or cut short.
fn signal(body: &[u8], is_syn: bool) -> Option<Signal> {
    let (&[subtype, second], rest) = body.split_first_chunk()?;
    match subtype >> 4 {
        MP_CAPABLE => Some(Signal::Capable(rest.first_chunk().copied())),
        // Only the first of the three has so much: token and random number.
        MP_JOIN if is_syn && rest.len() == 2 * WORD => Some(Signal::Join(u32::from_be_bytes(*rest.first_chunk()?))),
        MP_JOIN => Some(Signal::Joined),
        DSS => (second & DATA_FIN != 0).then_some(Signal::DataFin),
        ADD_ADDR => (subtype & ECHO == 0).then_some(Signal::AddAddress(second)),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::Ipv4Addr;

    use etherparse::PacketBuilder;

    use super::*;

    /// A segment to be written. Starts as a bare acknowledgment from port 1000 to 80.
    pub struct Draft {
        pub ports: (u16, u16),
        pub sequence: u32,
        pub acknowledgment: Option<u32>,
        pub syn: bool,
        pub window: u16,
        pub payload: usize,
        pub options: Vec<u8>,
    }

    impl Default for Draft {
        fn default() -> Self {
            let (ports, options) = ((1000, 80), Vec::new());
            Self { ports, sequence: 1, acknowledgment: Some(1), syn: false, window: 500, payload: 0, options }
        }
    }

    impl Draft {
        pub fn packet(&self) -> Vec<u8> {
            let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            let (from, to) = if self.ports.0 > self.ports.1 { (from, to) } else { (to, from) };
            let ip = PacketBuilder::ipv4(from.octets(), to.octets(), 64);
            let mut tcp = ip.tcp(self.ports.0, self.ports.1, self.sequence, self.window);
            tcp = if self.syn { tcp.syn() } else { tcp };
            if let Some(number) = self.acknowledgment {
                tcp = tcp.ack(number);
            }
            let tcp = tcp.options_raw(&self.options).expect("they fit");
            let mut packet = Vec::new();
            tcp.write(&mut packet, &vec![0; self.payload]).expect("a vector takes all");
            packet
        }
    }

    fn signals(options: &[u8], syn: bool) -> Vec<Signal> {
        let packet = Draft { options: options.to_vec(), syn, ..Draft::default() }.packet();
        Segment::parse(&packet).expect("a segment").signals().collect()
    }

    #[test]
    fn a_segment_is_read_from_its_beginning() {
        let packet = Draft { sequence: 7, acknowledgment: Some(9), payload: 1000, ..Draft::default() }.packet();
        for seen in [packet.len(), 128, 40] {
            let segment = Segment::parse(&packet[..seen]).expect("a segment");
            assert_eq!((segment.sequence, segment.acknowledgment, segment.payload), (7, 9, 1000), "{seen} bytes");
            assert_eq!((segment.source.port(), segment.destination.port()), (1000, 80));
            assert!(segment.ack && !segment.syn && !segment.fin);
        }
        assert!(Segment::parse(&packet[..30]).is_none(), "half a header");
        assert!(Segment::parse(&[]).is_none());
    }

    #[test]
    fn a_segment_of_ipv6_is_read_too() {
        let mut packet = Vec::new();
        let tcp = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(5, 6, 7, 8);
        tcp.write(&mut packet, &[0; 300]).expect("a vector takes all");
        let segment = Segment::parse(&packet[..128]).expect("a segment");
        assert_eq!((segment.source.port(), segment.payload), (5, 300));
    }

    #[test]
    fn what_multipath_tcp_says_is_understood() {
        let key = [1, 2, 3, 4, 5, 6, 7, 8];
        let table: [(&str, &[u8], bool, &[Signal]); 9] = [
            ("syn", &[30, 4, 0x01, 0x01], true, &[Signal::Capable(None)]),
            ("syn/ack", &[30, 12, 0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8], true, &[Signal::Capable(Some(key))]),
            ("join", &[1, 30, 12, 0x10, 2, 0, 0, 1, 2, 9, 9, 9, 9, 1, 1, 1], true, &[Signal::Join(0x102)]),
            ("joined", &[30, 16, 0x10, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], true, &[Signal::Joined]),
            ("an address", &[30, 8, 0x30, 5, 10, 0, 0, 1], false, &[Signal::AddAddress(5)]),
            ("its echo", &[30, 8, 0x31, 5, 10, 0, 0, 1], false, &[]),
            ("the end", &[30, 4, 0x20, 0x11], false, &[Signal::DataFin]),
            ("data", &[30, 4, 0x20, 0x01], false, &[]),
            ("cut short", &[30, 40, 0x20, 0x11], false, &[]),
        ];
        for (name, options, syn, expected) in table {
            assert_eq!(signals(options, syn), expected, "{name}");
        }
    }

    #[test]
    fn partial_acknowledgments_are_seen() {
        let with = |options: &[u8]| Draft { options: options.to_vec(), ..Draft::default() }.packet();
        assert!(Segment::parse(&with(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2])).expect("a segment").has_sack());
        assert!(!Segment::parse(&with(&[1, 1, 1, 0, 5, 10, 0, 0])).expect("a segment").has_sack(), "after the end");
    }
}
