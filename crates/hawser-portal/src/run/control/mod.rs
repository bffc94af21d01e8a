//! The control thread: everything that is not a packet.
//!
//! 1. Close the way past the tunnel, where it is to be. Take the control socket and the journal, which also shows
//!    whether such a portal runs already; undo what a killed predecessor left.
//! 2. Make the TUN device and configure it (`system`). 3. Give up privileges, start the packet thread.
//! 4. Until the end: pass on what the kernel says of links, ask for their routes (`routes`), publish the status
//!    (`status`), obey orders. 5. Stop the packet thread, and undo everything.

mod any_interface;
mod calendar;
mod default_route;
mod enrolments;
#[cfg_attr(not(feature = "etcd"), path = "etcd_absent.rs")]
mod etcd;
mod flows;
mod gateway;
mod heap;
mod hub;
mod key_log;
mod learner;
mod mtu;
mod name_servers;
mod names;
mod observe;
mod reload;
mod routes;
mod rule_table;
#[cfg_attr(not(feature = "scion"), path = "scion_absent.rs")]
mod scion;
mod serve;
mod sockets;
mod status;
mod system;
mod takeover;
mod tell;
mod told;
mod trend;
mod tun_queue;
mod usage;

use std::thread::JoinHandle;
use std::time::Duration;

use hawser_config::{Config, MarkKinds};
use hawser_core::endpoint::Endpoint;
use hawser_core::units::{Random, Time};
use hawser_hub::units::Epoch;
use hawser_net::netcfg::{EventSender, IfIndex, LinkWatch, Mark, MarkMatch, WatchOptions, event_channel};
use hawser_net::tun::{Tun, TunOpts};
use ipnet::IpNet;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::messages::{Command, Hubs, Report};
use super::packet::Driver;
use super::plan::{self, SocketPlan};
use super::privileges::{self, Powers};
use super::random::SystemRandom;
use super::{Host, RunError, kill_switch, terms};
use crate::api::{ControlSocket, Program};
use crate::keys::Keys;
use enrolments::Enrolments;
use hub::Epochs;
use key_log::KeyLog;
use serve::Serving;
use system::System;
use usage::Usage;

pub use flows::FLOWS_TOLD;
pub use hub::EpochsError;
pub use key_log::KeyLogFileError;
pub use takeover::TakeoverError;
pub use tun_queue::QUEUE_LEN as TUN_QUEUE_LEN;

/// The packet thread has this long to close the sessions before the system is cleaned up without it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The packet thread, seen from the control thread. It runs from the start; the control thread owns this.
struct PacketThread {
    commands: EventSender<Command>,
    reports: UnboundedReceiver<Report>,
    thread: JoinHandle<Result<Tun, RunError>>,
}

/// Undoes what a killed portal with this TUN device left in the system. Whether there was something.
pub async fn clean_up(tun: &str) -> Result<bool, RunError> {
    Ok(System::open(tun).await?.cleaned_up())
}

/// Runs a portal until `host` orders its end.
pub async fn run(config: Config, keys: Keys, host: &mut impl Host<(Config, Keys)>) -> Result<(), RunError> {
    if let Err(error) = hawser_net::powers::hide_memory() {
        tracing::warn!(%error, "memory may be dumped");
    }
    let closed = kill_switch::follow(&config).await?;
    let socket = ControlSocket::bind(Program::Portal, &config.portal.socket)?;
    let mut system = System::open(config.tun.name.as_str()).await?;
    let result = forward(&config, keys, host, socket, &mut system).await;
    system.undo().await;
    if closed {
        tracing::warn!("way past the tunnel stays closed: hawser kill-switch off opens it");
    }
    result
}

/// Steps 2 to 5, but for the undoing.
async fn forward(
    config: &Config,
    keys: Keys,
    host: &mut impl Host<(Config, Keys)>,
    socket: ControlSocket,
    system: &mut System,
) -> Result<(), RunError> {
    let seed = etcd::Seed::of(config, &keys);
    let joined = seed.as_ref().map(etcd::Seed::join);
    let config = joined.as_ref().unwrap_or(config);
    let plans = plan::sockets(config);
    let key_log = config.portal.keylog.as_deref().map(KeyLog::open).transpose()?;
    let tun = make_tun(config)?;
    let index = IfIndex::new(tun.index()).expect("a device that was made has an index");
    system.configure(config, index).await?;
    #[cfg(feature = "metrics")]
    let metrics = listen_for_scrapes(config).await?;
    let watch = LinkWatch::open(WatchOptions::default())?;
    let mut random = SystemRandom::new()?;
    let in_hub = config.hubs().next().is_some();
    let reserved = in_hub.then(|| Epochs::reserve(&config.portal.state_dir, config.tun.name.as_str())).transpose()?;
    let (epochs, first) = reserved.map_or((None, Epoch::FIRST), |(epochs, first)| (Some(epochs), first));
    let hubs = plan::hubs(config, &keys, first, random.next_u64());
    let core = plan::core_config(config, &keys, &mut random as &mut dyn Random);
    let Keys { private, preshared, invitations } = keys;
    drop(private);
    let enrolments = Enrolments::new(invitations);
    let mut endpoint = Endpoint::new(core, Box::new(random));
    if key_log.is_some() {
        endpoint.tell_keys();
    }
    endpoint.set_invitations(enrolments.core());
    endpoint.set_rules(Time::ZERO, terms::rules(config));
    let usage = Usage::load(&config.portal.state_dir, config.tun.name.as_str());
    terms::terms(&config.links, &plans, |link| usage.is_spent(link))
        .into_iter()
        .for_each(|(group, terms)| endpoint.set_terms(group, terms));
    if !config.portal.relay {
        endpoint.isolate_peers(config.tun.addresses.iter().map(IpNet::addr).collect());
    }
    // A second thread is nobody's choice by itself until it was measured what it brings (docs/results/performance.md).
    let threads = config.portal.threads.map_or(1, usize::from);
    let mut packets = PacketThread::start(endpoint, tun, plans.clone(), hubs, &Powers::of(config), threads)?;
    let mut store = seed.map(|seed| seed.start(preshared));
    let leaving = store.as_mut().and_then(etcd::Store::leaving);
    let serving = Serving::new(config, plans, system, usage, &packets.commands, key_log, enrolments);
    let serving = serving.with_reports(&mut packets.reports).with_epochs(epochs).with_store(store);
    #[cfg(feature = "metrics")]
    metrics.map(|server| tokio::spawn(server.serve(serving.source())));
    let result = serving.run(watch, socket, host).await;
    host.stopping();
    if let Some(leaving) = leaving {
        leaving.wait().await;
    }
    // The TUN device lives until everything on it is undone.
    let ended = packets.stop().await;
    system.undo().await;
    result.and(ended.map(drop))
}

/// The TUN device has its address by now, so that it can be scraped through the tunnel.
#[cfg(feature = "metrics")]
async fn listen_for_scrapes(config: &Config) -> Result<Option<crate::metrics::Server>, RunError> {
    let Some(address) = config.metrics else { return Ok(None) };
    let server = crate::metrics::Server::bind(address).await;
    server.map(Some).map_err(|source| RunError::Metrics { address, source })
}

fn make_tun(config: &Config) -> Result<Tun, RunError> {
    let marks = MarkKinds::of(&config.rules);
    let marks = marks.narrowest_first().iter().map(|kind| MarkMatch { mark: Mark(kind.value), mask: kind.mask });
    let marks: Vec<_> = marks.collect();
    let tun = Tun::create_marked(config.tun.name.as_str(), &TunOpts::default(), &marks)?;
    for finding in tun.findings() {
        tracing::warn!(tun = tun.name(), %finding, "tun device works, and slower");
    }
    tun_queue::set(tun.name())?;
    Ok(tun)
}

impl PacketThread {
    /// Starts it; it and this thread have no more than these powers from then on.
    fn start(
        endpoint: Endpoint,
        tun: Tun,
        plans: Vec<SocketPlan>,
        hubs: Hubs,
        powers: &Powers,
        threads: usize,
    ) -> Result<Self, RunError> {
        let failed = |step| move |source| RunError::Packet { step, source };
        let (commands, inbox) = event_channel().map_err(failed("make the bell"))?;
        let (outbox, reports) = unbounded_channel();
        let driver = Driver::new(endpoint, tun, plans, hubs, inbox, outbox)?;
        powers.reduce()?;
        let at_rest = powers.clone();
        let builder = std::thread::Builder::new().name("hawser-packet".to_owned());
        let work = move || privileges::at_rest(&at_rest).and_then(|()| driver.run(threads));
        let thread = builder.spawn(work).map_err(failed("start"))?;
        powers.keep_own()?;
        Ok(Self { commands, reports, thread })
    }

    /// Stops it if it still runs, and says how it ended.
    async fn stop(mut self) -> Result<Option<Tun>, RunError> {
        // Fails only if the thread has ended already.
        let _ = self.commands.send([Command::Stop]);
        let ended = async { while self.reports.recv().await.is_some() {} };
        if tokio::time::timeout(CLOSE_TIMEOUT, ended).await.is_err() {
            tracing::warn!("packet thread does not end, going on without it");
            return Ok(None);
        }
        self.thread.join().unwrap_or(Err(RunError::Panicked)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet thread that does this instead.
    async fn ended(work: impl FnOnce() -> Result<Tun, RunError> + Send + 'static) -> Result<Option<Tun>, RunError> {
        let (commands, inbox) = event_channel().expect("a channel");
        let (outbox, reports) = unbounded_channel();
        let thread = std::thread::spawn(move || {
            let _held: (hawser_net::netcfg::EventReceiver<Command>, tokio::sync::mpsc::UnboundedSender<Report>) =
                (inbox, outbox);
            work()
        });
        PacketThread { commands, reports, thread }.stop().await
    }

    fn failure() -> RunError {
        RunError::Packet { step: "wait", source: std::io::ErrorKind::Other.into() }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_packet_thread_that_panics_ends_the_portal_with_an_error() {
        let end = ended(|| panic!("on purpose")).await;
        assert!(matches!(end, Err(RunError::Panicked)));
        let end = ended(|| Err(failure())).await;
        assert!(matches!(end, Err(RunError::Packet { .. })));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_packet_thread_that_hangs_is_not_waited_for() {
        let end = ended(|| {
            std::thread::sleep(2 * CLOSE_TIMEOUT);
            Err(failure())
        });
        assert!(matches!(end.await, Ok(None)));
    }
}
