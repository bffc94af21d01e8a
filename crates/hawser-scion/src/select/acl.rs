//! Access lists of hops: `- 1-ff00:0:110#2`, `+ 1`, `-`.

use std::fmt;
use std::str::FromStr;

use super::error::{PolicyError, PolicyFault};
use super::hop::{Direction, HopPredicate};
use crate::path::Fingerprint;

/// Which interfaces a path may cross. All by default. Plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<AclEntry>,
}

/// A line of an access list. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AclEntry {
    /// Whether such interfaces may be crossed.
    pub allow: bool,
    /// Which.
    pub hop: HopPredicate,
}

/// Why lines are no access list. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AclError {
    /// What is not named must be allowed or denied.
    #[error("read the access list: it must end with + or -, for all that it does not name")]
    NoDefault,
    /// They would never be looked at.
    #[error("read the access list: entry {entry} is + or - for all, so none may follow")]
    Unreachable {
        /// Which one, from 1.
        entry: usize,
    },
}

impl Acl {
    /// A list of which the first line that fits an interface decides. No line at all allows everything.
    ///
    /// # Errors
    /// Its last line, and no other, must fit everything.
    pub fn new(entries: Vec<AclEntry>) -> Result<Acl, AclError> {
        match entries.iter().position(|entry| entry.hop.is_any()) {
            None if entries.is_empty() => Ok(Acl::default()),
            None => Err(AclError::NoDefault),
            Some(last) if last + 1 == entries.len() => Ok(Acl { entries }),
            Some(last) => Err(AclError::Unreachable { entry: last + 1 }),
        }
    }

    /// What is denied may not be crossed; and if anything is allowed, nothing else may.
    pub fn of_lists(allow: &[HopPredicate], deny: &[HopPredicate]) -> Acl {
        let rest = AclEntry { allow: allow.is_empty(), hop: HopPredicate::default() };
        let lines = |hops: &[HopPredicate], allow| -> Vec<AclEntry> {
            hops.iter().map(|&hop| AclEntry { allow, hop }).collect()
        };
        Acl { entries: [lines(deny, false), lines(allow, true), vec![rest]].concat() }
    }

    /// Whether a path may be used: every interface it crosses must be allowed, those at its ends too.
    pub fn allows(&self, path: &Fingerprint) -> bool {
        path.interfaces().iter().enumerate().all(|(index, &interface)| {
            let direction = if index % 2 == 0 { Direction::Out } else { Direction::In };
            let line = self.entries.iter().find(|entry| entry.hop.covers(interface, direction));
            line.is_none_or(|entry| entry.allow)
        })
    }
}

impl FromStr for AclEntry {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<AclEntry, PolicyError> {
        let sign = || PolicyError { text: text.to_owned(), column: 1, fault: PolicyFault::Sign };
        let (allow, rest) = match text.as_bytes().first() {
            Some(b'+') => (true, &text[1..]),
            Some(b'-') => (false, &text[1..]),
            _ => return Err(sign()),
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return Err(sign());
        }
        if rest.trim().is_empty() {
            return Ok(AclEntry { allow, hop: HopPredicate::default() });
        }
        let hop = rest.parse().map_err(|error: PolicyError| PolicyError {
            text: text.to_owned(),
            column: error.column + 1,
            fault: error.fault,
        })?;
        Ok(AclEntry { allow, hop })
    }
}

impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.allow { '+' } else { '-' };
        if self.hop.is_any() { write!(f, "{sign}") } else { write!(f, "{sign} {}", self.hop) }
    }
}
