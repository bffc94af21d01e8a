//! No controller: below a stream the kernel has its own, and tells through the driver how much it takes now.
//!
//! 1. `on_socket`: the socket has room for this many bytes, and delivers at such a rate.
//! 2. `on_sent`: what goes takes of the room. 3. The window is what is in flight, and the room.

use super::{AckEvent, Controller, LossEvent, PathSnapshot, SocketState, initial_window};
use crate::units::{ByteCount, Rate, Time};

/// The kernel's controller as a path sees it. Starts with room for an initial window, so that there is something of
/// which the socket can tell. One path owns it.
#[derive(Clone, Debug)]
pub struct Kernel {
    room: ByteCount,
    in_flight: ByteCount,
    rate: Option<Rate>,
}

impl Kernel {
    /// For a path with datagrams of at most `mtu` bytes.
    pub fn new(mtu: ByteCount) -> Self {
        Kernel { room: initial_window(mtu), in_flight: ByteCount::ZERO, rate: None }
    }
}

impl Controller for Kernel {
    fn on_sent(&mut self, _now: Time, bytes: ByteCount, in_flight: ByteCount, _limited: bool) {
        self.room -= bytes;
        self.in_flight = in_flight;
    }

    fn on_ack(&mut self, ack: &AckEvent, _siblings: &[PathSnapshot]) {
        self.in_flight = ack.in_flight;
    }

    /// What is lost here went with a stream: that says nothing of the next one's rate.
    fn on_loss(&mut self, loss: &LossEvent) {
        self.in_flight = loss.in_flight;
    }

    fn on_ecn(&mut self, _now: Time, _marked: u64, _sent_at: Time) {}

    fn on_mtu(&mut self, _mtu: ByteCount) {}

    fn on_spurious_loss(&mut self, _now: Time) {}

    fn on_socket(&mut self, in_flight: ByteCount, state: &SocketState) {
        self.in_flight = in_flight;
        self.room = state.room;
        self.rate = state.rate.or(self.rate);
    }

    fn window(&self) -> ByteCount {
        self.in_flight + self.room
    }

    /// Nothing waits but for room.
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::ZERO)
    }

    fn bandwidth(&self) -> Option<Rate> {
        self.rate
    }

    fn name(&self) -> &'static str {
        "kernel"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1);

    #[test]
    fn the_window_is_what_is_in_flight_and_what_the_socket_takes() {
        let mut kernel = Kernel::new(ByteCount(1_482));
        assert_eq!(kernel.window(), ByteCount(14_720), "the socket is new");
        kernel.on_sent(NOW, ByteCount(10_000), ByteCount(10_000), false);
        assert_eq!(kernel.window(), ByteCount(14_720));
        let state = SocketState { room: ByteCount(30_000), rate: Some(Rate(1_000_000)) };
        kernel.on_socket(ByteCount(10_000), &state);
        assert_eq!((kernel.window(), kernel.bandwidth()), (ByteCount(40_000), Some(Rate(1_000_000))));
        kernel.on_sent(NOW, ByteCount(40_000), ByteCount(50_000), false);
        assert_eq!(kernel.window(), ByteCount(50_000), "full: nothing may go until the socket says so");
        kernel.on_socket(ByteCount(20_000), &SocketState { room: ByteCount(16_384), rate: None });
        assert_eq!((kernel.window(), kernel.bandwidth()), (ByteCount(36_384), Some(Rate(1_000_000))));
        assert_eq!(kernel.pacing_rate(), Some(Rate::ZERO), "unpaced");
    }
}
