//! The members of a hub, in the token of one of them, behind the name servers:
//!
//! ```text
//!   shared 1 (0 or 1) | name | members: count 1, each: public key 32, name, endpoints
//! ```

use std::collections::BTreeSet;

use hawser_config::{PeerName, PublicKey};

use super::bytes::{Reader, put_count, put_endpoints, put_text};
use super::{Endpoint, TokenError};

/// Members of a hub that a token names, its own portal included: a peer has a session with two, and a token is one
/// QR code.
pub const MEMBERS_MAX: usize = 8;

/// The hub of a token's portal. Everything in it is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    name: PeerName,
    others: Vec<Member>,
    shared: bool,
}

/// Another member than the token's portal. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: PeerName,
    /// Its public key.
    pub public_key: PublicKey,
    /// Where it is reached, the best first; by UDP at one of them at least.
    pub endpoints: Vec<Endpoint>,
}

/// Why members are no hub. Owned data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// There is one member.
    #[error("name members: there is no other one")]
    Alone,
    /// There are more than anybody has a use for.
    #[error("name members: there are more than {MEMBERS_MAX}")]
    TooMany,
    /// A name or a key is there twice.
    #[error("name members: {0} is there twice, by its name or by its key")]
    Twice(PeerName),
    /// A member says nowhere where it is reached.
    #[error("name members: {0} has no endpoint by UDP")]
    Unreached(PeerName),
}

impl Hub {
    /// The hub of a portal with this name and key; `shared`: who enrols is a peer of all members at once.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn new(name: PeerName, own: &PublicKey, others: Vec<Member>, shared: bool) -> Result<Self, HubError> {
        let (mut names, mut keys) = (BTreeSet::from([&name]), BTreeSet::from([own]));
        if others.is_empty() {
            return Err(HubError::Alone);
        }
        if others.len() >= MEMBERS_MAX {
            return Err(HubError::TooMany);
        }
        for member in &others {
            if !names.insert(&member.name) || !keys.insert(&member.public_key) {
                return Err(HubError::Twice(member.name.clone()));
            }
            if !member.endpoints.iter().any(|endpoint| endpoint.udp) {
                return Err(HubError::Unreached(member.name.clone()));
            }
        }
        Ok(Self { name, others, shared })
    }

    /// What the token's portal is called.
    pub fn name(&self) -> &PeerName {
        &self.name
    }

    /// The others; at least one.
    pub fn others(&self) -> &[Member] {
        &self.others
    }

    /// Whether who enrols is a peer of all members at once: else their users have to say so to each.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.shared.into());
        put_text(out, self.name.as_str());
        put_count(out, self.others.len());
        for Member { name, public_key, endpoints } in &self.others {
            out.extend(public_key.as_bytes());
            put_text(out, name.as_str());
            put_endpoints(out, endpoints);
        }
    }

    pub(super) fn read(from: &mut Reader<'_>, own: &PublicKey) -> Result<Self, TokenError> {
        const WHAT: &str = "hub";
        let shared = match from.byte(WHAT)? {
            shared @ (0 | 1) => shared == 1,
            _ => return Err(TokenError::Malformed(WHAT)),
        };
        let name = from.name()?;
        let member = |from: &mut Reader<'_>| {
            let (public_key, name) = (from.public_key()?, from.name()?);
            Ok(Member { name, public_key, endpoints: from.list("endpoint", Reader::endpoint)? })
        };
        let others = from.list(WHAT, member)?;
        Self::new(name, own, others, shared).map_err(|_| TokenError::Malformed(WHAT))
    }
}
