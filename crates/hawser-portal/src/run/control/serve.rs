//! The control thread's loop, once everything is set up.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hawser_core::units::PeerId;
use hawser_net::netcfg::{EventSender, LinkEvent, LinkWatch};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::observe::Observer;
use super::routes::Routes;
use super::status;
use super::system::System;
use crate::api::{ControlSocket, Status};
use crate::config::Config;
use crate::run::interfaces::Interfaces;
use crate::run::messages::{Command, Lost, Report};
use crate::run::plan::SocketPlan;
use crate::run::{Host, Order, RunError};

/// The packet thread reports its state this often: no status is older, and it costs that thread nothing measurable.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// What the loop works on. Lives as long as the packet thread; the control thread owns it.
pub struct Serving<'a> {
    config: &'a Config,
    plans: Vec<SocketPlan>,
    system: &'a mut System,
    commands: &'a EventSender<Command>,
    interfaces: Interfaces,
    routes: Routes,
    observer: Observer,
    lost: Lost,
    status: watch::Sender<Status>,
    started: Instant,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl<'a> Serving<'a> {
    pub fn new(
        config: &'a Config,
        plans: Vec<SocketPlan>,
        system: &'a mut System,
        commands: &'a EventSender<Command>,
    ) -> Self {
        Self {
            config,
            plans,
            system,
            commands,
            interfaces: Interfaces::default(),
            routes: Routes::default(),
            observer: Observer::default(),
            lost: Lost::default(),
            status: watch::Sender::new(Status { version: env!("CARGO_PKG_VERSION").to_owned(), ..Status::default() }),
            started: Instant::now(),
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
        host: &mut impl Host,
    ) -> Result<(), RunError> {
        let orders = orders_of(host)?;
        // What there is already comes first, so that a portal that is ready has its links open.
        let events = link_watch.next().await?;
        self.on_links(&events).await;
        host.ready(&self.summary());
        let status = self.status.subscribe();
        let mut answering = std::pin::pin!(socket.serve(move || status.borrow().clone()));
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                events = link_watch.next() => self.on_links(&events?).await,
                report = reports.recv() => match report {
                    Some(report) => self.on_report(report).await,
                    // The packet thread has ended by itself; how, its handle tells.
                    None => return Ok(()),
                },
                () = &mut answering => {}
                _ = ticks.tick() => self.command([Command::Snapshot]),
                ready = orders.readable() => {
                    // Cleared before the orders are taken: one that comes in between wakes anew.
                    if let Ok(mut ready) = ready {
                        ready.clear_ready();
                    }
                    if self.obey(host) == Next::Stop {
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

    /// The packet thread first: a path that is lost must not wait for anything.
    async fn on_links(&mut self, events: &[LinkEvent]) {
        self.command(events.iter().cloned().map(Command::Link));
        for event in events {
            self.interfaces.learn(event);
            self.system.on_event(event, &self.plans).await;
        }
        let rtnl = self.system.rtnl();
        self.routes.ask(&rtnl, &self.plans, &self.interfaces).await;
    }

    async fn on_report(&mut self, report: Report) {
        match report {
            Report::State(state) => {
                if state.lost != self.lost {
                    tracing::debug!(lost = ?state.lost, "lost outside the core");
                    self.lost = state.lost;
                }
                let status = status::compose(self.config, &self.plans, &self.routes, &state, self.started.elapsed());
                self.observer.look_at(&status);
                self.status.send_replace(status);
            }
            Report::TunMtu(mtu) => {
                if self.config.tun.mtu.is_none() {
                    self.system.set_tun_mtu(mtu).await;
                }
            }
            Report::Session { peer, new: true } => tracing::info!(peer = self.name(peer), "session"),
            Report::Session { peer, new: false } => tracing::debug!(peer = self.name(peer), "new keys"),
            Report::Closed { peer } => tracing::info!(peer = self.name(peer), "peer said good-bye"),
        }
    }

    fn name(&self, PeerId(index): PeerId) -> &str {
        self.config.peers.get(index as usize).map_or("", |peer| peer.name.as_str())
    }

    fn obey(&self, host: &mut impl Host) -> Next {
        for order in host.orders() {
            match order {
                Order::Shutdown => return Next::Stop,
                Order::Reload => {
                    if let Some(config) = host.reload() {
                        tell_reload(self.config, &config);
                    }
                    host.ready(&self.summary());
                }
            }
        }
        Next::GoOn
    }

    /// A line for `systemctl status`.
    fn summary(&self) -> String {
        let Config { tun, links, peers, .. } = self.config;
        format!("{} forwards for {} peers over {} links", tun.name, peers.len(), links.len())
    }
}

/// A descriptor of our own, as the host is asked mutably while it is waited for.
fn orders_of(host: &impl Host) -> Result<AsyncFd<OwnedFd>, RunError> {
    let fd = host.as_fd().try_clone_to_owned().map_err(RunError::Runtime)?;
    // SAFETY: the AsyncFd owns the descriptor, which is open and the same as long as it lives.
    let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    fd.map_err(|refused| RunError::Runtime(refused.into()))
}

/// This version changes nothing while it runs, and says what waits for a restart.
fn tell_reload(old: &Config, new: &Config) {
    let sections = changed_sections(old, new);
    if sections.is_empty() {
        tracing::info!("configuration read again: nothing has changed");
    } else {
        let sections = sections.join(", ");
        tracing::warn!(sections, "configuration read again: the changes need a restart");
    }
}

fn changed_sections(old: &Config, new: &Config) -> Vec<&'static str> {
    let changes = [
        ("portal", old.portal != new.portal),
        ("tun", old.tun != new.tun),
        ("nat", old.nat != new.nat),
        ("link", old.links != new.links),
        ("peer", old.peers != new.peers),
        ("traffic", old.traffic != new.traffic),
    ];
    changes.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_names_the_sections_that_changed() {
        let config = |tun: &str, congestion: &str| {
            let text = format!(
                "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"{tun}\"]\n\
                 [[peer]]\nname = \"home\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
                 allowed_ips = [\"10.77.0.2/32\"]\n[traffic]\ncongestion = \"{congestion}\"\n"
            );
            Config::parse(&text, "test.toml").expect("a right configuration")
        };
        let old = config("10.77.0.1/24", "bbr");
        assert_eq!(changed_sections(&old, &old), [""; 0]);
        assert_eq!(changed_sections(&old, &config("10.77.0.9/24", "cubic")), ["tun", "traffic"]);
    }
}
