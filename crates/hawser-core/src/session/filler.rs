//! Filler: what a speed test sends, where paths have room and nothing of the users' waits for them.
//!
//! 1. `measure_speed`: a run of our own (up), or one that the peer is asked for (down). `on_speed`: the peer asks, or
//!    refuses.
//! 2. `transmit_filler`: after all else each path of the run fills its window, under its own congestion control. Filler
//!    is never retransmitted, and counted in place of being delivered.
//! 3. It ends after its time, its bytes, or at a word. One run at a time, whoever asked.
//!
//! What a peer may ask for is bounded: half of the time, and no run is longer than [`RUN_MOST`].

use super::batch::{Batch, begin};
use super::path::Content;
use super::{Buffers, Route, Session, Transmit, reliable};
use crate::drops::Drops;
use crate::rules::RuleId;
use crate::units::{ByteCount, LinkTag, Time};
use crate::wire::{
    Capabilities, DATA_HEADER_LEN, FILLER, FILLER_HEAD, HubFrame, ReservedFrame, SpeedFrame, SpeedWord, TAG_LEN,
};
use std::time::Duration;

/// No run lasts longer: ten times what a path's rate takes to be found.
pub const RUN_MOST: Duration = Duration::from_secs(60);
/// No run sends more: a minute at a gigabit a second, 7.5 GB.
pub const BYTES_MOST: ByteCount = ByteCount(7_500_000_000);
/// A peer that has used its time up is refused until it has this much again.
const LEAST: Duration = Duration::from_secs(1);
/// Of the time that passes a peer may have filler sent for one part in this many.
const SHARE: u32 = 2;
/// While filler comes this side asks that often, so that it measures the round trip under load.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Which way a run loads the paths. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the peer.
    Up,
    /// From the peer.
    Down,
}

/// What is to be loaded. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SpeedRun {
    /// Which way.
    pub direction: Direction,
    /// The link whose paths carry it; none: all that bulk flows may use.
    pub link: Option<LinkTag>,
    /// For how long, at most [`RUN_MOST`].
    pub time: Duration,
    /// Bytes of IP packets, at most [`BYTES_MOST`].
    pub bytes: ByteCount,
}

/// Why there is no run. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpeedError {
    /// The peer is away.
    #[error("begin speed run: no session with the peer")]
    NoSession,
    /// The peer's version has no speed test.
    #[error("begin speed run: the peer's version cannot")]
    OldPeer,
    /// No path of that link works.
    #[error("begin speed run: no path works by that link")]
    NoPath,
    /// There is one with this peer.
    #[error("begin speed run: another one is on with this peer")]
    Busy,
}

/// What a path carried of filler, bytes of IP packets. Zero at first; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct FillerCount {
    /// Sent, and acknowledged by the peer.
    pub delivered: ByteCount,
    /// Received.
    pub received: ByteCount,
}

/// How a session's speed test stands. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct SpeedSnapshot {
    /// This side sends filler.
    pub sends: bool,
    /// The peer refused the last run that it was asked for.
    pub refused: bool,
}

/// A run that this side sends.
#[derive(Copy, Clone, Debug)]
struct Run {
    /// The peer asked for it.
    for_peer: bool,
    link: Option<LinkTag>,
    began: Time,
    until: Time,
    left: ByteCount,
}

/// The runs of a session. None at first; the session owns it.
#[derive(Debug)]
pub(super) struct Filler {
    run: Option<Run>,
    /// The number of the last run that we asked for, whether it may be on, and whether it was refused.
    asked: u64,
    asked_until: Time,
    refused: bool,
    /// The number of the last run that the peer asked for.
    heard: u64,
    /// What the peer may still ask for, as of then.
    credit: Duration,
    credit_at: Time,
}

impl Filler {
    pub fn new(now: Time) -> Self {
        Filler {
            run: None,
            asked: 0,
            asked_until: Time::ZERO,
            refused: false,
            heard: 0,
            credit: RUN_MOST,
            credit_at: now,
        }
    }

    /// Whether this side sends.
    pub fn is_on(&self) -> bool {
        self.run.is_some()
    }

    fn credit(&self, now: Time) -> Duration {
        (self.credit + now.since(self.credit_at) / SHARE).min(RUN_MOST)
    }

    /// Ends the run; the time that it took is the peer's, where it asked.
    fn end(&mut self, now: Time) {
        let Some(run) = self.run.take().filter(|run| run.for_peer) else { return };
        self.credit = self.credit(now).saturating_sub(now.min(run.until).since(run.began));
        self.credit_at = now;
    }

    fn expire(&mut self, now: Time) {
        if self.run.is_some_and(|run| now >= run.until || run.left == ByteCount::ZERO) {
            self.end(now);
        }
    }
}

impl Session {
    /// Step 1: begins a run of ours. One that the peer would refuse shows in the snapshot.
    pub fn measure_speed(&mut self, now: Time, asked: SpeedRun) -> Result<(), SpeedError> {
        if !self.peer.version.capabilities.contain(Capabilities::SPEED) {
            return Err(SpeedError::OldPeer);
        }
        self.filler.expire(now);
        if self.filler.is_on() || now < self.filler.asked_until {
            return Err(SpeedError::Busy);
        }
        let of_run =
            |path: &super::path::Path| path.works() && asked.link.is_none_or(|link| path.offer.terms.name == link);
        if !self.paths.iter().any(of_run) {
            return Err(SpeedError::NoPath);
        }
        self.note_busy(now);
        let (time, bytes) = (asked.time.min(RUN_MOST), asked.bytes.min(BYTES_MOST));
        match asked.direction {
            Direction::Up => self.begin_run(now, false, asked.link, time, bytes),
            Direction::Down => {
                (self.filler.asked, self.filler.refused) = (self.filler.asked + 1, false);
                self.filler.asked_until = now + time;
                let milliseconds = u64::try_from(time.as_millis()).unwrap_or(0);
                self.say_speed(SpeedWord::Begin, self.filler.asked, asked.link, milliseconds, bytes);
            }
        }
        Ok(())
    }

    /// Step 3: ends whatever run of ours is on, here or there.
    pub fn end_speed(&mut self, now: Time) {
        if self.filler.run.is_some_and(|run| !run.for_peer) {
            self.filler.end(now);
        }
        if now < std::mem::replace(&mut self.filler.asked_until, Time::ZERO) {
            self.say_speed(SpeedWord::End, self.filler.asked, None, 0, ByteCount::ZERO);
        }
    }

    /// How it stands.
    pub(super) fn speed_snapshot(&self) -> SpeedSnapshot {
        SpeedSnapshot { sends: self.filler.is_on(), refused: self.filler.refused }
    }

    fn begin_run(&mut self, now: Time, for_peer: bool, link: Option<LinkTag>, time: Duration, left: ByteCount) {
        self.filler.run = Some(Run { for_peer, link, began: now, until: now + time, left });
    }

    fn say_speed(&mut self, word: SpeedWord, run: u64, link: Option<LinkTag>, milliseconds: u64, bytes: ByteCount) {
        let frame = SpeedFrame { run, word, link: link.unwrap_or_default(), milliseconds, bytes: bytes.0 };
        self.recovery.reliable.push(reliable::Frame::Speed(frame));
    }

    /// Step 1: a frame of the range that is skipped by who does not know it came, of this many bytes on the wire.
    pub(super) fn on_reserved(&mut self, now: Time, index: usize, frame: &ReservedFrame<'_>, drops: &mut Drops) {
        if frame.kind() == FILLER {
            self.on_filler(now, index, frame.bytes().len());
        } else if let Some(frame) = SpeedFrame::of(frame) {
            self.on_speed(now, &frame);
        } else if let Some(frame) = HubFrame::of(frame) {
            self.on_hub(now, index, frame, drops);
        }
    }

    fn on_filler(&mut self, now: Time, index: usize, len: usize) {
        self.note_busy(now);
        let path = &mut self.paths[index];
        let size = DATA_HEADER_LEN + FILLER_HEAD + len + TAG_LEN + path.overhead();
        path.counts.filler.received += ByteCount(size as u64);
        path.wants.ping |= now.since(path.activity.last_sent) >= ASK_EVERY;
    }

    /// The peer's runs are numbered: what overtook a later word says nothing.
    fn on_speed(&mut self, now: Time, frame: &SpeedFrame) {
        match frame.word {
            SpeedWord::Refused if frame.run == self.filler.asked => {
                (self.filler.refused, self.filler.asked_until) = (true, Time::ZERO);
            }
            SpeedWord::Refused => {}
            SpeedWord::End if frame.run >= self.filler.heard => {
                self.filler.heard = frame.run;
                if self.filler.run.is_some_and(|run| run.for_peer) {
                    self.filler.end(now);
                }
            }
            SpeedWord::Begin if frame.run > self.filler.heard => {
                self.filler.heard = frame.run;
                self.serve_run(now, frame);
            }
            SpeedWord::End | SpeedWord::Begin => {}
        }
    }

    fn serve_run(&mut self, now: Time, frame: &SpeedFrame) {
        self.filler.expire(now);
        let credit = self.filler.credit(now);
        if self.filler.is_on() || now < self.filler.asked_until || credit < LEAST {
            return self.say_speed(SpeedWord::Refused, frame.run, None, 0, ByteCount::ZERO);
        }
        let link = Some(frame.link).filter(|link| *link != LinkTag::default());
        let time = Duration::from_millis(frame.milliseconds).min(credit);
        self.begin_run(now, true, link, time, ByteCount(frame.bytes).min(BYTES_MOST));
    }

    /// Whether a path carries filler now.
    pub(super) fn is_filled(&self, index: usize) -> bool {
        let Some(run) = &self.filler.run else { return false };
        let path = &self.paths[index];
        match run.link {
            Some(link) => path.works() && path.offer.terms.name == link,
            None => path.works() && self.scheduling.allowed.of(RuleId::default()).contains(index),
        }
    }

    /// Step 2: a batch for a path that has room and nothing else to carry.
    pub(super) fn transmit_filler(&mut self, now: Time, buffers: &mut dyn Buffers) -> Option<Transmit> {
        self.filler.expire(now);
        for index in 0..self.paths.len() {
            if !self.is_filled(index) {
                continue;
            }
            if self.paths[index].ready_in(now).is_zero() {
                let Route { link, remote, .. } = self.paths[index].route;
                let spare = buffers.spare(link, remote);
                self.paths[index].stall.blocked = spare.is_none();
                if let Some(transmit) = spare.and_then(|buffer| self.fill_filler(now, index, buffer)) {
                    return Some(transmit);
                }
            }
            self.paths[index].note_pacing(now);
        }
        None
    }

    fn fill_filler(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let run = self.filler.run.as_mut()?;
        let path = &mut self.paths[index];
        let (mut budget, size) = (path.budget(now).min(run.left), path.way.mtu());
        let mut batch = Batch::new(buffer, path.room_before());
        while budget > ByteCount::ZERO && batch.room_for(size) > 0 {
            let (number, out) = begin(path, size, &mut batch);
            crate::wire::fill(&mut out[DATA_HEADER_LEN..size - TAG_LEN]);
            let sealed = self.keyring.seal().send.seal(path.id, number, out);
            debug_assert_eq!(sealed, Ok(()), "filler fills its datagram");
            budget -= path.remember(now, number, size, Content::Filler);
        }
        if batch.is_empty() {
            return None;
        }
        let wire = batch.wire_bytes(path.overhead());
        run.left -= wire;
        path.capacity.probing.on_fed(now);
        path.on_batch_sent(now, wire, false);
        if batch.segments() > 1 {
            path.flight.join_train(batch.segments());
        }
        let transmit = path.transmit(batch.len(), batch.segment_size());
        self.liveness.note_asked(now);
        self.note_busy(now);
        Some(transmit)
    }
}
