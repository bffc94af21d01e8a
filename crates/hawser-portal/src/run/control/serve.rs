//! The control thread's loop, once everything is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_config::{Config, Link, MarkKinds, Peer};
use hawser_core::units::PeerId;
use hawser_net::daemon::orders_of;
use hawser_net::netcfg::{EventSender, LinkEvent, LinkWatch};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::any_interface::Taken;
use super::calendar::Date;
use super::enrolments::Enrolments;
use super::etcd::{self, Store};
use super::flows::FlowDesk;
use super::heap;
use super::hub::{Epochs, Seen};
use super::key_log::KeyLog;
use super::learner::Learner;
use super::names::Names;
use super::observe::Observer;
use super::reload::Places;
use super::routes::Routes;
use super::scion::Pathfinder;
use super::system::System;
use super::tell;
use super::told::Told;
use super::trend::Trend;
use super::usage::Usage;
use crate::api::{Answering, ControlSocket, EventKind, FlowQuestions, Orders};
use crate::keys::Keys;
use crate::run::interfaces::Interfaces;
use crate::run::messages::{Command, Lost, Reload, Report, State};
use crate::run::plan::SocketPlan;
use crate::run::privileges::Powers;
use crate::run::{Host, Order, RunError, terms};
use crate::web::Web;

mod deeds;
mod hub;
mod inbox;
mod naming;
mod reading;
mod reports;
mod speed;

/// The packet thread reports its state this often: no status is older, and it costs that thread nothing measurable.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// What the loop works on. Lives as long as the packet thread; the control thread owns it.
pub struct Serving<'a> {
    /// What is in force.
    pub(super) config: Config,
    pub(super) places: Places,
    /// The sockets of the configuration's links and of the interfaces that were taken, in their order, then those that
    /// listen.
    plans: Vec<SocketPlan>,
    taken: Taken,
    /// The links, with one for each interface that was taken in the place of that for all.
    links: Vec<Link>,
    /// The peers, with the addresses that their names have.
    peers: Vec<Peer>,
    names: Names,
    learner: Learner,
    /// What was kept at the start.
    powers: Powers,
    /// What the TUN device, as it was made at the start, tells apart by marks.
    marks: MarkKinds,
    system: &'a mut System,
    commands: &'a EventSender<Command>,
    pub(super) inbox: inbox::Inbox<'a>,
    interfaces: Interfaces,
    routes: Routes,
    observer: Observer,
    trend: Trend,
    usage: Usage,
    flows: FlowDesk,
    pathfinder: Pathfinder,
    /// The links that have carried all that they may, as the packet thread was told.
    spent: Vec<bool>,
    lost: Lost,
    pub(super) told: Arc<Told>,
    web: Option<Web>,
    /// Where orders of pages and of the control socket are heard, and questions for flows.
    heard: Option<(Orders, FlowQuestions)>,
    /// The links that somebody paused, and the tiers that somebody set.
    paused: BTreeSet<String>,
    tiers: BTreeMap<String, u16>,
    started: Instant,
    key_log: Option<KeyLog>,
    pub(super) enrolments: Enrolments,
    /// Of a hub: what a peer of it keeps, how it stands with each peer, whom a member asks to go, and when one that
    /// ends waits no longer.
    epochs: Option<Epochs>,
    seen: Seen,
    drains: hub::Drains,
    drained_by: Option<Instant>,
    /// Of a member whose peers are in etcd.
    pub(super) store: Option<Store>,
    /// The speed test that is on.
    speed: Option<speed::Lease>,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl<'a> Serving<'a> {
    pub fn new(
        config: &Config,
        plans: Vec<SocketPlan>,
        system: &'a mut System,
        usage: Usage,
        commands: &'a EventSender<Command>,
        key_log: Option<KeyLog>,
        enrolments: Enrolments,
    ) -> Self {
        Self {
            spent: config.links.iter().map(|link| usage.is_spent(link)).collect(),
            usage,
            config: config.clone(),
            places: Places::new(&config.peers),
            plans,
            taken: Taken::default(),
            links: config.links.clone(),
            peers: config.peers.clone(),
            names: Names::new(&config.peers, Instant::now()),
            learner: Learner::default(),
            powers: Powers::of(config),
            marks: MarkKinds::of(&config.rules),
            commands,
            inbox: inbox::Inbox::default(),
            interfaces: Interfaces::default(),
            routes: Routes::default(),
            observer: Observer::default(),
            flows: FlowDesk::default(),
            trend: Trend::default(),
            pathfinder: Pathfinder::new(),
            lost: Lost::default(),
            told: Arc::new(Told::new(system.cleaned_up())),
            web: None,
            heard: None,
            paused: BTreeSet::new(),
            tiers: BTreeMap::new(),
            system,
            started: Instant::now(),
            key_log,
            enrolments,
            epochs: None,
            seen: Seen::default(),
            drains: hub::Drains::default(),
            drained_by: None,
            store: None,
            speed: None,
        }
    }

    /// The same with what the packet thread reports.
    pub fn with_reports(mut self, reports: &'a mut UnboundedReceiver<Report>) -> Self {
        self.inbox = inbox::Inbox::new(reports);
        self
    }

    /// The same for a peer of a hub.
    pub fn with_epochs(mut self, epochs: Option<Epochs>) -> Self {
        self.epochs = epochs;
        self
    }

    /// The same for a member whose peers are in etcd.
    pub fn with_store(mut self, store: Option<Store>) -> Self {
        self.store = store;
        self
    }

    /// Serves until the host orders the end, or the packet thread ends.
    ///
    /// # Errors
    /// Where the kernel tells of links no more, or the host's descriptor cannot be waited for.
    pub async fn run(
        mut self,
        mut link_watch: LinkWatch,
        socket: ControlSocket,
        host: &mut impl Host<(Config, Keys)>,
    ) -> Result<(), RunError> {
        let orders = orders_of(host).map_err(RunError::Runtime)?;
        // What there is already comes first, so that a portal that is ready has its links open.
        let events = link_watch.next().await?;
        self.on_links(&events).await;
        self.find_paths();
        self.learner.follow(&self.config);
        host.ready(&self.summary());
        let (orders_in, mut asked) = unbounded_channel();
        let (questions, mut of_flows) = unbounded_channel();
        self.heard = Some((orders_in.clone(), questions.clone()));
        self.open_configured_page();
        let answers = Answering::new(self.told.clone()).with_orders(orders_in).with_flows(questions);
        let mut answering = std::pin::pin!(socket.serve(answers));
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heap_due = heap::due();
        loop {
            tokio::select! {
                events = link_watch.next() => {
                    let events = events?;
                    self.on_links(&events).await;
                    self.tell_addresses(&events);
                }
                due = self.inbox.next() => match due {
                    Some(due) => {
                        if self.on_due(due, host).await == Next::Stop {
                            return Ok(());
                        }
                    }
                    // The packet thread has ended by itself; how, its handle tells.
                    None => return Ok(()),
                },
                heard = self.pathfinder.next() => {
                    let commands = self.pathfinder.take(heard);
                    self.command(commands);
                }
                heard = self.names.next() => {
                    if self.names.take(heard, Instant::now()) {
                        self.readdress().await;
                    }
                }
                packets = self.learner.next() => self.learner.take(packets),
                heard = etcd::next(&mut self.store) => self.on_etcd(heard).await,
                () = &mut answering => {}
                // The socket keeps a sender as long as it answers.
                Some(asked) = asked.recv() => self.carry_out(asked, host).await,
                Some(answer) = of_flows.recv() => {
                    let command = self.flows.ask(Instant::now(), answer);
                    self.command(command);
                }
                _ = ticks.tick() => {
                    let flows = self.flows.tick(Instant::now());
                    self.command([Command::Snapshot].into_iter().chain(flows));
                    self.expire_enrolments();
                    self.expire_speed();
                    self.ask_names();
                    self.check_etcd().await;
                    self.system.set_again(&self.config).await;
                }
                _ = heap_due.tick() => heap::give_back(),
                ready = orders.readable() => {
                    // Cleared before the orders are taken: one that comes in between wakes anew.
                    if let Ok(mut ready) = ready {
                        ready.clear_ready();
                    }
                    if self.obey(host).await == Next::Stop {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// What gives the status of the moment.
    #[cfg(feature = "metrics")]
    pub fn source(&self) -> crate::metrics::Source {
        self.told.source()
    }

    pub(super) fn command(&self, commands: impl IntoIterator<Item = Command>) {
        // Fails only when the packet thread has ended, of which its reports' end tells.
        let _ = self.commands.send(commands);
    }

    /// SCION paths are looked for where links ask for them.
    fn find_paths(&mut self) {
        let commands = self.pathfinder.follow(&self.config, &self.plans, &self.places);
        self.command(commands);
    }

    /// The packet thread first: a path that is lost must not wait for anything.
    async fn on_links(&mut self, events: &[LinkEvent]) {
        self.command(events.iter().cloned().map(Command::Link));
        for event in events {
            self.interfaces.learn(event);
            self.system.on_event(event, &self.plans).await;
        }
        if self.config.links.iter().any(Link::is_any) {
            let mut reload = Reload::default();
            self.plan_anew(&mut reload).await;
            self.pass_on(reload).await;
            self.find_paths();
        }
        self.answer_by_links().await;
        let rtnl = self.system.rtnl();
        self.routes.ask(&rtnl, &self.plans, &self.interfaces).await;
    }

    /// A link whose interface has another address leads from elsewhere.
    fn tell_addresses(&self, events: &[LinkEvent]) {
        for event in events {
            let LinkEvent::AddressAdded(interface, address) = event else { continue };
            let is_its_own = |plan: &&SocketPlan| plan.opens() && self.interfaces.of(plan) == Some(&*interface.name);
            for plan in self.plans.iter().filter(is_its_own) {
                let cause = format!("{} has the address {}", interface.name, address.addr());
                self.told.note(EventKind::Roaming, "", &plan.name, &cause);
            }
        }
    }

    async fn answer_by_links(&mut self) {
        let links = self.plans.iter().filter(|plan| plan.opens());
        let links = links.filter_map(|plan| self.interfaces.of(plan));
        let addresses = links.flat_map(|name| self.interfaces.addresses(name));
        self.system.answer_by(&self.config, addresses).await;
    }

    /// What links with a cap have carried; one that has carried all carries no inner packets until its month ends.
    fn count(&mut self, state: &State) {
        if self.links.iter().all(|link| link.data_cap.is_none()) {
            return;
        }
        self.usage.count(Date::today(), &self.links, &self.plans, &state.core);
        let spent: Vec<bool> = self.links.iter().map(|link| self.usage.is_spent(link)).collect();
        if spent == self.spent {
            return self.usage.save_if_due();
        }
        for ((link, now), before) in self.links.iter().zip(&spent).zip(&self.spent) {
            match (now, before) {
                (true, false) => {
                    let used = self.usage.used(&link.name);
                    tracing::warn!(link = %link.name, used, "data cap reached");
                    self.told.note(EventKind::CapReached, "", link.name.as_str(), &tell::cap(used));
                }
                (false, true) => {
                    tracing::info!(link = %link.name, "data cap: the link may carry packets again");
                    self.told.note(EventKind::CapLifted, "", link.name.as_str(), "");
                }
                _ => {}
            }
        }
        self.spent = spent;
        self.usage.save();
        self.command([Command::Reload(self.terms())]);
    }

    fn terms(&self) -> Reload {
        let barred = |link: &Link| self.usage.is_spent(link) || self.paused.contains(link.name.as_str());
        let terms = terms::terms(&self.links, &self.plans, barred);
        Reload { terms, ..Reload::default() }
    }

    fn name(&self, id: PeerId) -> &str {
        self.places.peer(id).map_or("", |peer| peer.name.as_str())
    }

    async fn obey(&mut self, host: &mut impl Host<(Config, Keys)>) -> Next {
        for order in host.orders() {
            match order {
                Order::Shutdown if self.begins_to_drain() => {}
                Order::Shutdown => return Next::Stop,
                Order::Reload => {
                    self.read_again(host).await;
                }
            }
        }
        Next::GoOn
    }

    /// A line for `systemctl status`.
    fn summary(&self) -> String {
        let Config { tun, links, peers, .. } = &self.config;
        format!("{} forwards for {} peers over {} links", tun.name, peers.len(), links.len())
    }
}

impl Drop for Serving<'_> {
    /// What was counted outlives the portal, however it ends.
    fn drop(&mut self) {
        self.usage.save();
    }
}
