//! What etcd holds of a hub, followed change by change, and what members do by it. No input and no output.
//!
//! 1. [`State::replace`] takes a whole list, [`State::hear`] what a watch says from its revision on.
//! 2. [`State::begin`] says whether a watch may go on after a connection was lost, or a list is needed.
//! 3. [`State::roster`] is whom all members serve, [`State::place`] who is whose active member and standby.
//!
//! A change is told once: revisions that were heard before are passed over, as after a connection that was lost in the
//! middle of an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hawser_config::{PeerName, PublicKey};
use hawser_core::handshake::PublicKey as CoreKey;
use hawser_hub::placement::{self, Placement, Rack, Weight};
use hawser_hub::units::{MemberId, PeerTag};
use ipnet::IpNet;

use crate::keys::{Key, MemberName, Prefix};
use crate::record::{FORMAT, Load, Member, Peer, Record, RecordError, Revocation, Seen};
use crate::roster::{HubPeer, Roster};

/// Orders all changes in etcd. Zero before the first. A plain number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub i64);

/// What marks one history of etcd's: below another mark, or none, a revision counts other changes. Only compared, so
/// that any value of any program's is one. Owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History(pub String);

impl History {
    /// A new one, of a random number.
    pub fn new(random: u128) -> Self {
        Self(format!("{{\"v\":{FORMAT},\"id\":\"{random:032x}\"}}"))
    }

    /// Of the value below its key.
    pub fn read(value: &[u8]) -> Self {
        Self(String::from_utf8_lossy(value).into_owned())
    }
}

/// A key as etcd has it. Owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// In full.
    pub key: Vec<u8>,
    /// What is below it.
    pub value: Vec<u8>,
    /// When it came.
    pub created: Revision,
    /// When it changed last.
    pub modified: Revision,
}

/// One change. Owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key came, or has another value.
    Put(Entry),
    /// It went.
    Deleted {
        /// In full.
        key: Vec<u8>,
        /// When.
        modified: Revision,
    },
}

/// An answer of a watch. Owned data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Up to which revision it tells all; none where that is not sure.
    pub complete: Option<Revision>,
    /// It ends; why.
    pub canceled: Option<String>,
    /// It ends, as what came before this revision is forgotten.
    pub compacted: Option<Revision>,
    /// It answers that it was asked for a sign of life.
    pub answered: bool,
    /// What changed, in order.
    pub changes: Vec<Change>,
}

/// What follows from it. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// These things changed; perhaps none.
    Changed(Touched),
    /// Changes were missed: a list is needed.
    ListAgain,
    /// etcd ended the watch.
    Lost(String),
}

/// What changed. Nothing by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whom members serve, or which history that is of: both are remembered.
    pub roster: bool,
    /// Members, or their loads.
    pub members: bool,
    /// Epochs of these peers.
    pub epochs: BTreeSet<PublicKey>,
}

/// How a connection begins. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With a list of all.
    List,
    /// With what came from this revision on.
    From(Revision),
}

/// A peer, and when it came: of two that claim the same, the earlier has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    created: Revision,
    peer: Peer,
}

/// All of it. Empty at first; the driver owns it. A copy for whoever asks shares what does not change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The cluster that it was read from, and up to which revision.
    cluster: Option<u64>,
    revision: Revision,
    /// With when it was written.
    history: Option<(Revision, History)>,
    members: Arc<BTreeMap<MemberName, Member>>,
    loads: Arc<BTreeMap<MemberName, Load>>,
    peers: Arc<BTreeMap<PeerName, Known>>,
    /// Who has which key.
    names: Arc<BTreeMap<PublicKey, BTreeSet<PeerName>>>,
    /// With when they changed last.
    epochs: Arc<BTreeMap<PublicKey, (Revision, Seen)>>,
    revoked: Arc<BTreeMap<PublicKey, Revocation>>,
    /// Values that are no records, by their keys.
    faults: BTreeMap<Key, RecordError>,
}

impl State {
    /// Step 2: the cluster says that it is this one, at this revision of this history. One that was restored from a
    /// copy is behind; one that was made anew may be ahead by now, and has another mark, or none.
    pub fn begin(&self, cluster: u64, revision: Revision, history: Option<&History>) -> Begin {
        let is_known = self.history.as_ref().is_none_or(|(_, known)| Some(known) == history);
        let goes_on = self.cluster == Some(cluster) && self.revision <= revision && is_known;
        if goes_on { Begin::From(Revision(self.revision.0 + 1)) } else { Begin::List }
    }

    /// Up to which revision it is known.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Which history that is of, and when that was written; none where etcd has no mark.
    pub fn history(&self) -> Option<(Revision, &History)> {
        self.history.as_ref().map(|(written, history)| (*written, history))
    }

    /// Step 1: a list as of `revision`.
    pub fn replace(&mut self, prefix: &Prefix, cluster: u64, revision: Revision, entries: Vec<Entry>) {
        *self = Self { cluster: Some(cluster), revision, ..Self::default() };
        let mut touched = Touched::default();
        entries.into_iter().for_each(|entry| self.put(prefix, entry, &mut touched));
    }

    /// Step 1: a watch says this.
    pub fn hear(&mut self, prefix: &Prefix, watched: Watched) -> Heard {
        if watched.compacted.is_some() {
            return Heard::ListAgain;
        }
        if let Some(reason) = watched.canceled {
            return Heard::Lost(reason);
        }
        let (mut touched, before) = (Touched::default(), self.revision);
        for change in watched.changes {
            let modified = match &change {
                Change::Put(entry) => entry.modified,
                Change::Deleted { modified, .. } => *modified,
            };
            if modified <= before {
                continue;
            }
            self.revision = self.revision.max(modified);
            match change {
                Change::Put(entry) => self.put(prefix, entry, &mut touched),
                Change::Deleted { key, .. } => self.delete(prefix, &key, &mut touched),
            }
        }
        self.revision = self.revision.max(watched.complete.unwrap_or_default());
        Heard::Changed(touched)
    }

    fn put(&mut self, prefix: &Prefix, entry: Entry, touched: &mut Touched) {
        let Some(key) = prefix.parse(&entry.key) else { return };
        touched.note(&key);
        // What was there goes, whatever comes.
        self.forget(&key);
        match self.read(&key, &entry) {
            Ok(()) => drop(self.faults.remove(&key)),
            Err(error) => {
                if let Key::Revoked(peer) = &key {
                    // Who writes there means the key: that the rest is not known keeps nobody in.
                    Arc::make_mut(&mut self.revoked).insert(*peer, Revocation::unnamed());
                }
                self.faults.insert(key, error);
            }
        }
    }

    fn read(&mut self, key: &Key, Entry { value, created, modified, .. }: &Entry) -> Result<(), RecordError> {
        match key.clone() {
            Key::Member(name) => drop(Arc::make_mut(&mut self.members).insert(name, Member::decode(value)?)),
            Key::Load(name) => drop(Arc::make_mut(&mut self.loads).insert(name, Load::decode(value)?)),
            Key::Peer(name) => {
                let peer = Peer::decode(value)?;
                Arc::make_mut(&mut self.names).entry(peer.key).or_default().insert(name.clone());
                Arc::make_mut(&mut self.peers).insert(name, Known { created: *created, peer });
            }
            Key::Epoch(peer) => {
                Arc::make_mut(&mut self.epochs).insert(peer, (*modified, Seen::decode(value)?));
            }
            Key::Revoked(peer) => drop(Arc::make_mut(&mut self.revoked).insert(peer, Revocation::decode(value)?)),
            Key::History => self.history = Some((*modified, History::read(value))),
        }
        Ok(())
    }

    fn delete(&mut self, prefix: &Prefix, key: &[u8], touched: &mut Touched) {
        let Some(key) = prefix.parse(key) else { return };
        touched.note(&key);
        self.forget(&key);
        self.faults.remove(&key);
    }

    fn forget(&mut self, key: &Key) {
        match key {
            Key::Member(name) => drop(Arc::make_mut(&mut self.members).remove(name)),
            Key::Load(name) => drop(Arc::make_mut(&mut self.loads).remove(name)),
            Key::Peer(name) => {
                let Some(Known { peer, .. }) = Arc::make_mut(&mut self.peers).remove(name) else { return };
                let names = Arc::make_mut(&mut self.names);
                if let Some(of_key) = names.get_mut(&peer.key) {
                    of_key.remove(name);
                    if of_key.is_empty() {
                        names.remove(&peer.key);
                    }
                }
            }
            Key::Epoch(peer) => drop(Arc::make_mut(&mut self.epochs).remove(peer)),
            Key::Revoked(peer) => drop(Arc::make_mut(&mut self.revoked).remove(peer)),
            Key::History => self.history = None,
        }
    }

    /// Step 3: whom members serve. Of two peers with the same key or network the one that came first is one.
    pub fn roster(&self) -> Roster {
        let mut all: Vec<(&PeerName, &Known)> = self.peers.iter().collect();
        all.sort_by_key(|(name, known)| (known.created, *name));
        let (mut keys, mut networks) = (BTreeMap::new(), BTreeMap::<IpNet, &PeerName>::new());
        let mut roster = Roster::default();
        for (name, Known { peer, .. }) in all {
            let taken = peer.allowed_ips.iter().find_map(|net| Some((net, networks.get(net)?)));
            let refused = match (keys.get(&peer.key), taken) {
                _ if self.revoked.contains_key(&peer.key) => Some("its key is revoked".to_owned()),
                (Some(first), _) => Some(format!("{first} has its key")),
                (None, Some((net, first))) => Some(format!("{first} has {net}")),
                (None, None) => None,
            };
            if let Some(why) = refused {
                roster.refused.insert(name.clone(), why);
                continue;
            }
            keys.insert(peer.key, name);
            networks.extend(peer.allowed_ips.iter().map(|net| (*net, name)));
            roster.peers.push(HubPeer { name: name.clone(), key: peer.key, allowed_ips: peer.allowed_ips.clone() });
        }
        roster.revoked = self.revoked.iter().map(|(key, one)| (*key, one.name.clone())).collect();
        roster
    }

    /// Step 3: where a peer belongs; none where there is no member.
    pub fn place(&self, key: &PublicKey) -> Option<Placement> {
        let member = |member: &Member| placement::Member {
            id: member_id(&member.key),
            rack: Rack(member.rack),
            weight: Weight(member.weight),
        };
        let members: Vec<placement::Member> = self.members.values().map(member).collect();
        placement::place(PeerTag::of(&CoreKey(*key.as_bytes())), &members)
    }

    /// The members, with what each has to do.
    pub fn members(&self) -> impl Iterator<Item = (&MemberName, &Member, Load)> {
        self.members.iter().map(|(name, member)| (name, member, self.loads.get(name).cloned().unwrap_or_default()))
    }

    /// What the member of this name says of itself.
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.get(name)
    }

    /// The name of the member with this id.
    pub fn named(&self, id: MemberId) -> Option<&MemberName> {
        self.members.iter().find(|(_, member)| member_id(&member.key) == id).map(|(name, _)| name)
    }

    /// The highest epoch of a peer that was seen, and when that was written.
    pub fn seen(&self, key: &PublicKey) -> Option<(Revision, Seen)> {
        self.epochs.get(key).copied()
    }

    /// The key of a peer.
    pub fn key_of(&self, name: &PeerName) -> Option<PublicKey> {
        self.peers.get(name).map(|known| known.peer.key)
    }

    /// Whether a peer has this key.
    pub fn is_peer(&self, key: &PublicKey) -> bool {
        self.names.contains_key(key)
    }

    /// Whether nobody may have this key.
    pub fn is_revoked(&self, key: &PublicKey) -> bool {
        self.revoked.contains_key(key)
    }

    /// The peers that are written with this key: one of them is served.
    pub fn names_of(&self, key: &PublicKey) -> impl Iterator<Item = &PeerName> {
        self.names.get(key).into_iter().flatten()
    }

    /// When the peer with this key was written, the last one of several.
    pub fn came(&self, key: &PublicKey) -> Option<Revision> {
        self.names_of(key).filter_map(|name| self.peers.get(name)).map(|known| known.created).max()
    }

    /// Values that are no records: below which key, and why.
    pub fn faults(&self) -> impl Iterator<Item = (&Key, &RecordError)> {
        self.faults.iter()
    }

    /// Whether the value below a key is no record.
    pub fn is_fault(&self, key: &Key) -> bool {
        self.faults.contains_key(key)
    }

    /// Why a peer cannot come; nothing where it can.
    pub fn objection(&self, new: &HubPeer) -> Option<String> {
        if self.revoked.contains_key(&new.key) {
            return Some("its key is revoked".to_owned());
        }
        let others = || self.peers.iter().map(|(name, known)| (name, &known.peer));
        if others().any(|(name, _)| *name == new.name) {
            return Some("the name is taken".to_owned());
        }
        if let Some((name, _)) = others().find(|(_, peer)| peer.key == new.key) {
            return Some(format!("{name} has its key"));
        }
        let taken = |net: &IpNet| others().find(|(_, peer)| peer.allowed_ips.contains(net)).map(|(name, _)| name);
        new.allowed_ips.iter().find_map(|net| Some(format!("{} has {net}", taken(net)?)))
    }
}

impl Touched {
    fn note(&mut self, key: &Key) {
        match key {
            Key::Member(_) | Key::Load(_) => self.members = true,
            Key::Peer(_) | Key::Revoked(_) | Key::History => self.roster = true,
            Key::Epoch(peer) => drop(self.epochs.insert(*peer)),
        }
    }
}

/// As claims name it.
pub fn member_id(key: &PublicKey) -> MemberId {
    MemberId::of(&CoreKey(*key.as_bytes()))
}

#[cfg(test)]
mod tests;
