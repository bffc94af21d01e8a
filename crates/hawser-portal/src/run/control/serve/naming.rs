//! Endpoints that are names: when they are asked for, and what follows when they have other addresses.

use std::collections::BTreeSet;
use std::time::Instant;

use hawser_core::units::PeerId;

use super::super::name_servers;
use super::super::names::Ways;
use super::Serving;
use crate::run::messages::State;
use crate::run::own;

impl Serving<'_> {
    /// Names that are due are asked for, by each link.
    pub(super) fn ask_names(&mut self) {
        let (plans, mark) = (&self.plans, own::mark(self.config.tun.name.as_str()));
        let ways = || {
            let interfaces: BTreeSet<String> = plans.iter().filter_map(|plan| plan.interface.clone()).collect();
            let named = self.config.links.iter().filter_map(|link| link.interface.as_ref().filter(|_| !link.is_any()));
            let interfaces = interfaces.into_iter().chain(named.map(ToString::to_string)).collect::<BTreeSet<_>>();
            Ways {
                mark: Some(mark.0),
                interfaces: interfaces.into_iter().collect(),
                inner: name_servers::inner(&self.config),
                system: self.config.tun.dns.servers.is_empty(),
            }
        };
        self.names.ask_due(Instant::now(), ways);
    }

    /// Which names' peers answer.
    pub(super) async fn look_at_names(&mut self, state: &State) {
        let mut changed = false;
        for peer in self.config.peers.iter().filter(|peer| !peer.names.is_empty()) {
            let session = self.places.of(peer).and_then(|PeerId(id)| state.core.peers.get(id as usize)?.as_ref());
            changed |= self.names.look_at(peer, session);
        }
        if changed {
            self.readdress().await;
        }
    }

    /// Names have other addresses.
    pub(super) async fn readdress(&mut self) {
        self.peers = self.names.fill(&self.config.peers);
        let mut reload = self.places.readdress(&self.peers);
        self.plan_anew(&mut reload).await;
        self.pass_on(reload).await;
        self.answer_by_links().await;
        let rtnl = self.system.rtnl();
        self.routes.ask(&rtnl, &self.plans, &self.interfaces).await;
    }
}
