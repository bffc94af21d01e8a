//! Whom a member serves beside the peers of its file, and the file that remembers it while etcd is away. No input and
//! no output.

use std::collections::{BTreeMap, BTreeSet};

use hawser_config::{Peer, PeerName, PublicKey};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::record::{FORMAT, RecordError};
use crate::state::{History, Revision};

/// A peer from etcd. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPeer {
    /// Its name.
    pub name: PeerName,
    /// Its public key.
    pub key: PublicKey,
    /// The networks behind it: at least one, host bits zero.
    pub allowed_ips: Vec<IpNet>,
}

/// Whom members serve, and whom not. Nobody by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The peers, in the order in which they came.
    pub peers: Vec<HubPeer>,
    /// Those that are written and not served, and why.
    pub refused: BTreeMap<PeerName, String>,
    /// Keys that nobody serves, and how their peers were called.
    pub revoked: BTreeMap<PublicKey, PeerName>,
}

impl Roster {
    /// Whether nobody is named in it.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty() && self.refused.is_empty() && self.revoked.is_empty()
    }

    /// Without whoever has a key of these, too.
    pub fn without(mut self, revoked: &BTreeMap<PublicKey, PeerName>) -> Self {
        self.peers.retain(|peer| !revoked.contains_key(&peer.key));
        self.revoked.extend(revoked.iter().map(|(key, name)| (*key, name.clone())));
        self
    }

    /// The peers of a member: those of its file and these; and who of these is not, and why. Whoever is revoked is in
    /// neither. Where both claim the same, the file has it: its administrator sees it there.
    pub fn join(&self, file: &[Peer], own: &PublicKey) -> (Vec<Peer>, BTreeMap<PeerName, String>) {
        let mut all: Vec<Peer> =
            file.iter().filter(|peer| !self.revoked.contains_key(&peer.public_key)).cloned().collect();
        let names: BTreeSet<&PeerName> = file.iter().map(|peer| &peer.name).collect();
        let keys: BTreeSet<&PublicKey> = file.iter().map(|peer| &peer.public_key).chain([own]).collect();
        let networks: BTreeSet<&IpNet> = file.iter().flat_map(|peer| &peer.allowed_ips).collect();
        let mut refused = self.refused.clone();
        for peer in &self.peers {
            let net = peer.allowed_ips.iter().find(|net| networks.contains(net));
            let why = match net {
                _ if keys.contains(&peer.key) => Some("its key is in this member's file".to_owned()),
                _ if names.contains(&peer.name) => Some("its name is in this member's file".to_owned()),
                Some(net) => Some(format!("{net} is in this member's file")),
                None => None,
            };
            match why {
                Some(why) => drop(refused.insert(peer.name.clone(), why)),
                None => all.push(peer.to_peer()),
            }
        }
        (all, refused)
    }
}

impl HubPeer {
    /// As a file would have it.
    fn to_peer(&self) -> Peer {
        Peer {
            name: self.name.clone(),
            public_key: self.key,
            preshared_key_file: None,
            endpoints: Vec::new(),
            ranks: Vec::new(),
            names: Vec::new(),
            scion_endpoints: Vec::new(),
            allowed_ips: self.allowed_ips.clone(),
            standby: Vec::new(),
            shared_ips: Vec::new(),
        }
    }
}

/// What a member remembers on its disk. Nothing by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// As etcd had it last.
    pub roster: Roster,
    /// Who was revoked here, and is not in etcd yet.
    pub pending: BTreeMap<PublicKey, PeerName>,
    /// The cluster that all that was read from.
    pub cluster: Option<u64>,
    /// Up to which revision. What is remembered is written where it changes: etcd may be far ahead by now.
    pub revision: Revision,
    /// Of which history; none where etcd had no mark.
    pub history: Option<History>,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    v: u32,
    /// Whose it is: another hub's members are none of this one's.
    prefix: String,
    peers: Vec<SavedPeer>,
    revoked: BTreeMap<String, String>,
    pending: BTreeMap<String, String>,
    cluster: Option<u64>,
    /// None in files of older programs.
    #[serde(default)]
    revision: i64,
    /// The same.
    history: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedPeer {
    name: String,
    public_key: String,
    allowed_ips: Vec<IpNet>,
}

impl Cache {
    /// The file's text.
    pub fn encode(&self, prefix: &str) -> String {
        let peer = |peer: &HubPeer| SavedPeer {
            name: peer.name.to_string(),
            public_key: peer.key.to_string(),
            allowed_ips: peer.allowed_ips.clone(),
        };
        let keys = |keys: &BTreeMap<PublicKey, PeerName>| {
            keys.iter().map(|(key, name)| (key.to_string(), name.to_string())).collect()
        };
        let saved = Saved {
            v: FORMAT,
            prefix: prefix.to_owned(),
            peers: self.roster.peers.iter().map(peer).collect(),
            revoked: keys(&self.roster.revoked),
            pending: keys(&self.pending),
            cluster: self.cluster,
            revision: self.revision.0,
            history: self.history.as_ref().map(|History(text)| text.clone()),
        };
        // Strings, lists and numbers can be written.
        serde_json::to_string(&saved).unwrap_or_default()
    }

    /// Reads it. Of another hub there is nothing.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(text: &str, prefix: &str) -> Result<Self, RecordError> {
        let saved: Saved = serde_json::from_str(text).map_err(|error| RecordError::Shape(error.to_string()))?;
        if saved.v != FORMAT {
            return Err(RecordError::Format(saved.v));
        }
        if saved.prefix != prefix {
            return Ok(Self::default());
        }
        let peers = saved.peers.into_iter().map(|SavedPeer { name, public_key, allowed_ips }| {
            let (key, name) = named(&public_key, &name)?;
            Ok(HubPeer { name, key, allowed_ips })
        });
        let keys = |keys: BTreeMap<String, String>| {
            let keys = keys.iter().map(|(key, name)| named(key, name));
            keys.collect::<Result<BTreeMap<PublicKey, PeerName>, RecordError>>()
        };
        let roster = Roster {
            peers: peers.collect::<Result<_, RecordError>>()?,
            refused: BTreeMap::new(),
            revoked: keys(saved.revoked)?,
        };
        let (cluster, revision, history) = (saved.cluster, Revision(saved.revision), saved.history.map(History));
        Ok(Self { roster, pending: keys(saved.pending)?, cluster, revision, history })
    }
}

fn named(key: &str, name: &str) -> Result<(PublicKey, PeerName), RecordError> {
    let key = PublicKey::parse(key).map_err(|_| RecordError::Value("public_key"))?;
    let name = PeerName::parse(name).map_err(|_| RecordError::Value("name"))?;
    Ok((key, name))
}

#[cfg(test)]
mod tests;
