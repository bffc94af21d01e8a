//! The control thread's loop, once everything is set up.

mod naming;

use std::time::{Duration, Instant};

use hawser_core::endpoint::Event;
use hawser_core::handshake::PublicKey;
use hawser_core::handshake::enrolment::InvitationId;
use hawser_core::handshake::secrets::KeyLogEntry;
use hawser_core::units::PeerId;
use hawser_net::netcfg::{EventSender, LinkEvent, LinkWatch};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::any_interface::Taken;
use super::calendar::Date;
use super::enrolments::Enrolments;
use super::key_log::KeyLog;
use super::names::Names;
use super::observe::Observer;
use super::reload::{self, Places};
use super::routes::Routes;
use super::scion::Pathfinder;
use super::sockets;
use super::status;
use super::system::System;
use super::trend::Trend;
use super::usage::Usage;
use crate::api::{ControlSocket, Status};
use crate::config::{Config, Keys, Link, MarkKinds, Peer};
use crate::run::interfaces::Interfaces;
use crate::run::messages::{Command, Lost, Reload, Report, State};
use crate::run::plan::{self, SocketPlan};
use crate::run::privileges::Powers;
use crate::run::{Host, Order, RunError, orders_of, terms};

/// The packet thread reports its state this often: no status is older, and it costs that thread nothing measurable.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// What the loop works on. Lives as long as the packet thread; the control thread owns it.
pub struct Serving<'a> {
    /// What is in force.
    config: Config,
    places: Places,
    /// The sockets of the configuration's links and of the interfaces that were taken, in their order, then those that listen.
    plans: Vec<SocketPlan>,
    taken: Taken,
    /// The links, with one for each interface that was taken in the place of that for all.
    links: Vec<Link>,
    /// The peers, with the addresses that their names have.
    peers: Vec<Peer>,
    names: Names,
    /// What was kept at the start.
    powers: Powers,
    /// What the TUN device, as it was made at the start, tells apart by marks.
    marks: MarkKinds,
    system: &'a mut System,
    commands: &'a EventSender<Command>,
    interfaces: Interfaces,
    routes: Routes,
    observer: Observer,
    trend: Trend,
    usage: Usage,
    pathfinder: Pathfinder,
    /// The links that have carried all that they may, as the packet thread was told.
    spent: Vec<bool>,
    lost: Lost,
    status: watch::Sender<Status>,
    started: Instant,
    key_log: Option<KeyLog>,
    enrolments: Enrolments,
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
            powers: Powers::of(config),
            marks: MarkKinds::of(&config.rules),
            system,
            commands,
            interfaces: Interfaces::default(),
            routes: Routes::default(),
            observer: Observer::default(),
            trend: Trend::default(),
            pathfinder: Pathfinder::new(),
            lost: Lost::default(),
            status: watch::Sender::new(Status { version: env!("CARGO_PKG_VERSION").to_owned(), ..Status::default() }),
            started: Instant::now(),
            key_log,
            enrolments,
        }
    }

    /// Serves until the host orders the end, or the packet thread ends.
    ///
    /// # Errors
    /// Where the kernel tells of links no more, or the host's descriptor cannot be waited for.
    pub async fn run(
        mut self,
        mut link_watch: LinkWatch,
        reports: &mut UnboundedReceiver<Report>,
        socket: ControlSocket,
        host: &mut impl Host<(Config, Keys)>,
    ) -> Result<(), RunError> {
        let orders = orders_of(host).map_err(RunError::Runtime)?;
        // What there is already comes first, so that a portal that is ready has its links open.
        let events = link_watch.next().await?;
        self.on_links(&events).await;
        self.find_paths();
        host.ready(&self.summary());
        let status = self.status.subscribe();
        let (reloads, mut asked) = unbounded_channel();
        let mut answering = std::pin::pin!(socket.serve_with(move || status.borrow().clone(), Some(reloads)));
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                events = link_watch.next() => self.on_links(&events?).await,
                report = reports.recv() => match report {
                    Some(Report::Event(Event::Enrolment { invitation, key })) => self.enrol(invitation, key, host).await,
                    Some(report) => self.on_report(report).await,
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
                () = &mut answering => {}
                // The socket keeps a sender as long as it answers.
                Some(answer) = asked.recv() => {
                    let done = self.read_again(host).await;
                    let _ = answer.send(done);
                }
                _ = ticks.tick() => {
                    self.command([Command::Snapshot]);
                    self.expire_enrolments();
                    self.ask_names();
                    self.system.retry().await;
                }
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

    fn command(&self, commands: impl IntoIterator<Item = Command>) {
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

    async fn answer_by_links(&mut self) {
        let links = self.plans.iter().filter(|plan| plan.opens());
        let links = links.filter_map(|plan| self.interfaces.of(plan));
        let addresses = links.flat_map(|name| self.interfaces.addresses(name));
        self.system.answer_by(&self.config, addresses).await;
    }

    async fn on_report(&mut self, report: Report) {
        match report {
            Report::State(state) => {
                if state.lost != self.lost {
                    tracing::debug!(lost = ?state.lost, "lost outside the core");
                    self.lost = state.lost;
                }
                self.count(&state);
                let commands = self.pathfinder.look_at(&state.core);
                self.command(commands);
                self.look_at_names(&state).await;
                let mut status = status::compose(
                    &self.config,
                    &self.links,
                    &self.peers,
                    &self.names,
                    &self.places,
                    &self.plans,
                    &self.routes,
                    &self.usage,
                    &self.pathfinder,
                    &state,
                    self.started.elapsed(),
                );
                self.trend.complete(&mut status);
                self.observer.look_at(&status);
                self.status.send_replace(status);
            }
            Report::Event(event) => self.on_event(event).await,
            Report::Broken(remote) => {
                let commands = self.pathfinder.on_broken(remote);
                self.command(commands);
            }
        }
    }

    async fn on_event(&mut self, event: Event) {
        match event {
            Event::PeerMtu { peer, mtu } => {
                if let Some(peer) = self.places.peer(peer) {
                    self.system.set_peer_mtu(&self.config, peer.name.as_str(), mtu).await;
                }
            }
            Event::Session { peer, new: true } => tracing::info!(peer = self.name(peer), "session"),
            Event::Session { peer, new: false } => tracing::debug!(peer = self.name(peer), "new keys"),
            Event::OtherVersion { peer, theirs, ours } => {
                tracing::warn!(peer = self.name(peer), %theirs, %ours, "peer of another protocol version")
            }
            Event::TrainsLost { peer, link, remote } => {
                let plan = self.plans.get(usize::from(link.0));
                let link = plan.map_or("", |plan| plan.name.as_str());
                tracing::warn!(
                    peer = self.name(peer),
                    link,
                    %remote,
                    "path without udp gso from now on: trains do not arrive and single datagrams do; a NAT on this host \
                     that changes ports spoils them"
                );
            }
            // Taken up before, with the host.
            Event::Enrolment { .. } => {}
            Event::Refused { peer, refusal } => {
                tracing::warn!(peer = self.name(peer), cause = status::refusal(refusal), "peer answers, and no session")
            }
            Event::Closed { peer } => tracing::info!(peer = self.name(peer), "session closed by peer"),
            Event::Silent { peer } => tracing::info!(peer = self.name(peer), "session over: peer silent"),
            Event::KeysOver { peer, end } => {
                tracing::warn!(peer = self.name(peer), cause = %end, "no new keys: traffic stops until a handshake succeeds")
            }
            Event::Keys { peer, new, secrets } => {
                let name = self.name(peer).to_owned();
                if let Some(log) = &mut self.key_log {
                    log.write(KeyLogEntry { peer: name, new, secrets: *secrets });
                }
            }
        }
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
                    tracing::warn!(link = %link.name, used = self.usage.used(&link.name), "data cap reached")
                }
                (false, true) => tracing::info!(link = %link.name, "data cap: the link may carry packets again"),
                _ => {}
            }
        }
        self.spent = spent;
        self.usage.save();
        self.command([Command::Reload(self.terms())]);
    }

    fn terms(&self) -> Reload {
        let terms = terms::terms(&self.links, &self.plans, |link| self.usage.is_spent(link));
        Reload { terms, ..Reload::default() }
    }

    fn name(&self, id: PeerId) -> &str {
        self.places.peer(id).map_or("", |peer| peer.name.as_str())
    }

    async fn obey(&mut self, host: &mut impl Host<(Config, Keys)>) -> Next {
        for order in host.orders() {
            match order {
                Order::Shutdown => return Next::Stop,
                Order::Reload => {
                    self.read_again(host).await;
                }
            }
        }
        Next::GoOn
    }

    /// The configuration is read again; whether it could be.
    async fn read_again(&mut self, host: &mut impl Host<(Config, Keys)>) -> bool {
        let read = host.reload();
        if let Some((config, keys)) = &read {
            self.reload(config, keys).await;
            self.enrolments.follow(keys.invitations.clone());
            self.command([Command::Invitations(self.enrolments.core())]);
        }
        host.ready(&self.summary());
        read.is_some()
    }

    /// The holder of a token has shown its key: it becomes a peer, and is answered from then on.
    async fn enrol(&mut self, id: InvitationId, key: PublicKey, host: &mut impl Host<(Config, Keys)>) {
        // Answered as bound once the peer is known: that order is the channel's.
        if self.enrolments.admit(id, key, &self.config) && !self.read_again(host).await {
            self.enrolments.forget(id);
        }
    }

    fn expire_enrolments(&mut self) {
        if self.enrolments.expire() {
            self.command([Command::Invitations(self.enrolments.core())]);
        }
    }

    /// Which sockets there should be now.
    async fn plan_anew(&mut self, reload: &mut Reload) {
        let rtnl = self.system.rtnl();
        let named = Config { peers: self.peers.clone(), ..self.config.clone() };
        let expanded = self.taken.expand(&named, &rtnl, &self.interfaces).await;
        sockets::follow(&mut self.plans, plan::sockets(&expanded), reload);
        if self.links == expanded.links {
            // Sockets that come when a name is resolved know no terms yet.
            if !reload.links_added.is_empty() {
                reload.terms = self.terms().terms;
            }
            return;
        }
        if self.links.iter().all(|link| link.data_cap.is_none()) {
            self.usage.begin();
        }
        self.links = expanded.links;
        self.spent = self.links.iter().map(|link| self.usage.is_spent(link)).collect();
        reload.terms = self.terms().terms;
    }

    async fn pass_on(&mut self, reload: Reload) {
        if reload.is_empty() {
            return;
        }
        self.system.welcome(&reload.links_added, &self.interfaces).await;
        self.command([Command::Reload(reload)]);
    }

    /// What can change does; the log says what waits for a restart.
    async fn reload(&mut self, new: &Config, keys: &Keys) {
        let effective = reload::effective(&self.config, new, &self.powers, &self.marks);
        let old = std::mem::replace(&mut self.config, effective);
        self.names.follow(&self.config.peers, Instant::now());
        self.peers = self.names.fill(&self.config.peers);
        let mut reload = self.places.follow(&self.peers, keys);
        if (&old.traffic, &old.rules) != (&self.config.traffic, &self.config.rules) {
            reload.rules = Some(terms::rules(&self.config));
        }
        self.plan_anew(&mut reload).await;
        if !reload.is_empty() {
            self.pass_on(reload).await;
            self.find_paths();
            self.system.reconfigure(&self.config).await;
            self.answer_by_links().await;
            let rtnl = self.system.rtnl();
            self.routes.ask(&rtnl, &self.plans, &self.interfaces).await;
        }
        let done = reload::changed_sections(&old, &self.config).join(", ");
        let left = reload::changed_sections(&self.config, new).join(", ");
        match (done.as_str(), left.as_str()) {
            ("", "") => tracing::info!("configuration read again: nothing has changed"),
            (_, "") => tracing::info!(sections = done, "configuration read again: changed"),
            ("", _) => tracing::warn!(sections = left, "configuration read again: the changes need a restart"),
            _ => {
                tracing::warn!(changed = done, sections = left, "configuration read again: some changes need a restart")
            }
        }
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
