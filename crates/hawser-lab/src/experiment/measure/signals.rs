//! What packets say of TCP and Multipath TCP, at the host where applications start: its interfaces are the links' ends.
//!
//! 1. Duplicate acknowledgments, of either direction, by RFC 5681 section 2, or with news of parts (RFC 6675).
//! 2. Connections by their keys: a key's SHA-256 begins with the token by which a subflow joins (RFC 8684 section 3.2).
//! 3. Everything counts once, however often it is sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use aws_lc_rs::digest::{SHA256, digest};
use hawser_wire::Look;

use super::tcp::{Segment, Signal};
use crate::contender::Transport;
use crate::experiment::Findings;
use crate::stage::Ends;

/// The figures found here.
pub const SIGNALS: [&str; 6] = ["duplicate_acks", "subflows", "mp_capable", "mp_join", "add_addr", "data_fin"];

/// One direction of a flow.
type Flow = (SocketAddr, SocketAddr);

/// What was seen. Starts with nothing; one owner.
#[derive(Debug)]
pub struct Signals {
    ends: Ends,
    socket: Transport,
    directions: BTreeMap<Flow, Direction>,
    duplicate_acks: u64,
    /// How many connections there are, and which one has a token.
    connections: usize,
    tokens: BTreeMap<u32, usize>,
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
    end: u32,
    acknowledgment: u32,
    window: u16,
}

impl Signals {
    /// Of flows between the ends; of Multipath TCP all, since its subflows have addresses of their own.
    pub fn new(ends: Ends, socket: Transport) -> Self {
        Self {
            ends,
            socket,
            directions: BTreeMap::new(),
            duplicate_acks: 0,
            connections: 0,
            tokens: BTreeMap::new(),
            flows: BTreeMap::new(),
            capable: BTreeSet::new(),
            joins: BTreeSet::new(),
            joined: BTreeSet::new(),
            addresses: BTreeSet::new(),
            data_fins: BTreeSet::new(),
        }
    }

    /// What was found; subflows are the mean over connections.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        let mut add = |name: &str, value: f64| findings.metrics.insert(name.to_owned(), value);
        #[expect(clippy::cast_precision_loss, reason = "a count of one run")]
        let number = |count: usize| count as f64;
        #[expect(clippy::cast_precision_loss, reason = "a count of one run")]
        add("duplicate_acks", self.duplicate_acks as f64);
        if self.socket == Transport::Mptcp {
            add("mp_capable", number(self.capable.len()));
            add("mp_join", number(self.joins.len()));
            add("add_addr", number(self.addresses.len()));
            add("data_fin", number(self.data_fins.len()));
            if self.connections > 0 {
                add("subflows", number(self.connections + self.joined.len()) / number(self.connections));
            }
        }
        findings
    }

    fn is_meant(&self, segment: &Segment<'_>) -> bool {
        let (client, server) = (self.ends.client, self.ends.server);
        let (from, to) = (segment.source.ip(), segment.destination.ip());
        self.socket == Transport::Mptcp || (from, to) == (client, server) || (from, to) == (server, client)
    }

    /// Step 1.
    fn count_duplicate(&mut self, segment: &Segment<'_>) {
        let there = (segment.source, segment.destination);
        let outstanding = |back: &Direction| is_after(back.end, segment.acknowledgment);
        let is_awaited = self.directions.get(&(there.1, there.0)).is_some_and(outstanding);
        let flags = u32::from(segment.syn) + u32::from(segment.fin);
        let end = segment.sequence.wrapping_add(segment.payload).wrapping_add(flags);
        let Some(before) = self.directions.get_mut(&there) else {
            let (acknowledgment, window) = (segment.acknowledgment, segment.window);
            self.directions.insert(there, Direction { end, acknowledgment, window });
            return;
        };
        let is_bare = segment.ack && segment.payload == 0 && flags == 0;
        let is_same = segment.acknowledgment == before.acknowledgment;
        if is_bare && is_same && is_awaited && (segment.window == before.window || segment.has_sack()) {
            self.duplicate_acks += 1;
        }
        if is_after(end, before.end) {
            before.end = end;
        }
        (before.acknowledgment, before.window) = (segment.acknowledgment, segment.window);
    }

    /// Steps 2 and 3.
    fn hear(&mut self, segment: &Segment<'_>, signal: Signal) {
        let (there, back) = ((segment.source, segment.destination), (segment.destination, segment.source));
        match signal {
            Signal::Capable(None) => {}
            Signal::Capable(Some(key)) => {
                // With the answer a connection is one; its third segment has the other key.
                let flow = if segment.syn { back } else { there };
                if segment.syn && self.capable.insert(flow) {
                    self.flows.insert(flow, self.connections);
                    self.connections += 1;
                }
                if let Some(&connection) = self.flows.get(&flow) {
                    self.tokens.insert(token(key), connection);
                }
            }
            Signal::Join(token) => {
                self.joins.insert(there);
                if let Some(&connection) = self.tokens.get(&token) {
                    self.flows.insert(there, connection);
                }
            }
            Signal::Joined if segment.syn => {
                if self.flows.contains_key(&back) {
                    self.joined.insert(back);
                }
            }
            Signal::Joined => {}
            Signal::AddAddress(number) => {
                let connection = self.flows.get(&there).or_else(|| self.flows.get(&back)).copied();
                self.addresses.insert((connection, number, segment.source));
            }
            Signal::DataFin => {
                for (flow, forth) in [(there, true), (back, false)] {
                    if let Some(&connection) = self.flows.get(&flow) {
                        self.data_fins.insert((connection, forth));
                    }
                }
            }
        }
    }
}

impl Look for Signals {
    fn look(&mut self, packet: &[u8]) {
        let Some(segment) = Segment::parse(packet).filter(|segment| self.is_meant(segment)) else { return };
        self.count_duplicate(&segment);
        for signal in segment.signals() {
            self.hear(&segment, signal);
        }
    }
}

/// Whether a sequence number comes after another. Source: RFC 9293 section 3.4.
fn is_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() > 0
}

/// Source: RFC 8684 section 3.2.
fn token(key: [u8; 8]) -> u32 {
    let hash = digest(&SHA256, &key);
    hash.as_ref().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::tcp::tests::Draft;
    use super::*;

    const PORTS: (u16, u16) = (1000, 80);
    const BACK: (u16, u16) = (80, 1000);

    fn seen(socket: Transport, packets: &[Draft]) -> Findings {
        let (client, server) = (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 2).into());
        let mut signals = Signals::new(Ends { client, server }, socket);
        packets.iter().for_each(|draft| signals.look(&draft.packet()));
        signals.findings()
    }

    fn data(sequence: u32) -> Draft {
        Draft { ports: PORTS, sequence, payload: 100, ..Draft::default() }
    }

    fn acknowledgment(number: u32) -> Draft {
        Draft { ports: BACK, acknowledgment: Some(number), ..Draft::default() }
    }

    fn duplicates(packets: &[Draft]) -> f64 {
        seen(Transport::Tcp, packets).metrics["duplicate_acks"]
    }

    #[test]
    fn an_acknowledgment_is_a_duplicate_while_data_is_on_its_way() {
        let flight = || vec![data(1), data(101), data(201)];
        let after =
            |acknowledgments: Vec<Draft>| duplicates(&flight().into_iter().chain(acknowledgments).collect::<Vec<_>>());
        assert_eq!(after(vec![acknowledgment(101), acknowledgment(101), acknowledgment(101)]), 2.0);
        assert_eq!(after(vec![acknowledgment(101), acknowledgment(201), acknowledgment(301)]), 0.0, "each says more");
        assert_eq!(after(vec![acknowledgment(301), acknowledgment(301)]), 0.0, "nothing is on its way");
        let wider = || Draft { window: 900, ..acknowledgment(101) };
        assert_eq!(after(vec![acknowledgment(101), wider()]), 0.0, "it is about the window");
        let parts = Draft { options: vec![1, 1, 5, 10, 0, 0, 0, 201, 0, 0, 1, 45], ..wider() };
        assert_eq!(after(vec![acknowledgment(101), parts]), 1.0, "it is about parts, too");
        let with_data = Draft { payload: 10, ..acknowledgment(101) };
        assert_eq!(after(vec![acknowledgment(101), with_data]), 0.0, "it brings data");
    }

    #[test]
    fn flows_of_others_do_not_count() {
        let elsewhere = Ends { client: Ipv4Addr::LOCALHOST.into(), server: Ipv4Addr::LOCALHOST.into() };
        let mut signals = Signals::new(elsewhere, Transport::Tcp);
        for draft in [data(1), data(101), acknowledgment(101), acknowledgment(101)] {
            signals.look(&draft.packet());
        }
        assert_eq!(signals.findings().metrics["duplicate_acks"], 0.0);
    }

    /// A segment with one option of Multipath TCP.
    fn says(ports: (u16, u16), syn: bool, option: &[u8]) -> Draft {
        let len = u8::try_from(option.len() + 2).expect("short");
        let options = [&[30, len], option].concat();
        Draft { ports, syn, options, ..Draft::default() }
    }

    #[test]
    fn a_connection_and_its_subflows_are_told_by_tokens() {
        let key = [7; 8];
        let token = token(key).to_be_bytes();
        let join = |port: u16, token: [u8; 4]| says((port, 80), true, &[&[0x10, 2][..], &token, &[0; 4]].concat());
        let joined = |port: u16| says((80, port), true, &[&[0x10, 2][..], &[0; 12]].concat());
        let packets = [
            says(PORTS, true, &[0x01, 0x01]),
            says(PORTS, true, &[0x01, 0x01]),
            says(BACK, true, &[&[0x01, 0x01][..], &key].concat()),
            says(PORTS, false, &[&[0x01, 0x01][..], &[8; 8], &key].concat()),
            says(BACK, false, &[0x30, 5, 10, 0, 0, 3]),
            says(BACK, false, &[0x30, 5, 10, 0, 0, 3]),
            join(2000, token),
            join(2000, token),
            joined(2000),
            join(3000, [1, 2, 3, 4]),
            joined(3000),
            join(4000, token),
            says(PORTS, false, &[0x20, 0x11]),
            says((2000, 80), false, &[0x20, 0x11]),
            says(BACK, false, &[0x20, 0x11]),
        ];
        let metrics = seen(Transport::Mptcp, &packets).metrics;
        let found: Vec<f64> = SIGNALS[1..].iter().map(|name| metrics[*name]).collect();
        // The third flow joined nothing that is known, the fourth was not answered.
        assert_eq!(found, [2.0, 1.0, 3.0, 1.0, 2.0], "{metrics:?}");
    }

    #[test]
    fn a_token_is_the_beginning_of_the_keys_hash() {
        // SHA-256 of eight zero bytes, as sha256sum tells it: af5570f5…
        assert_eq!(token([0; 8]), 0xaf55_70f5);
    }
}
