//! Who may look: one-time tokens, and the sessions that they begin.
//!
//! 1. Whoever may use the control socket is given a token ([`Access::issue`]): a name and a secret, for five minutes.
//! 2. A browser shows it once ([`Access::log_in`]) and has a session for it: a cookie, and a second secret for what is
//!    to be done.
//! 3. Each request names its session ([`Access::may_look`]); what is to be done takes the second secret
//!    ([`Access::may_act`]), which only the login gives: a cookie is sent to every port of a host.
//!
//! A token dies with its fifth wrong secret. Who does not know a token's name cannot touch it: however many are
//! guessed, nobody else is kept out. Time and randomness are arguments.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use subtle::ConstantTimeEq as _;

/// A token may be used for so long.
pub const TOKEN_FOR: Duration = Duration::from_secs(300);
/// A session that asks for nothing for so long is over.
const SESSION_FOR: Duration = Duration::from_secs(12 * 3_600);
/// Tokens and sessions at a time; the oldest goes.
const TOKENS_MAX: usize = 8;
const SESSIONS_MAX: usize = 32;
/// Wrong secrets that a token bears.
const WRONG_MAX: u8 = 5;
/// Bytes of a token's name, and of each secret.
const NAME_BYTES: usize = 9;
const SECRET_BYTES: usize = 24;

/// A secret, and what it is written as. Compared in constant time.
#[derive(Clone, Debug)]
struct Secret([u8; SECRET_BYTES]);

impl Secret {
    fn is(&self, text: &str) -> bool {
        let read = BASE64.decode(text).unwrap_or_default();
        bool::from(self.0.as_slice().ct_eq(&read))
    }

    fn text(&self) -> String {
        BASE64.encode(self.0)
    }
}

/// A token that was issued. Owned by its access.
#[derive(Debug)]
struct Token {
    name: String,
    secret: Secret,
    ends: Duration,
    wrong: u8,
}

/// A browser that may look. Owned by its access.
#[derive(Debug)]
struct Session {
    cookie: Secret,
    csrf: Secret,
    ends: Duration,
}

/// What a browser is given. Plain data, secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The cookie's value.
    pub cookie: String,
    /// What each request for something to be done repeats.
    pub csrf: String,
}

/// All that may look. Nobody at first; the web thread owns it.
#[derive(Debug, Default)]
pub struct Access {
    tokens: VecDeque<Token>,
    sessions: VecDeque<Session>,
}

impl Access {
    /// Step 1: a new token, as text.
    pub fn issue(&mut self, now: Duration, fill: &mut impl FnMut(&mut [u8])) -> String {
        self.tokens.retain(|token| token.ends > now);
        if self.tokens.len() == TOKENS_MAX {
            self.tokens.pop_front();
        }
        let mut name = [0; NAME_BYTES];
        fill(&mut name);
        let (name, secret) = (BASE64.encode(name), secret(fill));
        let text = format!("{name}.{}", secret.text());
        self.tokens.push_back(Token { name, secret, ends: now + TOKEN_FOR, wrong: 0 });
        text
    }

    /// Step 2: a session for a token, which is gone then; none for anything else.
    pub fn log_in(&mut self, now: Duration, text: &str, fill: &mut impl FnMut(&mut [u8])) -> Option<LoggedIn> {
        let (name, shown) = text.split_once('.')?;
        self.tokens.retain(|token| token.ends > now);
        let at = self.tokens.iter().position(|token| token.name == name)?;
        if !self.tokens[at].secret.is(shown) {
            self.tokens[at].wrong += 1;
            self.tokens.retain(|token| token.wrong < WRONG_MAX);
            return None;
        }
        self.tokens.remove(at);
        if self.sessions.len() == SESSIONS_MAX {
            self.sessions.pop_front();
        }
        let session = Session { cookie: secret(fill), csrf: secret(fill), ends: now + SESSION_FOR };
        let given = LoggedIn { cookie: session.cookie.text(), csrf: session.csrf.text() };
        self.sessions.push_back(session);
        Some(given)
    }

    /// Step 3: whether a cookie has a session, which goes on by it.
    pub fn may_look(&mut self, now: Duration, cookie: &str) -> bool {
        self.sessions.retain(|session| session.ends > now);
        let session = self.sessions.iter_mut().find(|session| session.cookie.is(cookie));
        session.map(|session| session.ends = now + SESSION_FOR).is_some()
    }

    /// Whether this is the second secret of a cookie's session.
    pub fn may_act(&self, cookie: &str, csrf: &str) -> bool {
        self.sessions.iter().any(|session| session.cookie.is(cookie) && session.csrf.is(csrf))
    }
}

fn secret(fill: &mut impl FnMut(&mut [u8])) -> Secret {
    let mut secret = [0; SECRET_BYTES];
    fill(&mut secret);
    Secret(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that are never the same.
    fn counting() -> impl FnMut(&mut [u8]) {
        let mut next = 0_u64;
        move |out| {
            next += 1;
            out.iter_mut().zip(next.to_le_bytes().iter().cycle()).for_each(|(to, from)| *to = *from);
        }
    }

    const NOW: Duration = Duration::from_secs(1_000);

    #[test]
    fn a_token_begins_one_session_and_only_in_time() {
        let (mut access, mut fill) = (Access::default(), counting());
        let token = access.issue(NOW, &mut fill);
        let late = access.issue(NOW, &mut fill);
        let given = access.log_in(NOW, &token, &mut fill).expect("it is right");
        assert_eq!(access.log_in(NOW, &token, &mut fill), None, "once");
        assert_eq!(access.log_in(NOW + TOKEN_FOR, &late, &mut fill), None, "in time");
        assert!(access.may_look(NOW, &given.cookie));
        assert!(access.may_act(&given.cookie, &given.csrf) && !access.may_act(&given.cookie, &given.cookie));
    }

    #[test]
    fn a_session_ends_when_nobody_asks_for_half_a_day() {
        let (mut access, mut fill) = (Access::default(), counting());
        let token = access.issue(NOW, &mut fill);
        let cookie = access.log_in(NOW, &token, &mut fill).expect("it is right").cookie;
        let later = NOW + SESSION_FOR - Duration::from_secs(1);
        assert!(access.may_look(later, &cookie));
        assert!(access.may_look(later + SESSION_FOR - Duration::from_secs(1), &cookie), "it goes on");
        assert!(!access.may_look(later + 3 * SESSION_FOR, &cookie));
    }

    #[test]
    fn what_is_wrong_is_refused_and_a_guessed_token_dies() {
        let (mut access, mut fill) = (Access::default(), counting());
        let (token, other) = (access.issue(NOW, &mut fill), access.issue(NOW, &mut fill));
        let name = token.split_once('.').expect("a name and a secret").0;
        for wrong in ["", ".", "a", "x.y", &format!("{name}."), &token.to_lowercase()] {
            assert_eq!(access.log_in(NOW, wrong, &mut fill), None, "{wrong}");
        }
        for _ in 0..WRONG_MAX {
            assert_eq!(access.log_in(NOW, &format!("{name}.AAAA"), &mut fill), None);
        }
        assert_eq!(access.log_in(NOW, &token, &mut fill), None, "it is dead");
        for guess in 0..10_000 {
            assert_eq!(access.log_in(NOW, &format!("{guess}.AAAA"), &mut fill), None);
        }
        assert!(access.log_in(NOW, &other, &mut fill).is_some(), "nobody else is kept out");
        assert!(!access.may_look(NOW, ""));
    }

    #[test]
    fn tokens_and_sessions_are_a_bounded_number() {
        let (mut access, mut fill) = (Access::default(), counting());
        let mut cookies = Vec::new();
        for _ in 0..100 {
            (0..3).for_each(|_| drop(access.issue(NOW, &mut fill)));
            let token = access.issue(NOW, &mut fill);
            cookies.push(access.log_in(NOW, &token, &mut fill).expect("the newest is there").cookie);
        }
        assert!(access.tokens.len() <= TOKENS_MAX && access.sessions.len() <= SESSIONS_MAX);
        assert!(!access.may_look(NOW, &cookies[0]) && access.may_look(NOW, &cookies[99]));
    }
}
