//! What happened, as the control socket tells it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happened. Plain value; its words are a contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The portal started; the cause says whether it had been killed before.
    PortalStarted,
    /// A path carries packets for the first time.
    LinkUp,
    /// A path lacks its interface, address or route, or was closed.
    LinkDown,
    /// Nothing comes back by a path any more.
    Cut,
    /// A path that was cut or down carries packets again.
    Comeback,
    /// A path loses or delays more than it used to.
    Degraded,
    /// It does so no more.
    Recovered,
    /// A path carries less than half of what it did, and packets wait for it.
    Fade,
    /// It does so no more, or has for so long that this is usual now.
    FadeOver,
    /// A path leads to or from another address.
    Roaming,
    /// A session with a peer began.
    Session,
    /// A session goes on under new keys.
    Rekey,
    /// A session ended: the peer closed it, was silent, or its keys are over.
    SessionEnded,
    /// A peer answers, and there is no session with it.
    Refused,
    /// A link has carried all that it may this month.
    CapReached,
    /// Its month is over, or its cap was raised.
    CapLifted,
    /// The rules of flows changed.
    RulesChanged,
    /// Another part of the configuration changed.
    ConfigurationChanged,
    /// Somebody paused a link.
    Paused,
    /// Somebody ended that.
    Resumed,
    /// Somebody gave a link another tier.
    TierSet,
    /// Another member of a hub owns a peer: this portal itself, or one that it serves.
    OwnerChanged,
    /// A member of a hub does not reach etcd any more; the cause says why, and how long it had.
    EtcdAway,
    /// It reaches etcd; the cause says after how long.
    EtcdReached,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::PortalStarted,
        Self::LinkUp,
        Self::LinkDown,
        Self::Cut,
        Self::Comeback,
        Self::Degraded,
        Self::Recovered,
        Self::Fade,
        Self::FadeOver,
        Self::Roaming,
        Self::Session,
        Self::Rekey,
        Self::SessionEnded,
        Self::Refused,
        Self::CapReached,
        Self::CapLifted,
        Self::RulesChanged,
        Self::ConfigurationChanged,
        Self::Paused,
        Self::Resumed,
        Self::TierSet,
        Self::OwnerChanged,
        Self::EtcdAway,
        Self::EtcdReached,
    ];

    /// In words, as the log has them.
    pub fn words(self) -> &'static str {
        match self {
            Self::PortalStarted => "portal started",
            Self::LinkUp => "link up",
            Self::LinkDown => "link down",
            Self::Cut => "link cut",
            Self::Comeback => "link back",
            Self::Degraded => "link degraded",
            Self::Recovered => "link recovered",
            Self::Fade => "link fading",
            Self::FadeOver => "link fade over",
            Self::Roaming => "roaming",
            Self::Session => "session",
            Self::Rekey => "new keys",
            Self::SessionEnded => "session ended",
            Self::Refused => "session refused",
            Self::CapReached => "data cap reached",
            Self::CapLifted => "data cap lifted",
            Self::RulesChanged => "rules changed",
            Self::ConfigurationChanged => "configuration changed",
            Self::Paused => "link paused",
            Self::Resumed => "link resumed",
            Self::TierSet => "tier set",
            Self::OwnerChanged => "owner changed",
            Self::EtcdAway => "etcd away",
            Self::EtcdReached => "etcd reached",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// Something that happened. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number: events of one portal are counted from one, and the newest has the largest.
    pub seq: u64,
    /// When it happened last, in milliseconds since 1970 (UTC).
    pub time_unix_ms: u64,
    /// What.
    pub kind: EventKind,
    /// Of which peer; empty where it is the whole portal.
    pub peer: String,
    /// Of which path or link; empty where it is all of them.
    pub path: String,
    /// Why, in a few words; empty where the kind says all.
    pub cause: String,
    /// How often it happened with nothing else of this peer and path in between.
    pub count: u32,
}

/// The newest events, oldest first. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// When this portal started, in milliseconds since 1970: numbers begin anew with another start.
    pub started_unix_ms: u64,
    /// The largest number there is.
    pub latest: u64,
    /// Those that were asked for and are still remembered.
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_word_for_scripts_and_words_for_people_of_its_own() {
        let words: std::collections::BTreeSet<_> = EventKind::ALL.iter().map(|kind| kind.words()).collect();
        let names = EventKind::ALL.map(|kind| serde_json::to_string(&kind).expect("plain data"));
        assert_eq!((words.len(), names.iter().collect::<std::collections::BTreeSet<_>>().len()), (24, 24));
        assert_eq!(names[5], "\"degraded\"");
    }
}
