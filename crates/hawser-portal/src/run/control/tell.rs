//! What the log, and the memory of events, are told of what happens outside of paths.

use hawser_core::endpoint::Event;
use hawser_core::units::LinkId;

use super::status;
use super::told::Told;
use crate::api::EventKind;

/// Bytes in a MB and a GB, as data caps are counted.
const MEGA: f64 = 1e6;
const GIGA: f64 = 1e9;

/// Tells the log; what is to be remembered, and why it happened.
pub fn core_event<'a>(event: &Event, peer: &str, link: impl Fn(LinkId) -> &'a str) -> Option<(EventKind, String)> {
    match event {
        Event::Session { new: true, .. } => {
            tracing::info!(peer, "session");
            Some((EventKind::Session, String::new()))
        }
        Event::Session { new: false, .. } => {
            tracing::debug!(peer, "new keys");
            Some((EventKind::Rekey, String::new()))
        }
        Event::OtherVersion { theirs, ours, .. } => {
            tracing::warn!(peer, %theirs, %ours, "peer of another protocol version");
            None
        }
        Event::TrainsLost { link: id, remote, .. } => {
            tracing::warn!(
                peer,
                link = link(*id),
                %remote,
                "path without udp gso from now on: trains do not arrive and single datagrams do; a NAT on this host \
                 that changes ports spoils them"
            );
            None
        }
        Event::Refused { refusal, .. } => {
            let cause = status::refusal(*refusal);
            tracing::warn!(peer, cause, "peer answers, and no session");
            Some((EventKind::Refused, cause.to_owned()))
        }
        Event::Closed { .. } => {
            tracing::info!(peer, "session closed by peer");
            Some((EventKind::SessionEnded, "the peer closed it".to_owned()))
        }
        Event::Silent { .. } => {
            tracing::info!(peer, "session over: peer silent");
            Some((EventKind::SessionEnded, "the peer is silent".to_owned()))
        }
        Event::KeysOver { end, .. } => {
            tracing::warn!(peer, cause = %end, "no new keys: traffic stops until a handshake succeeds");
            Some((EventKind::SessionEnded, format!("no new keys: {end}")))
        }
        Event::PeerMtu { .. }
        | Event::Enrolment { .. }
        | Event::Keys { .. }
        | Event::HubSaid { .. }
        | Event::Holds { .. } => None,
    }
}

/// What a link with a cap has carried.
pub fn cap(used_bytes: u64) -> String {
    match used_bytes as f64 {
        bytes if bytes < GIGA => format!("{:.1} MB this month", bytes / MEGA),
        bytes => format!("{:.2} GB this month", bytes / GIGA),
    }
}

/// Which sections of the configuration were changed, and which wait for a restart.
pub fn reload(told: &Told, done: &[&'static str], left: &[&'static str]) {
    let (rules, others): (Vec<&str>, Vec<&str>) = done.iter().copied().partition(|section| *section == "rule");
    if !rules.is_empty() {
        told.note(EventKind::RulesChanged, "", "", "");
    }
    if !others.is_empty() {
        told.note(EventKind::ConfigurationChanged, "", "", &others.join(", "));
    }
    let (changed, sections) = (done.join(", "), left.join(", "));
    match (changed.as_str(), sections.as_str()) {
        ("", "") => tracing::info!("configuration read again: nothing has changed"),
        (_, "") => tracing::info!(sections = changed, "configuration read again: changed"),
        ("", _) => tracing::warn!(sections, "configuration read again: the changes need a restart"),
        _ => tracing::warn!(changed, sections, "configuration read again: some changes need a restart"),
    }
}
