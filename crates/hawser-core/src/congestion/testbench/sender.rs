//! The bench's sender: window, pacer, sampler and RFC 9002's loss detection around a controller.

use super::super::pacer::{Pacer, initial_rate};
use super::super::sampler::{DeliverySampler, Stamp};
use super::super::{AckEvent, Controller, LossEvent, PathSnapshot, RttSnapshot};
use super::MTU;
use crate::units::{ByteCount, Rate, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// RFC 9002 section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;

#[derive(Clone, Copy)]
struct Sent {
    at: Time,
    stamp: Stamp,
    limited: bool,
    open: bool,
}

/// A flow: how much it wants, and what it got.
pub(in super::super) struct Sender {
    pub(in super::super) control: Box<dyn Controller>,
    pub(super) pacer: Pacer,
    pub(super) sampler: DeliverySampler,
    sent: VecDeque<Sent>,
    pub(super) base: u64,
    pub(super) largest_acked: Option<u64>,
    pub(super) in_flight: ByteCount,
    pub(super) rtt: Option<RttSnapshot>,
    pub(super) pump_at: Time,
    pub(super) probe_at: Time,
    pub(super) probe_armed: bool,
    /// How much it offers (none: all it can send).
    pub(super) offer: Option<Rate>,
    /// Bytes offered and not sent at `offered_at`.
    pub(super) offered: f64,
    pub(super) offered_at: Time,
    pub(super) received: Vec<u64>,
    pub(super) ack_timer: bool,
    /// Bytes delivered in each tenth of a second.
    pub(super) tenths: Vec<u64>,
}

impl Sender {
    pub(super) fn new(control: Box<dyn Controller>, at: Time) -> Self {
        Sender {
            control,
            pacer: Pacer::new(MTU),
            sampler: DeliverySampler::new(),
            sent: VecDeque::new(),
            base: 0,
            largest_acked: None,
            in_flight: ByteCount::ZERO,
            rtt: None,
            pump_at: at,
            probe_at: Time::NEVER,
            probe_armed: false,
            offer: None,
            offered: 0.0,
            offered_at: at,
            received: Vec::new(),
            ack_timer: false,
            tenths: Vec::new(),
        }
    }

    /// An acknowledgement of these packets; whether any was news.
    pub(super) fn on_frame(&mut self, now: Time, numbers: &[u64], siblings: &[PathSnapshot]) -> bool {
        let prior_in_flight = self.in_flight;
        let mut acked = ByteCount::ZERO;
        let mut newest: Option<Sent> = None;
        for &number in numbers {
            let Some(index) = number.checked_sub(self.base) else {
                continue;
            };
            let packet = &mut self.sent[index as usize];
            if !std::mem::take(&mut packet.open) {
                continue;
            }
            newest = Some(*packet);
            self.sampler.on_packet_acked(packet.stamp, packet.at, MTU, now, Duration::ZERO);
            acked += MTU;
            self.in_flight -= MTU;
            self.largest_acked = self.largest_acked.max(Some(number));
        }
        let Some(newest) = newest else {
            return false;
        };
        self.update_rtt(now.since(newest.at));
        let rtt = self.rtt.expect("just updated");
        self.detect_losses(now);
        let rate = self.sampler.take_sample(now, None, rtt.min);
        self.control.on_ack(
            &AckEvent {
                now,
                acked,
                largest_sent_at: newest.at,
                prior_in_flight,
                in_flight: self.in_flight,
                delivered: self.sampler.delivered(),
                rtt,
                round_trip: Some(now.since(newest.at)),
                received_at: now,
                rate,
                app_limited: newest.limited,
            },
            siblings,
        );
        let rate = self.control.pacing_rate();
        self.pacer.set_rate(rate.unwrap_or_else(|| initial_rate(self.control.window(), rtt.smoothed)));
        true
    }

    /// When the next packet is there to be sent.
    pub(super) fn wanted_at(&self, now: Time) -> Time {
        match self.offer {
            None => now,
            Some(Rate::ZERO) => Time::NEVER,
            Some(rate) => {
                let credit = self.offered + rate.0 as f64 * now.since(self.offered_at).as_secs_f64();
                let missing = (MTU.0 as f64 - credit).max(0.0);
                now + Duration::from_nanos((missing * 1e9 / rate.0 as f64).ceil() as u64)
            }
        }
    }

    /// Takes a packet of what is offered; whether nothing is left.
    pub(super) fn take_one(&mut self, now: Time) -> bool {
        let Some(rate) = self.offer else {
            return false;
        };
        let grown = self.offered + rate.0 as f64 * now.since(self.offered_at).as_secs_f64();
        self.offered = (grown - MTU.0 as f64).min(MTU.0 as f64 * 64.0);
        self.offered_at = now;
        self.offered < MTU.0 as f64
    }

    /// RFC 9002 section 5.
    pub(super) fn update_rtt(&mut self, latest: Duration) {
        let rtt = self.rtt.get_or_insert(RttSnapshot {
            latest,
            smoothed: latest,
            variance: latest / 2,
            min: latest,
            spread: Duration::ZERO,
        });
        rtt.latest = latest;
        rtt.min = rtt.min.min(latest);
        rtt.variance = (rtt.variance * 3 + rtt.smoothed.abs_diff(latest)) / 4;
        rtt.smoothed = (rtt.smoothed * 7 + latest) / 8;
    }

    pub(super) fn detect_losses(&mut self, now: Time) {
        let (Some(largest), Some(rtt)) = (self.largest_acked, self.rtt) else {
            return;
        };
        let patience = rtt.latest.max(rtt.smoothed) * 9 / 8;
        let mut lost = ByteCount::ZERO;
        let mut newest: Option<Sent> = None;
        for index in 0..largest.saturating_sub(self.base) {
            let packet = &mut self.sent[index as usize];
            let gone = self.base + index + PACKET_THRESHOLD <= largest || packet.at + patience <= now;
            if packet.open && gone {
                packet.open = false;
                lost += MTU;
                newest = Some(*packet);
            }
        }
        while self.sent.front().is_some_and(|packet| !packet.open) {
            self.sent.pop_front();
            self.base += 1;
        }
        let Some(newest) = newest else { return };
        self.in_flight -= lost;
        self.sampler.on_lost(lost);
        self.control.on_loss(&LossEvent {
            now,
            lost,
            largest_sent_at: newest.at,
            in_flight: self.in_flight,
            tx_in_flight: newest.stamp.tx_in_flight(),
            total_lost: self.sampler.lost(),
            persistent: false,
        });
    }

    /// Accounts for a packet that goes out; its number.
    pub(super) fn transmit(&mut self, now: Time, limited: bool) -> u64 {
        let stamp = self.sampler.on_sent(now, MTU, self.in_flight, limited);
        self.in_flight += MTU;
        let filled = self.in_flight + MTU > self.control.window();
        self.pacer.on_sent(now, MTU);
        self.control.on_sent(now, MTU, self.in_flight, limited);
        self.sent.push_back(Sent { at: now, stamp, limited: limited && !filled, open: true });
        self.base + self.sent.len() as u64 - 1
    }
}
