//! Steps 3 to 6 in: a datagram of this session arrived.
//!
//! 3. Its packet number is completed and the datagram opened.
//! 4. A number seen before ends it here.
//! 5. The path is found, or made if this is its first word; its address is checked; frames are
//!    handed to the parts that they are for.
//! 6. Inner packets go to the resequencer, if their source is the peer's; of others it learns that they came.

use super::held::HeldBack;
use super::{Context, Event, Route, Session, Sink};
use crate::beside::{Opener, Opening};
use crate::drops::{DropReason, Drops};
use crate::endpoint::hub::Standing;
use crate::endpoint::routing::Routing;
use crate::fec::Fec;
use crate::flows::{FlowWatch, Look};
use crate::packet::{TrainStore, Transport, inner};
use crate::path::health::DownReason;
use crate::path::replay::ReplayVerdict;
use crate::queue::Queue;
use crate::resequence::{Arrival, Outcome, Reassembler, Resequencer};
use crate::rules::{Mark, Rules};
use crate::scheduler::{Kind, MptcpOption, Scheduler};
use crate::units::{ByteCount, Ecn, KeyId, Owner, PacketNumber, PathId, PeerId, Time};
use crate::wire::{
    DATA_HEADER_LEN, DataFlags, DataFrame, DataHeader, FlowBucket, FlowSequence, Frame, Frames, Label, LinkNameFrame,
    LinkState, PathInfo, SplitFrame, TAG_LEN, TruncatedNumber,
};
use arrayvec::ArrayVec;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Pieces of a packet wait for each other at least this long: they travel the same path together.
const PIECES_WAIT: Duration = Duration::from_secs(1);

/// Frames of a datagram: 1,452 bytes hold 51 of the smallest inner packets, and words beside them. Of 1,400 pings each
/// costs more than all the rest of a datagram (hawser-bench, `hostile`).
pub(super) const FRAMES_MAX: usize = 64;

/// A datagram with what its socket told of it, and its header.
pub(crate) struct Datagram<'a> {
    pub route: Route,
    pub ecn: Ecn,
    pub header: DataHeader,
    /// All of it, with the header; opened in place.
    pub bytes: &'a mut [u8],
    /// What came of opening it before.
    pub opening: Opening,
}

impl Session {
    /// Takes a datagram whose label named these keys and this path.
    pub fn on_datagram(
        &mut self,
        now: Time,
        key: KeyId,
        path: PathId,
        datagram: Datagram<'_>,
        sink: &mut dyn Sink,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        self.liveness.note_call(now);
        let Datagram { route, ecn, header, bytes, opening } = datagram;
        let size = bytes.len();
        let (number, frames) = self.open(now, key, path, header.number, bytes, opening)?;
        self.keyring.note_opened(now, key);
        let mut parsed = ArrayVec::new();
        parse(frames, &mut parsed)?;
        let elicits = parsed.iter().any(Frame::is_acked);
        self.note_heard(now);
        let index = self.path_for(now, path, route)?;
        let newest = self.paths[index].received.largest().is_none_or(|largest| number > largest);
        self.account(now, index, route, number, newest, elicits, ecn, size);
        for frame in parsed.drain(..) {
            self.on_frame(now, index, route, frame, sink, cx)?;
        }
        Ok(())
    }

    /// Steps 3 and 4: the replay check comes first because it is cheap, and again counts only once.
    fn open<'d>(
        &self,
        now: Time,
        key: KeyId,
        path: PathId,
        number: TruncatedNumber,
        bytes: &'d mut [u8],
        opening: Opening,
    ) -> Result<(PacketNumber, &'d [u8]), DropReason> {
        let known = self.paths.index_of(path).map(|index| &self.paths[index].received);
        // What opened has the number that it opened with.
        let number = opening.number.unwrap_or_else(|| number.expand(known.and_then(|received| received.largest())));
        if known.is_some_and(|received| received.check(number) != ReplayVerdict::Fresh) {
            return Err(DropReason::Replayed);
        }
        let keys = self.keyring.opener(now, key)?;
        let frames = match (opening.owner, opening.number) {
            (None, _) => keys.open(path, number, bytes).map_err(|_| DropReason::Forged)?,
            (Some(_), None) => return Err(DropReason::Forged),
            (Some(_), Some(_)) => &bytes[DATA_HEADER_LEN..bytes.len() - TAG_LEN],
        };
        Ok((number, frames))
    }

    /// How datagrams of a path are opened under these keys, while they may be.
    pub fn opener(&self, now: Time, label: Label, owner: Owner) -> Option<Opener> {
        let key = Arc::clone(self.keyring.opener(now, owner.key).ok()?);
        Some(Opener { key, label, owner, largest: self.largest_received(owner.path) })
    }

    /// Step 5: the packet is authentic and fresh.
    #[expect(clippy::too_many_arguments, reason = "one call, and each is a fact of the datagram")]
    fn account(
        &mut self,
        now: Time,
        index: usize,
        route: Route,
        number: PacketNumber,
        newest: bool,
        elicits: bool,
        ecn: Ecn,
        size: usize,
    ) {
        let path = &mut self.paths[index];
        path.received.on_packet(now, number, elicits, ecn);
        path.activity.heard_at = now;
        path.counts.rx_bytes += ByteCount(size as u64);
        path.counts.carried += ByteCount((size + path.overhead()) as u64);
        path.validation.on_received(now, route, u32::try_from(size).unwrap_or(u32::MAX), newest);
    }

    fn on_frame(
        &mut self,
        now: Time,
        index: usize,
        route: Route,
        frame: Frame<'_>,
        sink: &mut dyn Sink,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        match frame {
            Frame::Padding(_) => {}
            Frame::Ping => self.paths[index].wants.answer = true,
            Frame::Reserved(frame) => match LinkNameFrame::of(&frame) {
                Some(name) => self.on_name(&name),
                None => self.on_reserved(now, index, &frame, cx.drops),
            },
            Frame::Data(data) => {
                self.note_busy(now);
                let (inbound, _, mut to) = self.delivery(sink, cx);
                inbound.on_data(now, &data, &mut to)?;
            }
            Frame::Ack(ack) => self.on_ack(now, index, &ack, cx).map_err(|_| DropReason::BadFrame)?,
            Frame::Split(split) => {
                self.note_busy(now);
                let (inbound, _, mut to) = self.delivery(sink, cx);
                inbound.on_split(now, &split, &mut to)?;
            }
            Frame::PathChallenge(challenge) => self.paths[index].wants.response = Some((challenge.token, route)),
            Frame::PathResponse(response) => self.on_response(now, index, response.token),
            Frame::PathInfo(info) if !self.on_info(now, &info) => cx.drops.count(DropReason::BadFrame),
            Frame::PathInfo(_) => {}
            Frame::Gone(gone) => self.inbound.resequencer.on_gone(now, gone.bucket, gone.upto, sink),
            Frame::Hold(hold) => {
                self.inbound.resequencer.set_hold(self.hold.hear(hold, &self.settings.tuning));
            }
            Frame::Terms(terms) => self.on_terms(&terms),
            Frame::Protected(frame) => {
                self.note_busy(now);
                let (inbound, fec, mut to) = self.delivery(sink, cx);
                inbound.on_protected(now, &frame, fec, &mut to)?;
            }
            Frame::Repair(frame) => {
                let (inbound, fec, mut to) = self.delivery(sink, cx);
                inbound.on_repair(now, &frame, fec, &mut to);
            }
            Frame::Close(_) => self.events.push(Event::Closed),
        }
        Ok(())
    }

    /// What an inner packet is delivered by.
    fn delivery<'a>(
        &'a mut self,
        sink: &'a mut dyn Sink,
        cx: &'a mut Context<'_>,
    ) -> (&'a mut Inbound, &'a mut Fec, Delivery<'a>) {
        let patience = self.hold.patience(&self.paths, &self.settings.tuning);
        let Session { peer, inbound, outbound, fec, scheduling, events, .. } = self;
        let Context { store, routing, drops, rules, flows, .. } = cx;
        let (peer, scheduler, queue) = (peer.id, &mut scheduling.scheduler, &mut outbound.queue);
        (inbound, fec, Delivery { peer, patience, scheduler, queue, sink, store, routing, drops, rules, flows, events })
    }

    /// The peer's word about a path: the newest revision counts. It closes none but its own. Tells whether it is
    /// believed.
    fn on_info(&mut self, now: Time, info: &PathInfo) -> bool {
        let closed = info.state == LinkState::Closed;
        if self.paths.is_ours(info.path) && closed {
            return false;
        }
        let Some(index) = self.paths.index_of(info.path) else {
            // Its first datagram may still be on its way. Of a path of ours the peer may speak that we closed
            // meanwhile.
            return self.paths.is_ours(info.path)
                || if closed { self.never_began(info.path) } else { self.will_begin(info.path) };
        };
        let path = &mut self.paths[index];
        if path.offer.peer.is_some_and(|(.., revision)| revision >= info.revision) {
            return true;
        }
        path.offer.peer = Some((info.state, info.metric, info.revision));
        match info.state {
            LinkState::Usable => path.health.probe_now(now),
            LinkState::Down => self.take_down(now, index, DownReason::PeerSaidDown),
            LinkState::Closed => self.take_down(now, index, DownReason::Closed),
        }
        self.scheduling.policy.reconsider();
        true
    }
}

/// What arrived and is not delivered yet. Empty at first; the session owns it.
pub(super) struct Inbound {
    pub resequencer: Resequencer,
    pub reassembler: Reassembler,
    /// What is not forwarded yet.
    pub held: HeldBack,
    /// Bytes of inner packets.
    pub rx_inner: ByteCount,
}

/// What inner packets are delivered by: what of the session and of its endpoint they need. Made for one frame; it
/// borrows all.
pub(super) struct Delivery<'a> {
    peer: PeerId,
    /// How long a gap is waited for.
    patience: Duration,
    scheduler: &'a mut Scheduler,
    queue: &'a mut Queue,
    sink: &'a mut dyn Sink,
    store: &'a TrainStore,
    routing: &'a mut Routing,
    pub drops: &'a mut Drops,
    rules: &'a Rules,
    flows: &'a mut FlowWatch,
    events: &'a mut Vec<Event>,
}

impl Delivery<'_> {
    /// One check, one function: are the inner addresses those that this peer may use?
    fn check_addresses(&mut self, packet: &[u8]) -> Result<(), DropReason> {
        let (source, destination) = inner_addresses(packet).ok_or(DropReason::BadInner)?;
        if self.routing.peer_of(source) != Some(self.peer) {
            self.check_stranger(source)?;
        }
        if self.routing.is_for_another(self.peer, destination) { Err(DropReason::BetweenPeers) } else { Ok(()) }
    }

    /// The source is none of the peer's, or it is not served.
    #[cold]
    fn check_stranger(&mut self, source: IpAddr) -> Result<(), DropReason> {
        let owner = self.routing.peer_of(source);
        match self.routing.unserved(source) {
            _ if self.routing.are_twins(self.peer, owner) => Ok(()),
            Some((peer, _)) if peer == self.peer => Err(DropReason::NotOwner),
            _ => Err(DropReason::WrongSource),
        }
    }

    /// Whether a packet of a peer that is not served may be forwarded in a moment.
    fn holds(&self, packet: &[u8]) -> bool {
        let unserved = inner_addresses(packet).and_then(|(source, _)| self.routing.unserved(source));
        unserved.is_some_and(|(_, standing)| standing == Standing::Held)
    }

    /// A subflow of MPTCP that comes by the tunnel goes back by it: what it says holds for its other direction.
    /// The mark that packets there will have is not known.
    fn note_connection(&mut self, now: Time, packet: &[u8]) {
        let Some(inner) = inner::parse(packet).ok().filter(|inner| matches!(inner.transport, Transport::Tcp { .. }))
        else {
            return;
        };
        let Some(option) = MptcpOption::of(packet, &inner) else { return };
        let back = inner.reversed();
        let treatment = self.rules.treatment(&back, Mark::default());
        if treatment.scheduler == Kind::Flow {
            let bucket = self.queue.place(now, self.store.flow_of(&back, treatment));
            self.scheduler.on_mptcp_option(now, (bucket, self.queue.tag(bucket)), option);
        }
    }
}

impl Inbound {
    pub fn new() -> Self {
        Inbound {
            resequencer: Resequencer::new(),
            reassembler: Reassembler::new(),
            held: HeldBack::default(),
            rx_inner: ByteCount::ZERO,
        }
    }

    /// Step 6, for a packet that came whole.
    pub fn on_data(&mut self, now: Time, frame: &DataFrame<'_>, to: &mut Delivery<'_>) -> Result<(), DropReason> {
        self.on_whole(now, arrival(frame.bucket, frame.flags, frame.sequence), frame.packet, to)
    }

    /// An inner packet is there; one that is refused counts as arrived, so that its flow does not wait for it.
    pub fn on_whole(
        &mut self,
        now: Time,
        arrival: Arrival,
        packet: &[u8],
        to: &mut Delivery<'_>,
    ) -> Result<(), DropReason> {
        if let Err(reason) = to.check_addresses(packet) {
            let outcome = self.resequencer.on_refused(now, arrival, to.patience, to.sink);
            if reason == DropReason::NotOwner && to.holds(packet) {
                judge(outcome)?;
                if self.held.push(now, packet, arrival.partial, to.drops) {
                    to.events.push(Event::Holds);
                }
                return Ok(());
            }
            return Err(reason);
        }
        if to.rules.by_flow() {
            to.note_connection(now, packet);
        }
        self.rx_inner += ByteCount(packet.len() as u64);
        let outcome = self.resequencer.on_packet(now, arrival, packet, to.patience, to.sink);
        if outcome != Outcome::Duplicate && to.flows.is_next(Look::Received) {
            to.flows.note_received(now, to.peer, packet);
        }
        judge(outcome)
    }

    /// The same once all pieces of a packet came.
    fn on_split(&mut self, now: Time, frame: &SplitFrame<'_>, to: &mut Delivery<'_>) -> Result<(), DropReason> {
        let arrival = arrival(frame.bucket, frame.flags, frame.sequence);
        let hold = to.patience.max(PIECES_WAIT);
        let mut reassembler = std::mem::take(&mut self.reassembler);
        let whole = reassembler.on_piece(now, frame.id.0, frame.offset, frame.more, arrival, frame.bytes, hold);
        let verdict = match whole {
            Err(_) => Err(DropReason::BadFrame),
            Ok(None) => Ok(()),
            Ok(Some(whole)) => self.on_whole(now, whole.arrival, whole.packet, to),
        };
        self.reassembler = reassembler;
        verdict
    }
}

/// A datagram's frames. One with a frame that is none, or with too many, is not acknowledged: its sender keeps what it
/// holds, and sends it otherwise.
fn parse<'d>(payload: &'d [u8], frames: &mut ArrayVec<Frame<'d>, FRAMES_MAX>) -> Result<(), DropReason> {
    for frame in Frames::new(payload) {
        let frame = frame.map_err(|_| DropReason::BadFrame)?;
        frames.try_push(frame).map_err(|_| DropReason::BadFrame)?;
    }
    Ok(())
}

pub(super) fn arrival(bucket: FlowBucket, flags: DataFlags, sequence: FlowSequence) -> Arrival {
    Arrival { bucket, sequence, partial: flags.partial, unordered: flags.unordered }
}

fn judge(outcome: Outcome) -> Result<(), DropReason> {
    if outcome == Outcome::Duplicate { Err(DropReason::Duplicate) } else { Ok(()) }
}

/// Source and destination of an inner packet, if it has a whole IP header.
fn inner_addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let v4 = |at: usize| packet[at..].first_chunk::<4>().map(|address| IpAddr::from(*address));
    let v6 = |at: usize| packet[at..].first_chunk::<16>().map(|address| IpAddr::from(*address));
    match packet.first()? >> 4 {
        4 if packet.len() >= inner::IPV4_HEADER => v4(12).zip(v4(16)),
        6 if packet.len() >= inner::IPV6_HEADER => v6(8).zip(v6(24)),
        _ => None,
    }
}
