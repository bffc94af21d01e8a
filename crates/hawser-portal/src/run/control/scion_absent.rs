//! In the place of `scion/` where this program was built without SCION: no path is looked for.

use std::net::SocketAddr;

use hawser_config::Config;
use hawser_core::endpoint::Snapshot;

use super::reload::Places;
use crate::api::ScionStatus;
use crate::run::messages::Command;
use crate::run::plan::SocketPlan;

/// Finds none. Plain data.
#[derive(Debug)]
pub struct Pathfinder;

/// What is never heard.
#[derive(Debug)]
pub enum Heard {}

impl Pathfinder {
    pub fn new() -> Self {
        Self
    }

    pub fn follow(&mut self, _: &Config, _: &[SocketPlan], _: &Places) -> Vec<Command> {
        Vec::new()
    }

    pub async fn next(&mut self) -> Heard {
        std::future::pending().await
    }

    pub fn take(&mut self, heard: Heard) -> Vec<Command> {
        match heard {}
    }

    pub fn on_broken(&mut self, _: SocketAddr) -> Vec<Command> {
        Vec::new()
    }

    pub fn look_at(&mut self, _: &Snapshot) -> Vec<Command> {
        Vec::new()
    }

    pub fn describe(&self, _: &SocketAddr) -> Option<ScionStatus> {
        None
    }
}
