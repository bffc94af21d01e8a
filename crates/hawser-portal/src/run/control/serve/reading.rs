//! The configuration is read anew, and what changed in it is done.
//!
//! 1. [`Serving::read_again`] reads it; [`Serving::enrol`] where a peer came by a token.
//! 2. What can change does; sockets, paths, routes and rules follow.

use std::collections::BTreeMap;
use std::time::Instant;

use hawser_config::{Config, PeerName, PresharedKey};
use hawser_core::handshake::PublicKey;
use hawser_core::handshake::enrolment::InvitationId;

use super::super::{reload, sockets, tell};
use super::Serving;
use crate::keys::Keys;
use crate::run::messages::{Command, Reload};
use crate::run::{Host, kill_switch, plan, terms};

impl Serving<'_> {
    /// The configuration is read again; whether it could be.
    pub(super) async fn read_again(&mut self, host: &mut impl Host<(Config, Keys)>) -> bool {
        let is_read = self.take_in(host).await;
        self.command([Command::Invitations(self.enrolments.core())]);
        is_read
    }

    /// The same; the packet thread is not told yet who may enrol.
    async fn take_in(&mut self, host: &mut impl Host<(Config, Keys)>) -> bool {
        let read = host.reload();
        let is_read = read.is_some();
        if let Some((config, Keys { preshared, invitations, .. })) = read {
            let (config, preshared) = self.rebase(config, preshared);
            self.reload(&config, &preshared).await;
            self.keep(preshared);
            self.enrolments.follow(invitations);
        }
        host.ready(&self.summary());
        is_read
    }

    /// The holder of a token has shown its key: it becomes a peer, and is answered from then on.
    pub(super) async fn enrol(&mut self, id: InvitationId, key: PublicKey, host: &mut impl Host<(Config, Keys)>) {
        let Some((invitation, public)) = self.enrolments.promised(id, key, &self.config) else { return };
        if self.enrols_in_etcd(id, key, &invitation, public) {
            return;
        }
        if self.enrolments.admit(id, key, &invitation, &public) {
            self.take_in(host).await;
            // A configuration that was read may still wait for a restart with its peers.
            let is_peer = self.config.peers.iter().any(|peer| peer.public_key == public);
            self.enrolments.settle(id, is_peer);
            // Answered as bound once the peer is known, and only if it is one: that order is the channel's.
            self.command([Command::Invitations(self.enrolments.core())]);
        }
    }

    pub(super) fn expire_enrolments(&mut self) {
        if self.enrolments.expire() {
            self.command([Command::Invitations(self.enrolments.core())]);
        }
    }

    /// Which sockets there should be now.
    pub(super) async fn plan_anew(&mut self, reload: &mut Reload) {
        let rtnl = self.system.rtnl();
        let named = Config { peers: self.peers.clone(), ..self.config.clone() };
        let mut expanded = self.taken.expand(&named, &rtnl, &self.interfaces).await;
        self.set_tiers(&mut expanded.links);
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

    pub(super) async fn pass_on(&mut self, reload: Reload) {
        if reload.is_empty() {
            return;
        }
        self.system.welcome(&reload.links_added, &self.interfaces).await;
        self.command([Command::Reload(reload)]);
    }

    /// What can change does; the log says what waits for a restart.
    async fn reload(&mut self, new: &Config, preshared: &BTreeMap<PeerName, PresharedKey>) {
        let old = self.carry_over(new, preshared).await;
        // Others flush nftables when their own rules are read anew: ours come back with a reload, though nothing changed.
        if let Err(error) = kill_switch::follow(&self.config).await {
            tracing::warn!(%error, "way past the tunnel not closed anew");
        }
        self.system.reconfigure(&self.config).await;
        self.learner.follow(&self.config);
        let done = reload::changed_sections(&old, &self.config);
        tell::reload(&self.told, &done, &reload::changed_sections(&self.config, new));
    }

    /// What can change does; gives what was in force.
    pub(in crate::run::control) async fn carry_over(
        &mut self,
        new: &Config,
        preshared: &BTreeMap<PeerName, PresharedKey>,
    ) -> Config {
        let effective = reload::effective(&self.config, new, &self.powers, &self.marks);
        let old = std::mem::replace(&mut self.config, effective);
        self.names.follow(&self.config.peers, Instant::now());
        self.peers = self.names.fill(&self.config.peers);
        let gone = self.places.gone(&self.peers);
        let mut reload = self.places.follow(&self.peers, preshared);
        self.system.forget(&gone);
        if (&old.traffic, &old.rules) != (&self.config.traffic, &self.config.rules) {
            reload.rules = Some(terms::rules(&self.config));
        }
        self.plan_anew(&mut reload).await;
        if !reload.is_empty() || (&old.forwards, &old.tun) != (&self.config.forwards, &self.config.tun) {
            self.pass_on(reload).await;
            self.find_paths();
            self.system.reconfigure(&self.config).await;
            self.learner.follow(&self.config);
            self.answer_by_links().await;
            let rtnl = self.system.rtnl();
            self.routes.ask(&rtnl, &self.plans, &self.interfaces).await;
        }
        self.hear_of_claims_anew(&gone);
        old
    }
}
