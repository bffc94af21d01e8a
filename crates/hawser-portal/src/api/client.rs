//! Asks a running portal.

use std::path::Path;

use hawser_net::daemon::{ClientError, Program, ask};
use serde::de::DeserializeOwned;

use super::request::Request;
use super::{Deed, Document, Done, Events, Flows, History, HistoryQuestion, Status};

/// Asks portals; has no state.
#[derive(Clone, Copy, Debug)]
pub struct Client;

impl Client {
    /// The status of the portal whose control socket is `path`. Blocks for at most some seconds.
    ///
    /// # Errors
    /// [`ClientError`] where nobody listens, this user may not ask, or the answer is no status.
    pub fn status(path: &Path) -> Result<Status, ClientError> {
        Self::ask(path, Request::Get(Document::Status))
    }

    /// The largest flows of the last second. Where nobody asked lately, the portal begins to count them, which takes a
    /// second.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn flows(path: &Path) -> Result<Flows, ClientError> {
        Self::ask(path, Request::Get(Document::Flows))
    }

    /// Has the portal read its configuration again. Blocks for at most some seconds.
    ///
    /// # Errors
    /// As [`Client::status`]; [`ClientError::Refused`] where the configuration has faults: the old one stays in force.
    pub fn reload(path: &Path) -> Result<(), ClientError> {
        Self::order(path, Deed::Reload).map(|_| ())
    }

    /// Has the portal do something; what came of it, where it is more than that it was done.
    ///
    /// # Errors
    /// As [`Client::reload`].
    pub fn order(path: &Path, deed: Deed) -> Result<Option<serde_json::Value>, ClientError> {
        Self::ask(path, Request::Do(deed)).map(|Done { result, .. }| result)
    }

    /// The events with a larger number than `since`.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn events(path: &Path, since: u64) -> Result<Events, ClientError> {
        Self::ask(path, Request::Get(Document::Events { since }))
    }

    /// What paths did.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn history(path: &Path, question: HistoryQuestion) -> Result<History, ClientError> {
        Self::ask(path, Request::Get(Document::History(question)))
    }

    fn ask<S: DeserializeOwned>(path: &Path, request: Request) -> Result<S, ClientError> {
        ask(Program::Portal, path, &request)
    }
}
