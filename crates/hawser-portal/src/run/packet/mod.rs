//! The packet thread: all packets, one thread, no lock; others seal and open for it, where there are any (`lanes`,
//! `link_loop`).
//!
//! Each time that a descriptor wakes it, or has more at once:
//! 1. receive from links that are readable (`link_loop`), 2. read from TUN (`tun_loop`), both up to a bound, so
//!    that neither starves the other and acknowledgements are never late,
//! 3. do what is due (`timer_loop`), 4. follow interfaces and commands (`netlink_loop`),
//! 5. send what the core has to say (`transmit`), 6. give the host what came home (`tun_loop`).
//!
//! Of a hub (`hub`): who owns a peer is known before what came is used, and what changed of that before anything is
//! sent. There step 6 comes before step 5, too: what a member acknowledged is not lost when it dies.

mod any_link;
mod hub;
mod lanes;
mod link_loop;
mod load;
mod moderation;
mod netlink_loop;
mod ready;
mod reload;
mod socket;
mod streams;
mod timer_loop;
mod transmit;
mod tun_loop;
#[cfg(feature = "scion")]
mod ways;

use std::io;
use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

use hawser_core::endpoint::Endpoint;
use hawser_core::packet::Coalescer;
use hawser_core::units::Time;
use hawser_net::link::RecvBatch;
use hawser_net::netcfg::EventReceiver;
use hawser_net::tun::Tun;
use hawser_net::workers::Workers;
use rustix::event::Timespec;
use tokio::sync::mpsc::UnboundedSender;

use super::RunError;
use super::clock::Clock;
use super::interfaces::Interfaces;
use super::messages::{Command, Hubs, Lost, Report};
use super::plan::SocketPlan;
use hub::Hub;
use load::{Account, Load};
use moderation::Moderation;
use ready::Ready;
use socket::LinkSocket;

/// The kernel may end this thread's waits so much later, in nanoseconds, instead of its default of 50 µs: a packet at
/// 1 Gbit/s takes 12 µs.
const TIMER_SLACK_NANOS: NonZeroU64 = NonZeroU64::MIN;

/// What the loops work on. Initially idle; the packet thread owns it.
pub struct Parts {
    clock: Clock,
    endpoint: Endpoint,
    tun: Tun,
    /// Inner packets that came home and wait to be written to TUN.
    home: Coalescer,
    sockets: Vec<LinkSocket>,
    received: RecvBatch,
    interfaces: Interfaces,
    reports: UnboundedSender<Report>,
    lost: Lost,
    moderation: Moderation,
    trimmed: Time,
    load: Load,
    account: Account,
    hub: Option<Box<Hub>>,
    /// Threads that seal and open beside this one.
    workers: Option<Workers>,
}

/// The packet thread's story. At first its listening sockets are open; the packet thread owns it.
pub struct Driver {
    parts: Parts,
    commands: EventReceiver<Command>,
}

/// Whether the thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl Driver {
    /// Opens the sockets that listen, and whatever else waits for the first command.
    ///
    /// # Errors
    /// [`RunError::Listen`] where a `listen` address cannot be opened for another reason than that it is missing.
    pub fn new(
        mut endpoint: Endpoint,
        tun: Tun,
        plans: Vec<SocketPlan>,
        hubs: Hubs,
        commands: EventReceiver<Command>,
        reports: UnboundedSender<Report>,
    ) -> Result<Self, RunError> {
        let mut home = Coalescer::new(tun.features().udp_segmentation);
        let hub = Hub::new(Clock.now(), hubs, &mut endpoint, &mut home);
        let mut parts = Parts {
            clock: Clock,
            endpoint,
            tun,
            home,
            sockets: plans.into_iter().map(LinkSocket::new).collect(),
            received: RecvBatch::new(),
            interfaces: Interfaces::default(),
            reports,
            lost: Lost::default(),
            moderation: Moderation::new(),
            trimmed: Time::ZERO,
            load: Load::default(),
            account: Account::default(),
            hub,
            workers: None,
        };
        netlink_loop::open_listening(&mut parts)?;
        Ok(Self { parts, commands })
    }

    /// Runs until it is told to stop, and with it one thread less than `threads` that seal and open; gives the TUN
    /// device back, so that its configuration can be undone in order.
    ///
    /// # Errors
    /// [`RunError`] for what makes going on useless.
    pub fn run(mut self, threads: usize) -> Result<Tun, RunError> {
        if let Some(count) = threads.checked_sub(1).filter(|count| *count > 0) {
            let started = Workers::start(count);
            self.parts.workers = Some(started.map_err(|source| RunError::Packet { step: "start workers", source })?);
            tracing::info!(threads, "packets are sealed and opened beside the packet thread");
        }
        if let Err(error) = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NANOS)) {
            tracing::warn!(%error, "timer slack not set: pacing is less even");
        }
        self.parts.account = Account::of_this_thread();
        let mut ready = Ready::default();
        let mut more = true;
        loop {
            self.wait(more, &mut ready)?;
            let next = self.step(&ready, &mut more)?;
            if next == Next::Stop {
                self.close_sessions();
                return Ok(self.parts.tun);
            }
        }
    }

    /// Sleeps until something is ready or due, for a fixed moment while there are many packets; not at all if there is
    /// `more` to do.
    fn wait(&mut self, more: bool, ready: &mut Ready) -> Result<(), RunError> {
        let parts = &mut self.parts;
        let now = parts.clock.now();
        let timeout = timer_loop::timeout(parts, now, more);
        let until = hub::note_rest(parts, now, timeout.map_or(Time::NEVER, |timeout| now + timeout));
        let mut timeout = Some(until.since(now)).filter(|_| until < Time::NEVER);
        if let Some(rest) = parts.moderation.rest(now).filter(|_| !more) {
            thread::sleep(timeout.map_or(rest, |timeout| timeout.min(rest)));
            timeout = Some(Duration::ZERO);
        }
        let timeout = timeout.map(timespec);
        let waited = ready.wait(&parts.tun, &self.commands, &parts.sockets, timeout.as_ref());
        waited.map_err(|errno| RunError::Packet { step: "wait", source: errno.into() })
    }

    /// One round of steps 1 to 6.
    fn step(&mut self, ready: &Ready, more: &mut bool) -> Result<Next, RunError> {
        let parts = &mut self.parts;
        let now = parts.clock.now();
        hub::begin(parts, now);
        let mut left = false;
        for &(place, flags) in &ready.sockets {
            left |= link_loop::on_ready(parts, place, flags)?;
        }
        tun_loop::on_ready(parts, ready)?;
        timer_loop::on_wake(parts, now);
        let next = if ready.commands { netlink_loop::on_commands(parts, &self.commands, now) } else { Next::GoOn };
        netlink_loop::settle(parts, now);
        if parts.hub.is_some() {
            hub::hear(parts);
            hub::round(parts);
            tun_loop::flush(parts)?;
        }
        *more = transmit::on_round(parts) || left;
        if !left {
            parts.load.on_empty();
        }
        tun_loop::flush(parts)?;
        *more |= hub::hear(parts) | hub::round(parts);
        Ok(next)
    }

    /// Peers that are told need not find out by silence.
    fn close_sessions(&mut self) {
        self.parts.endpoint.close();
        transmit::send_closes(&mut self.parts);
    }
}

/// Both parts fit: seconds of 64 bits, and less than a second of nanoseconds.
fn timespec(timeout: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX), tv_nsec: timeout.subsec_nanos().into() }
}

/// The error for what the TUN device says.
fn tun_failed(step: &'static str, source: io::Error) -> RunError {
    if hawser_net::tun::is_device_gone(&source) { RunError::TunGone(source) } else { RunError::Packet { step, source } }
}
