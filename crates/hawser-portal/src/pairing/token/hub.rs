//! The members of a hub, in the token of one of them, behind the name servers:
//!
//! ```text
//!   shared 1 (0 or 1) | name | share | members: count 1, each: public key 32, name, share, endpoints
//!   share              weight 2, rack 2
//! ```

use std::collections::BTreeSet;

use hawser_config::{PeerName, PublicKey};
use hawser_core::handshake::PublicKey as CoreKey;
use hawser_hub::placement::{self, Rack, Weight};
use hawser_hub::units::{MemberId, PeerTag};

use super::bytes::{Reader, put_count, put_endpoints, put_text};
use super::{Endpoint, Token, TokenError};

/// Members of a hub that a token names, its own portal included: a peer has a session with two, and a token is one
/// QR code. Of a larger hub it names some.
pub const MEMBERS_MAX: usize = 8;

/// The hub of a token's portal. Everything in it is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    name: PeerName,
    share: Share,
    others: Vec<Member>,
    shared: bool,
}

/// A member's part of the peers, and what fails together with it (`hawser_hub::placement`). Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Relative to the others'; zero takes no peer while there is another.
    pub weight: u16,
    /// Which rack.
    pub rack: u16,
}

impl Default for Share {
    fn default() -> Self {
        Self { weight: 1, rack: 0 }
    }
}

/// A member. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: PeerName,
    /// Its public key.
    pub public_key: PublicKey,
    /// Where it is reached, the best first; by UDP at one of them at least.
    pub endpoints: Vec<Endpoint>,
    /// Its part of the peers.
    pub share: Share,
}

/// Why members are no hub. Owned data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// There is one member.
    #[error("name members: there is no other one")]
    Alone,
    /// There are more than a token names.
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
    /// The hub of a portal with this name, key and share; `shared`: who enrols is a peer of all members at once.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn new(
        (name, own, share): (PeerName, &PublicKey, Share),
        others: Vec<Member>,
        shared: bool,
    ) -> Result<Self, HubError> {
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
        Ok(Self { name, share, others, shared })
    }

    /// The same of a hub that shares its peers, where it may have more members than a token names: for a peer of this
    /// name it is its own portal, which keeps the invitation, and those that placement takes of the others, in as many
    /// racks as can be.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn of_peer(
        (name, own, share): (PeerName, &PublicKey, Share),
        mut others: Vec<Member>,
        peer: &PeerName,
    ) -> Result<Self, HubError> {
        if others.len() >= MEMBERS_MAX {
            // Its key is made where it joins: it orders those that the token names ([`Token::members`]).
            let all: Vec<placement::Member> = others.iter().map(|one| placed(&one.public_key, one.share)).collect();
            let chosen = placement::spread(PeerTag::of_name(peer.as_str()), &placed(own, share), &all, MEMBERS_MAX - 1);
            others.retain(|other| chosen.contains(&placed(&other.public_key, other.share).id));
        }
        Self::new((name, own, share), others, true)
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
        self.share.put(out);
        put_count(out, self.others.len());
        for Member { name, public_key, endpoints, share } in &self.others {
            out.extend(public_key.as_bytes());
            put_text(out, name.as_str());
            share.put(out);
            put_endpoints(out, endpoints);
        }
    }

    pub(super) fn read(from: &mut Reader<'_>, own: &PublicKey) -> Result<Self, TokenError> {
        const WHAT: &str = "hub";
        let shared = match from.byte(WHAT)? {
            shared @ (0 | 1) => shared == 1,
            _ => return Err(TokenError::Malformed(WHAT)),
        };
        let (name, share) = (from.name()?, Share::read(from)?);
        let member = |from: &mut Reader<'_>| {
            let (public_key, name, share) = (from.public_key()?, from.name()?, Share::read(from)?);
            Ok(Member { name, public_key, share, endpoints: from.list("endpoint", Reader::endpoint)? })
        };
        let others = from.list(WHAT, member)?;
        Self::new((name, own, share), others, shared).map_err(|_| TokenError::Malformed(WHAT))
    }
}

impl Share {
    fn put(self, out: &mut Vec<u8>) {
        out.extend(self.weight.to_be_bytes());
        out.extend(self.rack.to_be_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, TokenError> {
        let mut number = || from.array("share").map(u16::from_be_bytes);
        Ok(Self { weight: number()?, rack: number()? })
    }
}

/// As placement sees it.
fn placed(key: &PublicKey, Share { weight, rack }: Share) -> placement::Member {
    let id = MemberId::of(&CoreKey(*key.as_bytes()));
    placement::Member { id, rack: Rack(rack.into()), weight: Weight(weight.into()) }
}

impl Token {
    /// The members of its hub in the order in which a peer of this key is to ask them: by placement where who enrols is
    /// a peer of all at once; else the token's portal, which alone knows it, is the first. Empty without a hub.
    pub fn members(&self, peer: &PublicKey) -> Vec<Member> {
        let Some(Hub { name, share, others, shared }) = &self.hub else { return Vec::new() };
        let (public_key, endpoints) = (self.public_key, self.endpoints.clone());
        let own = Member { name: name.clone(), public_key, endpoints, share: *share };
        let mut members = [&[own], others.as_slice()].concat();
        if *shared {
            let id = |member: &Member| placed(&member.public_key, member.share).id;
            let all: Vec<placement::Member> = members.iter().map(|one| placed(&one.public_key, one.share)).collect();
            let order = placement::order(PeerTag::of(&CoreKey(*peer.as_bytes())), &all);
            members.sort_by_key(|member| order.iter().position(|one| *one == id(member)));
        }
        members
    }
}
