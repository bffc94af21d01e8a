//! Steps 3 to 6 in: a datagram of this session arrived.
//!
//! 3. Its packet number is completed and the datagram opened.
//! 4. A number seen before ends it here.
//! 5. The path is found, or made if this is its first word; its address is checked; frames are
//!    handed to the parts that they are for.
//! 6. Inner packets go to the resequencer, if their source is the peer's; of others it learns that they came.

use super::{Context, Event, Route, Session, Sink};
use crate::drops::DropReason;
use crate::endpoint::labels::KeyId;
use crate::flows::Look;
use crate::packet::{Transport, inner};
use crate::path::health::DownReason;
use crate::path::replay::ReplayVerdict;
use crate::resequence::{Arrival, Outcome};
use crate::rules::Mark;
use crate::scheduler::{Kind, MptcpOption};
use crate::units::{ByteCount, Ecn, PacketNumber, PathId, Time};
use crate::wire::{
    DataFlags, DataFrame, DataHeader, FlowBucket, FlowSequence, Frame, Frames, Hold, LinkNameFrame, LinkState,
    PathInfo, Reader, SplitFrame,
};
use std::net::IpAddr;
use std::time::Duration;

/// Pieces of a packet wait for each other at least this long: they travel the same path together.
const PIECES_WAIT: Duration = Duration::from_secs(1);

/// Frames of a datagram: 1,452 bytes hold 51 of the smallest inner packets, and words beside them. Of 1,400 pings each costs more
/// than all the rest of a datagram (`benches/hostile.rs`).
const FRAMES_MAX: usize = 64;

/// A datagram with what its socket told of it.
pub(crate) struct Datagram<'a> {
    pub route: Route,
    pub ecn: Ecn,
    /// All of it; opened in place.
    pub bytes: &'a mut [u8],
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
        self.note_call(now);
        let Datagram { route, ecn, bytes } = datagram;
        let size = bytes.len();
        let (number, frames) = self.open(now, key, path, bytes)?;
        self.keyring.note_opened(key);
        let elicits = elicits(frames)?;
        self.note_heard(now);
        let index = self.path_for(now, path, route)?;
        let newest = self.paths[index].received.largest().is_none_or(|largest| number > largest);
        self.account(now, index, route, number, newest, elicits, ecn, size);
        for frame in Frames::new(frames) {
            let frame = frame.map_err(|_| DropReason::BadFrame)?;
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
        bytes: &'d mut [u8],
    ) -> Result<(PacketNumber, &'d [u8]), DropReason> {
        let header = DataHeader::decode(&mut Reader::new(bytes)).map_err(|_| DropReason::Malformed)?;
        let known = self.index_of(path).map(|index| &self.paths[index].received);
        let number = header.number.expand(known.and_then(|received| received.largest()));
        if known.is_some_and(|received| received.check(number) != ReplayVerdict::Fresh) {
            return Err(DropReason::Replayed);
        }
        let keys = self.keyring.opener(now, key)?;
        let frames = keys.open(path, number, bytes).map_err(|_| DropReason::Forged)?;
        Ok((number, frames))
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
            Frame::Padding(_) | Frame::Ping => {}
            Frame::Reserved(frame) => match LinkNameFrame::of(&frame) {
                Some(name) => self.on_name(&name),
                None => self.on_reserved(now, index, &frame),
            },
            Frame::Data(data) => self.on_data(now, &data, sink, cx)?,
            Frame::Ack(ack) => self.on_ack(now, index, &ack, cx).map_err(|_| DropReason::BadFrame)?,
            Frame::Split(split) => self.on_split(now, &split, sink, cx)?,
            Frame::PathChallenge(challenge) => self.paths[index].wants.response = Some((challenge.token, route)),
            Frame::PathResponse(response) => self.on_response(now, index, response.token),
            Frame::PathInfo(info) if !self.on_info(now, &info) => cx.drops.count(DropReason::BadFrame),
            Frame::PathInfo(_) => {}
            Frame::Gone(gone) => self.resequencer.on_gone(now, gone.bucket, gone.upto, sink),
            Frame::Hold(hold) => self.on_hold(hold),
            Frame::Terms(terms) => self.on_terms(&terms),
            Frame::Protected(frame) => self.on_protected(now, &frame, sink, cx)?,
            Frame::Repair(frame) => self.on_repair(now, &frame, sink, cx),
            Frame::Close(_) => self.events.push(Event::Closed),
        }
        Ok(())
    }

    /// Step 6: one check, one function: are the inner addresses those that this peer may use?
    pub(super) fn on_data(
        &mut self,
        now: Time,
        frame: &DataFrame<'_>,
        sink: &mut dyn Sink,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        self.note_busy(now);
        let arrival = arrival(frame.bucket, frame.flags, frame.sequence);
        self.on_whole(now, arrival, frame.packet, sink, cx)
    }

    /// An inner packet is there; one that is refused counts as arrived, so that its flow does not wait for it.
    pub(super) fn on_whole(
        &mut self,
        now: Time,
        arrival: Arrival,
        packet: &[u8],
        sink: &mut dyn Sink,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        let patience = self.patience();
        if let Err(reason) = self.check_addresses(packet, cx) {
            self.resequencer.on_refused(now, arrival, patience, sink);
            return Err(reason);
        }
        if cx.rules.by_flow() {
            self.note_connection(now, packet, cx);
        }
        self.rx_inner += ByteCount(packet.len() as u64);
        let outcome = self.resequencer.on_packet(now, arrival, packet, patience, sink);
        if outcome != Outcome::Duplicate && cx.flows.is_next(Look::Received) {
            cx.flows.note_received(now, self.peer, packet);
        }
        judge(outcome)
    }

    /// A subflow of MPTCP that comes by the tunnel goes back by it: what it says holds for its other direction.
    /// The mark that packets there will have is not known.
    fn note_connection(&mut self, now: Time, packet: &[u8], cx: &Context<'_>) {
        let Some(inner) = inner::parse(packet).ok().filter(|inner| matches!(inner.transport, Transport::Tcp { .. }))
        else {
            return;
        };
        let Some(option) = MptcpOption::of(packet, &inner) else { return };
        let back = inner.reversed();
        let treatment = cx.rules.treatment(&back, Mark::default());
        if treatment.scheduler == Kind::Flow {
            self.scheduler.on_mptcp_option(now, cx.store.bucket_of(&back, treatment), option);
        }
    }

    /// The same once all pieces of a packet came.
    fn on_split(
        &mut self,
        now: Time,
        frame: &SplitFrame<'_>,
        sink: &mut dyn Sink,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        self.note_busy(now);
        let arrival = arrival(frame.bucket, frame.flags, frame.sequence);
        let hold = self.patience().max(PIECES_WAIT);
        let mut reassembler = std::mem::take(&mut self.reassembler);
        let whole = reassembler.on_piece(now, frame.id.0, frame.offset, frame.more, arrival, frame.bytes, hold);
        let verdict = match whole {
            Err(_) => Err(DropReason::BadFrame),
            Ok(None) => Ok(()),
            Ok(Some(whole)) => self.on_whole(now, whole.arrival, whole.packet, sink, cx),
        };
        self.reassembler = reassembler;
        verdict
    }

    fn check_addresses(&self, packet: &[u8], cx: &mut Context<'_>) -> Result<(), DropReason> {
        let (source, destination) = inner_addresses(packet).ok_or(DropReason::BadInner)?;
        if cx.routing.peer_of(source) != Some(self.peer) {
            Err(DropReason::WrongSource)
        } else if cx.routing.is_for_another(self.peer, destination) {
            Err(DropReason::BetweenPeers)
        } else {
            Ok(())
        }
    }

    fn on_hold(&mut self, hold: Hold) {
        self.hold.heard = Duration::from_micros(hold.hold_us).min(self.tuning().hold.max);
        self.resequencer.set_hold(self.hold.heard);
    }

    /// The peer's word about a path: the newest revision counts. It closes none but its own. Tells whether it is believed.
    fn on_info(&mut self, now: Time, info: &PathInfo) -> bool {
        let closed = info.state == LinkState::Closed;
        if self.path_ids.is_ours(info.path) && closed {
            return false;
        }
        let Some(index) = self.index_of(info.path) else {
            // Its first datagram may still be on its way. Of a path of ours the peer may speak that we closed meanwhile.
            return self.path_ids.is_ours(info.path)
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
        self.policy.reconsider();
        true
    }
}

/// Whether a datagram of these frames is acknowledged. One with a frame that is none, or with too many, is not: its sender keeps
/// what it holds, and sends it otherwise.
fn elicits(frames: &[u8]) -> Result<bool, DropReason> {
    let mut elicits = false;
    for (count, frame) in Frames::new(frames).enumerate() {
        let frame = frame.ok().filter(|_| count < FRAMES_MAX).ok_or(DropReason::BadFrame)?;
        elicits |= frame.is_acked();
    }
    Ok(elicits)
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
