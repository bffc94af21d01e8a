//! What can be asked on a control socket.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{HistoryQuestion, SpeedOrder};

/// A question. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Request {
    /// Asks for one of the documents.
    Get(Document),
    /// Asks for something to be done.
    Do(Deed),
}

/// What can be asked for. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "get", rename_all = "lowercase", deny_unknown_fields)]
pub enum Document {
    /// [`super::Status`], or that of a shim.
    Status,
    /// [`super::Events`].
    Events {
        /// Those with a larger number than this; without, all.
        #[serde(default)]
        since: u64,
    },
    /// [`super::History`].
    History(HistoryQuestion),
    /// [`super::Flows`].
    Flows,
}

/// What can be done. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Deed {
    /// The configuration is read again, as by SIGHUP.
    Reload,
    /// A link that logs a browser in, once; the page is opened for it where it is not yet.
    Login,
    /// A link carries no inner packets until it is resumed, or the portal starts again.
    Pause {
        /// Its name.
        link: String,
    },
    /// That ends.
    Resume {
        /// Its name.
        link: String,
    },
    /// A link has another tier until the portal starts again.
    Tier {
        /// Its name.
        link: String,
        /// The tier; none: that of the configuration.
        metric: Option<u16>,
    },
    /// A member of a hub asks its peers to go to their other one, and serves them meanwhile.
    Drain {
        /// The name of one peer; none: all of them, and those to come.
        peer: Option<String>,
        /// They are asked no longer.
        #[serde(default)]
        undo: bool,
    },
    /// [`super::HubList`]: members and peers as etcd has them.
    #[serde(rename = "hub-list")]
    HubList,
    /// All members serve this peer from now on.
    #[serde(rename = "hub-add")]
    HubAdd {
        /// Its name.
        name: String,
        /// Its public key.
        public_key: String,
        /// The networks behind it.
        allowed_ips: Vec<ipnet::IpNet>,
    },
    /// No member serves this peer any more.
    #[serde(rename = "hub-revoke")]
    HubRevoke {
        /// Its name; where that is taken back, or its public key.
        name: String,
        /// Its public key; none: that of the peer of this name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        public_key: Option<String>,
        /// That is taken back.
        #[serde(default)]
        undo: bool,
    },
    /// Findings of `hawser doctor`.
    Doctor,
    /// What the links to a peer carry, both ways: the findings of `hawser speed`.
    Measure {
        /// Its name.
        peer: String,
    },
    /// A run of a speed test begins; it ends unless [`Deed::SpeedOn`] says each second that somebody waits for it.
    Speed(SpeedOrder),
    /// Somebody waits for the speed test.
    #[serde(rename = "speed-on")]
    SpeedOn,
    /// The speed test ends.
    #[serde(rename = "speed-end")]
    SpeedEnd,
}

impl Deed {
    /// Its word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Login => "login",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Tier { .. } => "tier",
            Self::Drain { .. } => "drain",
            Self::HubList => "hub-list",
            Self::HubAdd { .. } => "hub-add",
            Self::HubRevoke { .. } => "hub-revoke",
            Self::Doctor => "doctor",
            Self::Measure { .. } => "measure",
            Self::Speed(_) => "speed",
            Self::SpeedOn => "speed-on",
            Self::SpeedEnd => "speed-end",
        }
    }

    /// Whether a page may ask for it.
    pub fn is_for_pages(&self) -> bool {
        match self {
            Self::Pause { .. } | Self::Resume { .. } | Self::Tier { .. } | Self::Doctor | Self::Measure { .. } => true,
            Self::Reload | Self::Login | Self::Drain { .. } => false,
            Self::HubList | Self::HubAdd { .. } | Self::HubRevoke { .. } => false,
            Self::Speed(_) | Self::SpeedOn | Self::SpeedEnd => false,
        }
    }
}

impl Request {
    /// Reads a question, so that what is wrong with it is told.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_slice(line)?;
        if value.get("do").is_some() {
            Deed::deserialize(value).map(Self::Do)
        } else {
            Document::deserialize(value).map(Self::Get)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Span;

    #[test]
    fn a_question_reads_as_it_is_written() {
        let dsl = HistoryQuestion { span: Span::Day, path: Some("dsl".into()), last: Some(60), ..Default::default() };
        for (text, request) in [
            (r#"{"get":"status"}"#, Request::Get(Document::Status)),
            (r#"{"get":"events","since":7}"#, Request::Get(Document::Events { since: 7 })),
            (r#"{"get":"history","span":"day","path":"dsl","last":60}"#, Request::Get(Document::History(dsl))),
            (r#"{"do":"reload"}"#, Request::Do(Deed::Reload)),
            (
                r#"{"do":"tier","link":"lte","metric":9}"#,
                Request::Do(Deed::Tier { link: "lte".into(), metric: Some(9) }),
            ),
            (
                r#"{"do":"drain","peer":"home","undo":true}"#,
                Request::Do(Deed::Drain { peer: Some("home".into()), undo: true }),
            ),
        ] {
            assert_eq!(Request::parse(text.as_bytes()).expect(text), request);
            assert_eq!(serde_json::to_string(&request).expect("plain data"), text);
        }
        let short = Request::parse(br#"{"get":"events"}"#).expect("all events");
        assert_eq!(short, Request::Get(Document::Events { since: 0 }));
    }

    #[test]
    fn what_is_no_question_is_refused_by_name() {
        for (text, why) in [
            (r#"{"get":"keys"}"#, "unknown variant `keys`"),
            (r#"{"get":"events","sinse":7}"#, "unknown field `sinse`"),
            (r#"{"get":"history","span":"year"}"#, "unknown variant `year`"),
            (r#"{"do":"stop"}"#, "unknown variant `stop`"),
            (r#"{"set":1}"#, "missing field `get`"),
            ("nonsense", "expected"),
        ] {
            let error = Request::parse(text.as_bytes()).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
