//! An acknowledgement: what it delivers, what that teaches, and what follows for the window.

use super::Sender;
use crate::tcp::rate::Sample;
use crate::tcp::scoreboard::Delivered;
use crate::tcp::segment::Header;
use crate::tcp::window::State;
use crate::tcp::{SCALE, stamp, unwrap};
use hawser_core::units::Time;
use std::time::Duration;

/// What an acknowledgement brought. Nothing by default. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct News {
    /// The cumulative acknowledgement moved.
    pub advanced: bool,
    /// Something was selectively acknowledged.
    pub sacked: bool,
    /// Something that was sent once only, before the timeout, was acknowledged.
    pub original: bool,
    /// Something was received twice.
    pub duplicate: bool,
    /// The timer is to begin anew.
    pub rearm: bool,
    /// What it echoes.
    pub echoed: u32,
    /// Round trip of the oldest that was sent once, and of the newest.
    oldest: Option<Duration>,
    newest: Option<Duration>,
    /// Something under way again was acknowledged.
    resent: bool,
    segments: u32,
}

impl Sender {
    /// Step 1.
    pub(super) fn on_ack(&mut self, now: Time, header: &Header) {
        let ack = unwrap(header.ack, self.first, self.una);
        if ack < 0 || ack as u64 > self.nxt {
            return;
        }
        let ack = ack as u64;
        if ack >= self.una {
            self.peer_window = u64::from(header.window) << SCALE;
        }
        let (in_flight, delivered, lost) = (self.board.in_flight(), self.sampler.delivered, self.sampler.lost);
        let mut news = News { echoed: header.timestamps.1, ..News::default() };
        self.take(now, ack, header, &mut news);
        self.learn_round_trip(now, &mut news);
        let mut sample = self.sampler.take(now, self.rtt.least);
        if let Some(prior) = sample.prior_delivered {
            self.rack.adapt(prior, self.sampler.delivered);
        }
        self.settle_probe(now, &news);
        self.judge(now, &mut news);
        if news.rearm {
            self.rearm(now);
        }
        sample.rtt = news.newest;
        sample.acked = (self.sampler.delivered - delivered) as u32;
        sample.lost = (self.sampler.lost - lost) as u32;
        sample.in_flight = in_flight;
        sample.delayed = news.advanced && news.segments == 1 && sample.acked == 1 && !news.sacked;
        self.set_window(now, &sample, &news);
    }

    /// What the cumulative acknowledgement and the blocks deliver.
    fn take(&mut self, now: Time, ack: u64, header: &Header, news: &mut News) {
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for (index, (start, end)) in header.sacked().enumerate() {
            let (start, end) = (unwrap(start, self.first, ack), unwrap(end, self.first, ack));
            if start < 0 || end <= start || end as u64 > self.nxt {
                continue;
            }
            let block = (start as u64, end as u64);
            if index == 0 && self.is_duplicate(block, ack, header) {
                self.on_duplicate(block, news);
            } else if block.1 > ack {
                blocks.push(block);
            }
        }
        let highest = self.board.highest_sacked;
        let mut delivered = std::mem::take(&mut self.delivered);
        self.board.sack(&blocks, &mut delivered);
        if ack > self.una {
            news.advanced = true;
            self.una = ack;
            self.timeouts = 0;
            self.board.acknowledge(ack, &mut delivered);
        }
        delivered.iter().for_each(|one| self.on_delivered(now, one, highest, news));
        news.rearm |= news.segments > 0 || self.is_on_its_way(now, news);
        delivered.clear();
        self.delivered = delivered;
    }

    /// What was selectively acknowledged had been sent before the oldest was, last: the oldest's own answer can't be
    /// there yet (Linux's `tcp_clean_rtx_queue`).
    fn is_on_its_way(&self, now: Time, news: &News) -> bool {
        let head = self.board.head().map(|head| now.since(head.sent));
        head.is_some_and(|since| news.oldest.is_some_and(|rtt| rtt > since))
    }

    /// RFC 2883: the first block lies below the acknowledgement, or within the second.
    fn is_duplicate(&self, block: (u64, u64), ack: u64, header: &Header) -> bool {
        let second = header.sacked().nth(1).map(|(start, end)| {
            (unwrap(start, self.first, ack).max(0) as u64, unwrap(end, self.first, ack).max(0) as u64)
        });
        block.1 <= ack || second.is_some_and(|(start, end)| start <= block.0 && block.1 <= end)
    }

    fn on_duplicate(&mut self, block: (u64, u64), news: &mut News) {
        news.duplicate = true;
        let segments = (block.1 - block.0).div_ceil(u64::from(self.window.mss)) as u32;
        if self.undo.marker.is_some_and(|marker| block.1 > marker)
            && let Some(open) = &mut self.undo.open
        {
            *open = open.saturating_sub(segments);
        }
        let probed = self.probe.is_some_and(|(end, again)| again && end == block.1);
        if !probed {
            self.rack.on_duplicate();
        }
    }

    fn on_delivered(&mut self, now: Time, one: &Delivered, highest: u64, news: &mut News) {
        let piece = &one.piece;
        if one.cumulative {
            news.segments += 1;
            news.resent |= piece.resent;
        }
        if piece.sacked {
            return;
        }
        self.sampler.on_delivered(now, piece);
        self.rack.advance(now, piece, self.rtt.least);
        news.sacked |= !one.cumulative;
        if piece.again {
            return;
        }
        // Overtaken by something that was selectively acknowledged before.
        if piece.end < highest {
            self.rack.on_reordering((highest - piece.start).div_ceil(u64::from(self.window.mss)));
        }
        news.original |= piece.end <= self.high;
        let rtt = now.since(piece.sent);
        news.oldest = news.oldest.max(Some(rtt));
        news.newest = Some(news.newest.map_or(rtt, |newest| newest.min(rtt)));
    }

    /// RFC 6298, of what was sent once; else by the timestamps (RFC 7323).
    fn learn_round_trip(&mut self, now: Time, news: &mut News) {
        if news.resent {
            (news.oldest, news.newest) = (None, None);
        }
        if news.oldest.is_none() && news.advanced && news.echoed != 0 {
            let ms = stamp(now).wrapping_sub(news.echoed);
            let rtt = Duration::from_millis(u64::from(ms.max(1)));
            (news.oldest, news.newest) = (Some(rtt), Some(rtt));
        }
        let (Some(oldest), Some(newest)) = (news.oldest, news.newest) else { return };
        self.rtt.on_sample(oldest, self.una, self.nxt);
        self.rtt.on_newest(newest);
        self.with_control(now, |control, view| control.on_round_trip(view, newest));
    }

    /// What follows for the window.
    fn set_window(&mut self, now: Time, sample: &Sample, news: &News) {
        if self.with_control(now, |control, view| control.on_sample(view, sample)) {
            return;
        }
        if self.state == State::Recovery {
            self.window.reduce(sample, self.board.in_flight(), news.advanced);
        } else if news.advanced || self.rack.reorders_much() && news.sacked {
            self.with_control(now, |control, view| control.avoid(view, sample.acked));
        }
        self.set_pacing();
    }
}
