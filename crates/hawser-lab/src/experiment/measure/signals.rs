//! What packets say of TCP and Multipath TCP, at the host where applications start: its interfaces are the links' ends.
//!
//! 1. Duplicate acknowledgments, of either direction, by RFC 5681 section 2, or with news of parts (RFC 6675).
//! 2. Connections by their keys: a key's SHA-256 begins with the token by which a subflow joins (RFC 8684 section 3.2).
//! 3. Everything counts once, however often it is retransmitted.
//! 4. Segments that begin, change or end a connection are kept as a capture file, which says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_decode::PcapWriter;
use hawser_shim::mptcp::{CapableForm, Flags, JoinForm, MptcpOption, Segment, Sequence, Token};
use hawser_wire::Look;

use crate::contender::Transport;
use crate::experiment::Findings;
use crate::stage::Ends;

/// The figures found here.
pub const SIGNALS: [&str; 6] = ["duplicate_acks", "subflows", "mp_capable", "mp_join", "add_addr", "data_fin"];

/// One direction of a flow.
type Flow = (SocketAddr, SocketAddr);

/// Who is looked at, and what was seen. Starts with nothing; one owner.
#[derive(Debug)]
pub struct Signals {
    capture: PcapWriter<Vec<u8>>,
    ends: Ends,
    socket: Transport,
    seen: Seen,
}

/// What segments said. Starts with nothing.
#[derive(Debug, Default)]
struct Seen {
    directions: BTreeMap<Flow, Direction>,
    duplicate_acks: u64,
    /// How many connections there are, and which one has a token.
    connections: usize,
    tokens: BTreeMap<Token, usize>,
    /// The connection of each flow, by the direction in which it was asked for.
    flows: BTreeMap<Flow, usize>,
    capable: BTreeSet<Flow>,
    joins: BTreeSet<Flow>,
    joined: BTreeSet<Flow>,
    addresses: BTreeSet<(Option<usize>, u8, SocketAddr)>,
    data_fins: BTreeSet<(usize, bool)>,
}

/// One direction of a flow. Starts with the first segment.
#[derive(Debug)]
struct Direction {
    /// Where its data ends so far.
    end: Sequence,
    acknowledgment: Sequence,
    window: u16,
}

impl Signals {
    /// Of flows between the ends; of Multipath TCP all, since its subflows have addresses of their own.
    pub fn new(ends: Ends, socket: Transport) -> Self {
        let capture = PcapWriter::new(Vec::new()).expect("memory takes everything");
        Self { capture, ends, socket, seen: Seen::default() }
    }

    /// What was found; subflows are the mean over connections.
    pub fn findings(&self) -> Findings {
        let Seen { duplicate_acks, connections, capable, joins, joined, addresses, data_fins, .. } = &self.seen;
        let mut findings = Findings::named([("duplicate_acks", *duplicate_acks as f64)]);
        if self.socket == Transport::Mptcp {
            findings.add(Findings::named([
                ("mp_capable", capable.len() as f64),
                ("mp_join", joins.len() as f64),
                ("add_addr", addresses.len() as f64),
                ("data_fin", data_fins.len() as f64),
            ]));
            let subflows = (connections + joined.len()) as f64 / *connections as f64;
            findings.put_some("subflows", (*connections > 0).then_some(subflows));
        }
        findings
    }

    /// Step 4: the file (pcap of raw IP packets).
    pub fn into_capture(self) -> Vec<u8> {
        self.capture.into_inner()
    }

    fn is_meant(&self, segment: &Segment<'_>) -> bool {
        let (client, server) = (self.ends.client, self.ends.server);
        let (from, to) = (segment.source.ip(), segment.destination.ip());
        self.socket == Transport::Mptcp || (from, to) == (client, server) || (from, to) == (server, client)
    }
}

impl Seen {
    /// Step 1.
    fn count_duplicate(&mut self, segment: &Segment<'_>) {
        let there = (segment.source, segment.destination);
        let outstanding = |back: &Direction| back.end.is_after(segment.acknowledgment);
        let is_awaited = self.directions.get(&(there.1, there.0)).is_some_and(outstanding);
        let end = segment.end();
        let Some(before) = self.directions.get_mut(&there) else {
            let (acknowledgment, window) = (segment.acknowledgment, segment.window);
            self.directions.insert(there, Direction { end, acknowledgment, window });
            return;
        };
        let is_bare = segment.flags.has(Flags::ACK) && end == segment.sequence;
        let is_same = segment.acknowledgment == before.acknowledgment;
        if is_bare && is_same && is_awaited && (segment.window == before.window || segment.has_sack()) {
            self.duplicate_acks += 1;
        }
        if end.is_after(before.end) {
            before.end = end;
        }
        (before.acknowledgment, before.window) = (segment.acknowledgment, segment.window);
    }

    /// Steps 2 and 3.
    fn hear(&mut self, segment: &Segment<'_>, option: &MptcpOption<'_>) {
        let (there, back) = ((segment.source, segment.destination), (segment.destination, segment.source));
        match option {
            MptcpOption::Capable(capable) => match capable.form {
                CapableForm::Syn => {}
                CapableForm::SynAck { responder } => {
                    // With the answer a connection is one; its third segment has the other key.
                    if self.capable.insert(back) {
                        self.flows.insert(back, self.connections);
                        self.connections += 1;
                    }
                    self.name(back, responder.token());
                }
                CapableForm::Ack { initiator, .. } => self.name(there, initiator.token()),
            },
            MptcpOption::Join(join) => match join.form {
                JoinForm::Syn { token, .. } => {
                    self.joins.insert(there);
                    if let Some(&connection) = self.tokens.get(&token) {
                        self.flows.insert(there, connection);
                    }
                }
                JoinForm::SynAck { .. } if self.flows.contains_key(&back) => {
                    self.joined.insert(back);
                }
                JoinForm::SynAck { .. } | JoinForm::Ack { .. } => {}
            },
            MptcpOption::AddAddr(added) if !added.is_echo() => {
                let connection = self.flows.get(&there).or_else(|| self.flows.get(&back)).copied();
                self.addresses.insert((connection, added.id.0, segment.source));
            }
            MptcpOption::Dss(dss) if dss.data_fin => {
                for (flow, forth) in [(there, true), (back, false)] {
                    if let Some(&connection) = self.flows.get(&flow) {
                        self.data_fins.insert((connection, forth));
                    }
                }
            }
            _ => {}
        }
    }

    /// The flow's connection has this token, too.
    fn name(&mut self, flow: Flow, token: Token) {
        if let Some(&connection) = self.flows.get(&flow) {
            self.tokens.insert(token, connection);
        }
    }
}

impl Look for Signals {
    fn look(&mut self, packet: &[u8]) {
        let Ok(segment) = Segment::parse(packet) else { return };
        if !self.is_meant(&segment) {
            return;
        }
        self.seen.count_duplicate(&segment);
        let mut is_kept = [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|flag| segment.flags.has(*flag));
        for option in segment.mptcp().flatten() {
            is_kept |= !matches!(&option, MptcpOption::Dss(dss) if !dss.data_fin);
            self.seen.hear(&segment, &option);
        }
        if is_kept {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // 64 bits of nanoseconds last until 2554.
            self.capture.packet(now.as_nanos() as u64, packet).expect("memory takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use etherparse::{PacketBuilder, TcpHeader};
    use hawser_shim::mptcp::Key;

    use super::*;

    /// A segment and how many bytes it brings.
    fn packet(tcp: TcpHeader, payload: usize) -> Vec<u8> {
        let [from, to] = if tcp.source_port > tcp.destination_port { [1, 2] } else { [2, 1] };
        let mut packet = Vec::new();
        let ip = PacketBuilder::ipv4([10, 0, 0, from], [10, 0, 0, to], 64);
        ip.tcp_header(tcp).write(&mut packet, &vec![0; payload]).expect("a vector takes all");
        packet
    }

    /// A bare acknowledgment of nothing yet.
    fn bare((from, to): (u16, u16)) -> TcpHeader {
        TcpHeader { acknowledgment_number: 1, ack: true, ..TcpHeader::new(from, to, 1, 500) }
    }

    const PORTS: (u16, u16) = (1000, 80);
    const BACK: (u16, u16) = (80, 1000);

    fn look_at<'p>(socket: Transport, packets: impl IntoIterator<Item = &'p [u8]>) -> Signals {
        let (client, server) = (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
        let mut signals = Signals::new(Ends { client, server }, socket);
        packets.into_iter().for_each(|packet| signals.look(packet));
        signals
    }

    /// The packets of a capture file. Source: pcap-savefile(5).
    fn packets_of(file: &[u8]) -> Vec<&[u8]> {
        let (mut rest, mut packets) = (&file[24..], Vec::new());
        while let Some((header, after)) = rest.split_first_chunk::<16>() {
            let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
            packets.push(&after[..len]);
            rest = &after[len..];
        }
        packets
    }

    fn data(sequence_number: u32) -> Vec<u8> {
        packet(TcpHeader { sequence_number, ..bare(PORTS) }, 100)
    }

    fn acknowledgment(acknowledgment_number: u32) -> TcpHeader {
        TcpHeader { acknowledgment_number, ..bare(BACK) }
    }

    #[test]
    fn an_acknowledgment_is_a_duplicate_while_data_is_on_its_way() {
        let ack = |number| packet(acknowledgment(number), 0);
        let wider = TcpHeader { window_size: 900, ..acknowledgment(101) };
        let mut parts = wider.clone();
        parts.set_options_raw(&[1, 1, 5, 10, 0, 0, 0, 201, 0, 0, 1, 45]).expect("they fit");
        let with_data = packet(acknowledgment(101), 10);
        let table = [
            (vec![ack(101), ack(101), ack(101)], 2.0, "nothing new"),
            (vec![ack(101), ack(201), ack(301)], 0.0, "each says more"),
            (vec![ack(301), ack(301)], 0.0, "nothing is on its way"),
            (vec![ack(101), packet(wider, 0)], 0.0, "it is about the window"),
            (vec![ack(101), packet(parts, 0)], 1.0, "it is about parts, too"),
            (vec![ack(101), with_data], 0.0, "it brings data"),
        ];
        for (acknowledgments, expected, why) in table {
            let packets = [&[data(1), data(101), data(201)], &*acknowledgments].concat();
            let signals = look_at(Transport::Tcp, packets.iter().map(Vec::as_slice));
            assert_eq!(signals.findings().metrics["duplicate_acks"], expected, "{why}");
        }
    }

    #[test]
    fn flows_of_others_do_not_count() {
        let elsewhere = Ends { client: Ipv4Addr::LOCALHOST.into(), server: Ipv4Addr::LOCALHOST.into() };
        let mut signals = Signals::new(elsewhere, Transport::Tcp);
        let twice = packet(acknowledgment(101), 0);
        [data(1), data(101), twice.clone(), twice].iter().for_each(|packet| signals.look(packet));
        assert_eq!(signals.findings().metrics["duplicate_acks"], 0.0);
    }

    /// An address with its proof, and the end of the data with an acknowledgment (RFC 8684 sections 3.4.1, 3.3).
    const ADDRESS: [u8; 14] = [0x30, 5, 10, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8];
    const DATA_FIN: [u8; 6] = [0x20, 0x11, 0, 0, 0, 9];

    /// A segment with one option of Multipath TCP.
    fn says(ports: (u16, u16), syn: bool, option: &[u8]) -> Vec<u8> {
        let len = u8::try_from(option.len() + 2).expect("short");
        // Who asks has nothing to acknowledge.
        let ack = !syn || ports.0 < ports.1;
        let mut tcp = TcpHeader { syn, ack, acknowledgment_number: ack.into(), ..bare(ports) };
        tcp.set_options_raw(&[&[30, len], option].concat()).expect("they fit");
        packet(tcp, 0)
    }

    #[test]
    fn a_connection_and_its_subflows_are_told_by_tokens() {
        let key = [7; 8];
        let token = Key(key).token().0.to_be_bytes();
        let join = |port: u16, token: [u8; 4]| says((port, 80), true, &[&[0x10, 2][..], &token, &[0; 4]].concat());
        let joined = |port: u16| says((80, port), true, &[&[0x10, 2][..], &[0; 12]].concat());
        let packets = [
            says(PORTS, true, &[0x01, 0x01]),
            says(PORTS, true, &[0x01, 0x01]),
            says(BACK, true, &[&[0x01, 0x01][..], &key].concat()),
            says(PORTS, false, &[&[0x01, 0x01][..], &[8; 8], &key].concat()),
            says(BACK, false, &ADDRESS),
            says(BACK, false, &ADDRESS),
            join(2000, token),
            join(2000, token),
            joined(2000),
            join(3000, [1, 2, 3, 4]),
            joined(3000),
            join(4000, token),
            says(PORTS, false, &DATA_FIN),
            says((2000, 80), false, &DATA_FIN),
            says(BACK, false, &DATA_FIN),
        ];
        let plain = [data(1), packet(acknowledgment(101), 0)];
        let signals = look_at(Transport::Mptcp, packets.iter().chain(&plain).map(Vec::as_slice));
        let metrics = signals.findings().metrics;
        let capture = signals.into_capture();
        let kept = packets_of(&capture);
        assert_eq!(kept.len(), packets.len(), "data and what acknowledges it are not kept");
        assert_eq!(look_at(Transport::Mptcp, kept).findings().metrics, metrics, "the capture says the same");
        let found: Vec<f64> = SIGNALS[1..].iter().map(|name| metrics[*name]).collect();
        // The third flow joined nothing that is known, the fourth was not answered.
        assert_eq!(found, [2.0, 1.0, 3.0, 1.0, 2.0], "{metrics:?}");
    }
}
