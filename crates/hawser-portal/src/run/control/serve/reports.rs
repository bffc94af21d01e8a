//! What the packet thread reports, and what follows from it.

use hawser_config::Config;
use hawser_core::endpoint::Event;
use hawser_core::handshake::secrets::KeyLogEntry;
use hawser_core::units::{LinkId, PeerId};

use super::super::{flows, status, tell};
use super::inbox::Due;
use super::{Next, Serving};
use crate::keys::Keys;
use crate::run::Host;
use crate::run::messages::Report;
use crate::web::Web;

impl Serving<'_> {
    /// What the packet thread reports.
    pub(super) async fn on_due(&mut self, due: Due, host: &mut impl Host<(Config, Keys)>) -> Next {
        let mut drained = false;
        match due {
            Due::Announced(announced) => {
                let owned = self.announce(announced).await;
                self.note_owned(owned);
            }
            Due::Fits(fits) => {
                let named = |(peer, mtu): &(PeerId, u16)| Some((self.places.peer(*peer)?.name.as_str(), *mtu));
                self.system.set_peer_mtus(&self.config, fits.iter().filter_map(named)).await;
            }
            Due::Other(Report::Event(Event::Enrolment { invitation, key })) => {
                self.enrol(invitation, key, host).await;
            }
            Due::Other(report) => {
                drained = matches!(&report, Report::State(state) if state.drained);
                self.on_report(report).await;
            }
        }
        if self.is_done(drained) { Next::Stop } else { Next::GoOn }
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
                    &self.paused,
                    &self.pathfinder,
                    &state,
                    self.started.elapsed(),
                );
                self.trend.complete(&mut status);
                self.learner.complete(&self.config, &mut status);
                self.told.look_at(&mut status);
                status.web = self.web.as_ref().map(Web::status);
                status.dns = self.system.name_servers();
                self.tell_hub(&mut status, &state);
                self.tell_etcd(&mut status, &state);
                self.observer.look_at(&status);
                self.told.publish(status);
            }
            Report::Flows(told, now) => self.flows.take(flows::compose(&self.places, &self.plans, &told, now)),
            Report::Event(event) => self.on_event(event),
            Report::Hub(news) => self.on_hub(news),
            Report::Broken(remote) => {
                let commands = self.pathfinder.on_broken(remote);
                self.command(commands);
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Keys { peer, new, secrets } => {
                let name = self.name(peer).to_owned();
                if let Some(log) = &mut self.key_log {
                    log.write(KeyLogEntry { peer: name, new, secrets: *secrets });
                }
            }
            event => self.tell(&event),
        }
    }

    /// What is to be known of the core, and nothing else is to be done for.
    fn tell(&self, event: &Event) {
        let Some(peer) = event.peer() else { return };
        let link = |link: LinkId| self.plans.iter().find(|plan| plan.id == link).map_or("", |plan| plan.name.as_str());
        if let Some((kind, cause)) = tell::core_event(event, self.name(peer), link) {
            self.told.note(kind, self.name(peer), "", &cause);
        }
    }
}
