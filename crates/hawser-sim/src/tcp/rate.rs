//! Samples of the rate of delivery (draft-cheng-iccrg-delivery-rate-estimation), as Linux's `tcp_rate` takes them.

use super::scoreboard::Piece;
use hawser_core::units::Time;
use std::time::Duration;

/// What is remembered of a piece when it is sent. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Stamp {
    /// Segments delivered by then.
    delivered: u64,
    /// When that was so.
    delivered_at: Time,
    /// When the first of this flight was sent.
    first_sent: Time,
    /// The sender had nothing more to send.
    app_limited: bool,
}

/// What one acknowledgement tells. Nothing by default. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Sample {
    /// Segments delivered since the newest of them was sent, and in which time.
    pub delivered: Option<(u64, Duration)>,
    /// How many had been delivered when it was sent.
    pub prior_delivered: Option<u64>,
    /// Round trip of the newest.
    pub rtt: Option<Duration>,
    /// Segments newly delivered.
    pub acked: u32,
    /// Segments newly lost.
    pub lost: u32,
    /// Under way before it.
    pub in_flight: u32,
    /// The sender had nothing more to send.
    pub app_limited: bool,
    /// The receiver may have delayed it.
    pub delayed: bool,
}

/// Counts what was delivered. Nothing at first; its sender owns it.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    /// Segments delivered so far.
    pub delivered: u64,
    /// When the last of them was.
    pub delivered_at: Time,
    /// Segments lost so far.
    pub lost: u64,
    /// Until this number is delivered, the application limits the rate; zero: it does not.
    pub limited_until: u64,
    first_sent: Time,
    newest: Option<(Time, u64, Stamp)>,
}

impl Sampler {
    /// Something is sent, while `out` segments are under way.
    pub fn on_sent(&mut self, now: Time, out: u32) -> Stamp {
        if out == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.limited_until > 0,
        }
    }

    /// A piece was delivered.
    pub fn on_delivered(&mut self, now: Time, piece: &Piece) {
        self.delivered += 1;
        self.delivered_at = now;
        if self.newest.is_none_or(|(sent, end, _)| (piece.sent, piece.end) > (sent, end)) {
            self.newest = Some((piece.sent, piece.end, piece.stamp));
        }
    }

    /// The sample of this acknowledgement: of all that was delivered since the last one was taken.
    pub fn take(&mut self, now: Time, least_rtt: Option<Duration>) -> Sample {
        let mut sample = Sample::default();
        if self.limited_until > 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let Some((sent, _, stamp)) = self.newest.take() else { return sample };
        sample.prior_delivered = Some(stamp.delivered);
        sample.app_limited = stamp.app_limited;
        let sending = sent.since(stamp.first_sent);
        self.first_sent = sent;
        let interval = sending.max(now.since(stamp.delivered_at));
        // A shorter time than a round trip: acknowledgements were compressed, and the rate would be too high.
        if !interval.is_zero() && least_rtt.is_none_or(|least| interval >= least) {
            sample.delivered = Some((self.delivered - stamp.delivered, interval));
        }
        sample
    }
}
