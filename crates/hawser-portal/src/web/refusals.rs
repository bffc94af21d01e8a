//! What was refused, counted by reason: the page and the status show it.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// Why a request or a connection was refused. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its host is another name.
    Host,
    /// Another site's page asks.
    Origin,
    /// It is no GET and no POST.
    Method,
    /// A token that is none, or none any more.
    Login,
    /// Enough wrong logins wait: no further one is looked at.
    LoginRate,
    /// No session, or one that is over.
    Session,
    /// The second secret is missing or wrong.
    Csrf,
    /// There is nothing by that name.
    Path,
    /// The body is too long, too slow, or not what was expected.
    Body,
    /// There are as many event streams as there may be.
    Streams,
    /// As many connections of strangers as there may be: the oldest was closed.
    Connections,
    /// The head of a request did not come in time.
    Slow,
}

impl Refused {
    /// All of them, in their order.
    pub const ALL: [Self; 12] = [
        Self::Host,
        Self::Origin,
        Self::Method,
        Self::Login,
        Self::LoginRate,
        Self::Session,
        Self::Csrf,
        Self::Path,
        Self::Body,
        Self::Streams,
        Self::Connections,
        Self::Slow,
    ];

    /// The word that the status counts it under, and the answer's status with a reason in words.
    pub fn told(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::Host => ("host", StatusCode::MISDIRECTED_REQUEST, "ask by address or localhost"),
            Self::Origin => ("origin", StatusCode::FORBIDDEN, "another site's page may not ask"),
            Self::Method => ("method", StatusCode::METHOD_NOT_ALLOWED, "GET or POST"),
            Self::Login => ("login", StatusCode::UNAUTHORIZED, "no such token: run hawser web for a new link"),
            Self::LoginRate => {
                ("login_rate", StatusCode::TOO_MANY_REQUESTS, "too many wrong logins: try again in a second")
            }
            Self::Session => ("session", StatusCode::UNAUTHORIZED, "not logged in: run hawser web for a link"),
            Self::Csrf => ("csrf", StatusCode::FORBIDDEN, "log in again to change anything: run hawser web"),
            Self::Path => ("path", StatusCode::NOT_FOUND, "there is nothing here"),
            Self::Body => ("body", StatusCode::PAYLOAD_TOO_LARGE, "the request is not understood"),
            Self::Streams => ("streams", StatusCode::SERVICE_UNAVAILABLE, "too many open pages"),
            Self::Connections => ("connections", StatusCode::SERVICE_UNAVAILABLE, "too many connections"),
            Self::Slow => ("slow", StatusCode::REQUEST_TIMEOUT, "too slow"),
        }
    }
}

/// How often each was refused. Never at first; shared by all that count.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; Refused::ALL.len()]);

impl Refusals {
    /// Counts one.
    pub fn count(&self, refused: Refused) {
        self.0[refused as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Each that was counted, by its word.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counted =
            Refused::ALL.iter().map(|refused| (refused.told().0, self.0[*refused as usize].load(Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_under_its_own_word() {
        let refusals = Refusals::default();
        Refused::ALL.iter().for_each(|refused| refusals.count(*refused));
        refusals.count(Refused::Login);
        let counted: std::collections::BTreeMap<_, _> = refusals.iter().collect();
        assert_eq!((counted.len(), counted["login"], counted["host"]), (Refused::ALL.len(), 2, 1));
    }
}
