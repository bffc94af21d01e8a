//! In the place of `etcd` where this program was built without it: no configuration asks for it, so nothing of it
//! exists.

use std::collections::BTreeMap;
use std::future::pending;

use hawser_config::{Config, PeerName, PresharedKey, PublicKey};
use hawser_core::handshake::PublicKey as CoreKey;
use hawser_core::handshake::enrolment::InvitationId;
use hawser_hub::units::Epoch;
use tokio::sync::oneshot;

use super::serve::Serving;
use crate::api::{Deed, Status};
use crate::keys::Keys;
use crate::pairing::Invitation;
use crate::run::messages::State;

/// There is none. Plain data.
pub enum Seed {}

/// There is none. Plain data.
pub enum Store {}

/// There is none. Plain data.
pub enum Heard {}

impl Seed {
    pub fn of(_: &Config, _: &Keys) -> Option<Self> {
        None
    }

    pub fn join(&self) -> Config {
        match *self {}
    }

    pub fn start(self, _: BTreeMap<PeerName, PresharedKey>) -> Store {
        match self {}
    }
}

/// There is none. Plain data.
pub enum Leaving {}

impl Store {
    pub fn leaving(&mut self) -> Option<Leaving> {
        match *self {}
    }
}

impl Leaving {
    pub async fn wait(self) {
        match self {}
    }
}

/// Never.
pub async fn next(_: &mut Option<Store>) -> Heard {
    pending().await
}

impl Serving<'_> {
    pub(in crate::run::control) fn rebase(
        &mut self,
        file: Config,
        preshared: BTreeMap<PeerName, PresharedKey>,
    ) -> (Config, BTreeMap<PeerName, PresharedKey>) {
        (file, preshared)
    }

    pub(in crate::run::control) fn keep(&mut self, _: BTreeMap<PeerName, PresharedKey>) {}

    pub(in crate::run::control) async fn on_etcd(&mut self, heard: Heard) {
        match heard {}
    }

    pub(in crate::run::control) fn enrols_in_etcd(
        &mut self,
        _: InvitationId,
        _: CoreKey,
        _: &Invitation,
        _: PublicKey,
    ) -> bool {
        false
    }

    pub(in crate::run::control) async fn check_etcd(&mut self) {}

    pub(in crate::run::control) fn hear_of_claims_anew(&mut self, _: &[PublicKey]) {}

    pub(in crate::run::control) fn note_owned(&mut self, _: Vec<(PublicKey, Epoch)>) {}

    pub(in crate::run::control) fn tell_etcd(&mut self, _: &mut Status, _: &State) {}

    pub(in crate::run::control) async fn ask_etcd(
        &mut self,
        _: Deed,
        answer: oneshot::Sender<Result<Option<serde_json::Value>, String>>,
    ) {
        let _ = answer.send(Err("this program was built without etcd".to_owned()));
    }
}
