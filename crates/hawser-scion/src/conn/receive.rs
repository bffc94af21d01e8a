//! Receiving: packets are read where the kernel put them, and handed out by reference.
//!
//! 1. [`RxHalf::each`] goes on where it stopped, and asks the kernel for more when everything was handed out.
//! 2. Each packet is sorted: for this socket and whole, or a control message, or counted and passed over (`sort`).
//! 3. What is for the socket goes to whoever asks, who may stop at any packet.
//! 4. Control messages are heeded (`scmp.rs`), echo requests answered (`echo.rs`).
//! 5. What the kernel and IP routers say of packets sent is told ([`RxHalf::tell_errors`]).

use std::io;
use std::net::SocketAddr;

use hawser_net::link::udp::UdpLink;
use hawser_net::link::{Link, RUNS_PER_BATCH, RecvBatch, Refusal};

use super::echo::Answers;
use super::events::{Event, Remote, Unreachable};
use super::opts::TcpPackets;
use super::port::Port;
use super::scmp;
use crate::addr::EndpointAddr;
use crate::packet::{Echo, Packet, ScmpView, TcpView, Upper, parse, protocol};

/// Errors told in one go; the socket says again when there are more.
const MOST_ERRORS: usize = 16;

/// What the payload of a packet is. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// What UDP carries.
    Udp,
    /// A segment of TCP, with its header.
    Tcp,
}

/// A packet that came, borrowed from the socket's memory. Plain data.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Who sent it, as far as anybody checks.
    pub source: EndpointAddr,
    /// What it carries.
    pub payload: &'a [u8],
    /// What that is.
    pub carried: Carried,
    /// Who handed it to this host: a border router, a host of the own AS, or the shim.
    pub remote: SocketAddr,
    /// All of it.
    pub packet: Packet<'a>,
}

/// What becomes of a packet that is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// Taken; the next, please.
    More,
    /// Taken, and no more now.
    Last,
    /// Not taken, and no more now: it comes again.
    Later,
    /// Not wanted; the next, please.
    Not,
}

/// What a packet is.
enum Sorted<'a> {
    Data(Datagram<'a>),
    Echo(Packet<'a>, Echo<'a>),
    Nothing,
}

/// The receiving half of the socket. Begins with nothing received. For one thread, behind a lock.
#[derive(Debug)]
pub(super) struct RxHalf {
    link: UdpLink,
    batch: RecvBatch,
    /// The run handed out now, and the byte of it.
    run: usize,
    offset: usize,
    answers: Answers,
}

impl RxHalf {
    pub(super) fn new(link: UdpLink) -> RxHalf {
        RxHalf { link, batch: RecvBatch::new(), run: RUNS_PER_BATCH, offset: 0, answers: Answers::default() }
    }

    /// Steps 1 to 4: hands out what is there, without waiting; returns how many were taken, 0 when there is nothing
    /// now.
    pub(super) fn each(&mut self, port: &Port, mut accept: impl FnMut(Datagram<'_>) -> Take) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            if self.run == RUNS_PER_BATCH {
                if self.link.recv(&mut self.batch)? == 0 && self.batch.truncated() == 0 {
                    return Ok(taken);
                }
                port.counters.kernel_drops.set(self.link.kernel_drops());
                port.counters.malformed.add(self.batch.truncated() as u64);
                (self.run, self.offset) = (0, 0);
            }
            let stopped = self.hand_out(port, &mut taken, &mut accept);
            if stopped || taken > 0 {
                return Ok(taken);
            }
        }
    }

    /// Steps 2 to 4 for what was received; says whether `accept` wants no more.
    fn hand_out(&mut self, port: &Port, taken: &mut usize, accept: &mut impl FnMut(Datagram<'_>) -> Take) -> bool {
        let (mut packets, mut bytes, mut stopped) = (0, 0, false);
        'runs: while self.run < RUNS_PER_BATCH {
            if let Some(run) = self.batch.run(self.run) {
                while self.offset < run.bytes.len() {
                    let end = run.bytes.len().min(self.offset + run.segment_size);
                    match sort(port, run.remote, &run.bytes[self.offset..end]) {
                        Sorted::Nothing => {}
                        Sorted::Echo(packet, echo) => {
                            self.answers.answer(port, &mut self.link, run.remote, &packet, echo);
                        }
                        Sorted::Data(datagram) => {
                            let payload = datagram.payload.len();
                            let take = accept(datagram);
                            if take != Take::Not && take != Take::Later {
                                (packets, bytes) = (packets + 1, bytes + payload);
                            }
                            stopped = matches!(take, Take::Last | Take::Later);
                            if take == Take::Later {
                                break 'runs;
                            }
                        }
                    }
                    self.offset = end;
                    if stopped {
                        break 'runs;
                    }
                }
            }
            (self.run, self.offset) = (self.run + 1, 0);
        }
        port.counters.received_packets.add(packets as u64);
        port.counters.received_bytes.add(bytes as u64);
        *taken += packets;
        stopped
    }

    /// Whether something received was not handed out yet.
    pub(super) fn is_halfway(&self) -> bool {
        self.run < RUNS_PER_BATCH
    }

    /// Step 5.
    pub(super) fn tell_errors(&mut self, port: &Port) -> io::Result<()> {
        for _ in 0..MOST_ERRORS {
            let Some(error) = self.link.next_error()? else { break };
            let headers = self.link.headroom() as u32;
            match (error.reason, error.mtu) {
                (Refusal::TooBig, Some(mtu)) => {
                    let mtu = u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX);
                    port.flows.each(|flow| {
                        if flow.current().route.remote == error.remote {
                            flow.lower_mtu(mtu, &port.events);
                        }
                    });
                }
                (reason, _) => port.events.tell(Event::Unreachable {
                    remote: Remote::Underlay(error.remote),
                    reason: Unreachable::Kernel(reason),
                }),
            }
        }
        Ok(())
    }
}

/// Step 2.
fn sort<'a>(port: &Port, remote: SocketAddr, bytes: &'a [u8]) -> Sorted<'a> {
    let Ok(packet) = parse(bytes) else {
        port.counters.malformed.add(1);
        return Sorted::Nothing;
    };
    let here = port.local.endpoint;
    if packet.destination() != (here.isd_as, here.host.ip()) {
        port.counters.misdirected.add(1);
        return Sorted::Nothing;
    }
    match packet.upper() {
        Upper::Udp(udp) if udp.destination_port() == here.host.port() && port.tcp != TcpPackets::Only => {
            if port.verify && !udp.verify_checksum() {
                port.counters.bad_checksum.add(1);
                return Sorted::Nothing;
            }
            let (source, payload) = (from(&packet, udp.source_port()), udp.payload());
            Sorted::Data(Datagram { source, payload, carried: Carried::Udp, remote, packet })
        }
        Upper::Other(protocol::TCP) if port.tcp != TcpPackets::Refused => sort_tcp(port, remote, packet),
        Upper::Scmp(_) if !packet.verify_checksum() => {
            port.counters.bad_checksum.add(1);
            Sorted::Nothing
        }
        Upper::Scmp(ScmpView::EchoRequest(echo)) => Sorted::Echo(packet, echo),
        Upper::Scmp(message) => {
            let heeded = scmp::heed(port, &packet, &message);
            let count = if heeded { &port.counters.scmp_heeded } else { &port.counters.scmp_ignored };
            count.add(1);
            Sorted::Nothing
        }
        Upper::Udp(_) | Upper::Other(_) => {
            port.counters.misdirected.add(1);
            Sorted::Nothing
        }
    }
}

/// Step 2, of TCP.
fn sort_tcp<'a>(port: &Port, remote: SocketAddr, packet: Packet<'a>) -> Sorted<'a> {
    let Some(tcp) = TcpView::of(&packet) else {
        port.counters.malformed.add(1);
        return Sorted::Nothing;
    };
    if port.verify && !tcp.verify_checksum() {
        port.counters.bad_checksum.add(1);
        return Sorted::Nothing;
    }
    let (source, payload) = (from(&packet, tcp.source_port()), tcp.segment());
    Sorted::Data(Datagram { source, payload, carried: Carried::Tcp, remote, packet })
}

fn from(packet: &Packet<'_>, port: u16) -> EndpointAddr {
    let (isd_as, host) = packet.source();
    EndpointAddr::new(isd_as, SocketAddr::new(host, port))
}
