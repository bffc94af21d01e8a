//! What a home does with its line: calls, and web pages. One host on each side, both by the same orders.

use super::account::Account;
use crate::host::{Host, Ingress};
use hawser_core::packet::Offload;
use hawser_core::units::Time;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// A call has a packet this often in each direction, of this many bytes: 40 ms of Opus at 32 kbit/s.
pub const CALL_EVERY: Duration = Duration::from_millis(40);
const CALL_BYTES: usize = 200;
/// The flow of calls; web pages have others.
pub const CALL: u16 = 0;

/// Packets to be sent at once. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Burst {
    /// When.
    pub at: Time,
    /// The side that sends.
    pub side: usize,
    /// Of which flow.
    pub flow: u16,
    /// How many.
    pub packets: u32,
    /// Bytes of each.
    pub len: usize,
}

/// What is to be said. Nothing at first; the year and both hosts share it.
#[derive(Default)]
pub struct Orders {
    /// A call goes on until then.
    pub call_until: Time,
    /// Web pages, in the order of their time.
    pub bursts: [VecDeque<Burst>; 2],
}

impl Orders {
    /// Somebody sends packets at once, now.
    pub fn burst(&mut self, burst: Burst) {
        let bursts = &mut self.bursts[burst.side];
        let place = bursts.partition_point(|other| other.at <= burst.at);
        bursts.insert(place, burst);
    }

    /// Nothing is said now, nor ordered.
    pub fn is_quiet(&self, now: Time) -> bool {
        self.call_until <= now && self.bursts.iter().all(VecDeque::is_empty)
    }
}

/// The host of a side. Silent at first; its world owns it.
pub struct Talker {
    side: usize,
    next: Time,
    orders: Rc<RefCell<Orders>>,
    account: Rc<RefCell<Account>>,
}

impl Talker {
    /// One that does what `orders` say.
    pub fn new(side: usize, orders: Rc<RefCell<Orders>>, account: Rc<RefCell<Account>>) -> Self {
        Talker { side, next: Time::ZERO, orders, account }
    }

    fn send(&self, now: Time, flow: u16, len: usize, ingress: &mut Ingress<'_>) {
        let mut account = self.account.borrow_mut();
        if ingress.is_running() {
            ingress.send(Offload::default(), |out| account.give(now, self.side, flow, len, out));
        } else {
            account.away(self.side);
        }
    }
}

impl Host for Talker {
    fn receive(&mut self, now: Time, packet: &[u8], _: bool) {
        self.account.borrow_mut().take(now, self.side, packet);
    }

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        // Calls lie apart: the next one begins when it is ordered.
        if now.since(self.next) > CALL_EVERY * 2 {
            self.next = now;
        }
        let orders = Rc::clone(&self.orders);
        let mut orders = orders.borrow_mut();
        while self.next <= now && now < orders.call_until {
            self.send(now, CALL, CALL_BYTES, ingress);
            self.next = self.next + CALL_EVERY;
        }
        while let Some(burst) = orders.bursts[self.side].pop_front_if(|burst| burst.at <= now) {
            for _ in 0..burst.packets {
                self.send(now, burst.flow, burst.len, ingress);
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        let orders = self.orders.borrow();
        let call = (self.next < orders.call_until).then_some(self.next);
        call.into_iter().chain(orders.bursts[self.side].front().map(|burst| burst.at)).min()
    }
}
