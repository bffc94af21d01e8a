//! What is asked for by the control socket and by pages.

use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use hawser_config::{Config, Link};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Serving;
use crate::api::{Asked, Deed, EventKind};
use crate::keys::Keys;
use crate::run::Host;
use crate::run::messages::Reload;
use crate::web::{DEFAULT_ADDRESS, Web};

/// Doctor and speed test have so long: they wait for what does not answer.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);
/// Its last words that are told where it found nothing to print.
const WORDS_MAX: usize = 300;

/// What came of it.
type Outcome = Result<Option<Value>, String>;

impl Serving<'_> {
    /// Does what somebody asked for, and says how that went. What takes long goes on beside.
    pub(super) async fn carry_out(&mut self, asked: Asked, host: &mut impl Host<(Config, Keys)>) {
        let Asked { deed, answer } = asked;
        let outcome = match deed {
            Deed::Reload if self.read_again(host).await => Ok(None),
            Deed::Reload => Err("the configuration was not read again: its log says what is wrong".to_owned()),
            Deed::Login => self.log_in(),
            Deed::Pause { link } => self.pause(link, true),
            Deed::Resume { link } => self.pause(link, false),
            Deed::Tier { link, metric } => self.set_tier(link, metric).await,
            Deed::Speed(order) => self.begin_speed(order).await,
            Deed::SpeedOn => self.go_on_with_speed(),
            Deed::SpeedEnd => Ok(self.end_speed()),
            Deed::Drain { peer, undo } => self.drain(peer.as_deref(), !undo).map(|()| None),
            Deed::HubList | Deed::HubAdd { .. } | Deed::HubRevoke { .. } => return self.ask_etcd(deed, answer).await,
            Deed::Doctor => {
                let program = host.doctor();
                tokio::spawn(async move { answer.send(told_by("doctor", program).await) });
                return;
            }
            Deed::Measure { peer } => {
                let mut program = host.speed();
                if let Some(program) = &mut program {
                    program.args(["--peer", &peer, "--socket"]).arg(&self.config.portal.socket);
                }
                tokio::spawn(async move { answer.send(told_by("speed", program).await) });
                return;
            }
        };
        // Who asked may be gone.
        let _ = answer.send(outcome);
    }

    /// The page that the configuration asks for. Without it packets go on.
    pub(super) fn open_configured_page(&mut self) {
        if self.config.web.is_some()
            && let Err(error) = self.open_page()
        {
            tracing::error!(error, "no web page");
        }
    }

    fn open_page(&mut self) -> Result<&Web, String> {
        if self.web.is_none() {
            let address = self.config.web.unwrap_or(DEFAULT_ADDRESS);
            let (orders, flows) = self.heard.clone().ok_or("it is starting")?;
            let web = Web::open(address, Arc::clone(&self.told) as _, orders, flows).map_err(|error| {
                let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
                format!("{error}{cause}")
            })?;
            self.web = Some(web);
        }
        self.web.as_ref().ok_or_else(|| "there is none".to_owned())
    }

    fn log_in(&mut self) -> Outcome {
        self.open_page().map(|web| Some(json!({ "link": web.link() })))
    }

    fn pause(&mut self, link: String, pause: bool) -> Outcome {
        self.known(&link)?;
        let changed = if pause { self.paused.insert(link.clone()) } else { self.paused.remove(&link) };
        if changed {
            let kind = if pause { EventKind::Paused } else { EventKind::Resumed };
            tracing::info!(link, "{kind}");
            self.told.note(kind, "", &link, "");
            self.command([crate::run::messages::Command::Reload(self.terms())]);
        }
        Ok(None)
    }

    async fn set_tier(&mut self, link: String, metric: Option<u16>) -> Outcome {
        self.known(&link)?;
        match metric {
            Some(metric) => drop(self.tiers.insert(link.clone(), metric)),
            None => drop(self.tiers.remove(&link)),
        }
        let mut reload = Reload::default();
        self.plan_anew(&mut reload).await;
        self.pass_on(reload).await;
        let cause = metric.map_or_else(|| "as configured".to_owned(), |metric| format!("tier {metric}"));
        tracing::info!(link, cause, "{}", EventKind::TierSet);
        self.told.note(EventKind::TierSet, "", &link, &cause);
        Ok(None)
    }

    fn known(&self, link: &str) -> Result<(), String> {
        let is_known = self.links.iter().any(|known| known.name.as_str() == link);
        if is_known { Ok(()) } else { Err(format!("there is no link {link}")) }
    }

    /// What somebody set counts more than the configuration.
    pub(super) fn set_tiers(&self, links: &mut [Link]) {
        for link in links {
            if let Some(metric) = self.tiers.get(link.name.as_str()) {
                link.metric = *metric;
            }
        }
    }
}

/// What a program of its own found, with the power that this thread lends it.
async fn told_by(name: &str, program: Option<Command>) -> Outcome {
    let mut command = tokio::process::Command::from(program.ok_or(format!("there is no {name} here"))?);
    command.kill_on_drop(true).stdin(std::process::Stdio::null());
    let running = hawser_net::powers::lending(|| command.output());
    let output = timeout(PROGRAM_TIMEOUT, running).await.map_err(|_| format!("{name} does not come to an end"))?;
    let Output { stdout, stderr, .. } = output.map_err(|error| format!("run {name}: {error}"))?;
    serde_json::from_slice(&stdout).map(Some).map_err(|_| {
        let words = String::from_utf8_lossy(&stderr);
        format!("{name} found nothing to say: {}", &words[..words.floor_char_boundary(WORDS_MAX)])
    })
}
