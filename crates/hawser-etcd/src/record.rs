//! What is written below each key: JSON, for people with etcdctl, with the version of its format.
//!
//! A record of this version may have fields that are not known here: a later release added them. One of another
//! version, or with a value that cannot be, is none.

use std::collections::BTreeSet;

use hawser_config::{PeerName, PublicKey};
use hawser_hub::units::{Epoch, MemberId};
use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of all records.
pub const FORMAT: u32 = 1;
/// Bytes of an endpoint or a program's version: a host name with its port.
const WORD_MOST: usize = 260;

/// Why a value is no record. Owned data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is no JSON of this shape.
    #[error("read record: {0}")]
    Shape(String),
    /// Another release wrote it.
    #[error("read record: its format is {0}, and this version reads {FORMAT}")]
    Format(u32),
    /// A value cannot be.
    #[error("read record: {0} is wrong")]
    Value(&'static str),
}

/// A value below one kind of key.
pub trait Record: Sized {
    /// As it is written: fields alone.
    type Fields: Serialize + DeserializeOwned;

    /// What is to be written.
    fn to_fields(&self) -> Self::Fields;

    /// Reads it.
    ///
    /// # Errors
    /// [`RecordError::Value`].
    fn from_fields(fields: Self::Fields) -> Result<Self, RecordError>;

    /// The value.
    fn encode(&self) -> Vec<u8> {
        // Fields are strings, numbers and lists: all of them can be written.
        serde_json::to_vec(&Versioned { v: FORMAT, fields: self.to_fields() }).unwrap_or_default()
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`RecordError`].
    fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let shape = |error: serde_json::Error| RecordError::Shape(error.to_string());
        let Version { v } = serde_json::from_slice(value).map_err(shape)?;
        if v != FORMAT {
            return Err(RecordError::Format(v));
        }
        let Versioned { fields, .. } = serde_json::from_slice(value).map_err(shape)?;
        Self::from_fields(fields)
    }
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct Versioned<F> {
    v: u32,
    #[serde(flatten)]
    fields: F,
}

/// A member, there while its lease is. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its key.
    pub key: PublicKey,
    /// Where peers reach it.
    pub endpoints: Vec<String>,
    /// Its share of the peers.
    pub weight: u32,
    /// What fails together with it.
    pub rack: u32,
    /// Of its program.
    pub version: String,
}

/// Fields of a [`Member`].
#[derive(Serialize, Deserialize)]
pub struct MemberFields {
    public_key: String,
    endpoints: Vec<String>,
    weight: u32,
    rack: u32,
    version: String,
}

impl Record for Member {
    type Fields = MemberFields;

    fn to_fields(&self) -> MemberFields {
        MemberFields {
            public_key: self.key.to_string(),
            endpoints: self.endpoints.clone(),
            weight: self.weight,
            rack: self.rack,
            version: self.version.clone(),
        }
    }

    fn from_fields(fields: MemberFields) -> Result<Self, RecordError> {
        let MemberFields { public_key, endpoints, weight, rack, version } = fields;
        // They are printed at terminals.
        let is_word = |text: &String| text.len() <= WORD_MOST && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !endpoints.iter().all(is_word) {
            return Err(RecordError::Value("endpoints"));
        }
        if !is_word(&version) {
            return Err(RecordError::Value("version"));
        }
        Ok(Self { key: key(&public_key)?, endpoints, weight, rack, version })
    }
}

/// What a member has to do. Nothing by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Peers that it owns.
    pub active: u32,
    /// Peers that it stands by for.
    pub standby: u32,
    /// Inner packets of all of them, both directions, in bits a second.
    pub rate_bps: u64,
    /// Members that no longer answer it, by their names.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub misses: BTreeSet<String>,
}

impl Record for Load {
    type Fields = Load;

    fn to_fields(&self) -> Load {
        self.clone()
    }

    fn from_fields(fields: Load) -> Result<Self, RecordError> {
        Ok(fields)
    }
}

/// A peer of all members. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its key.
    pub key: PublicKey,
    /// The networks behind it: at least one, host bits zero.
    pub allowed_ips: Vec<IpNet>,
}

/// Fields of a [`Peer`].
#[derive(Serialize, Deserialize)]
pub struct PeerFields {
    public_key: String,
    allowed_ips: Vec<IpNet>,
}

impl Record for Peer {
    type Fields = PeerFields;

    fn to_fields(&self) -> PeerFields {
        PeerFields { public_key: self.key.to_string(), allowed_ips: self.allowed_ips.clone() }
    }

    fn from_fields(PeerFields { public_key, allowed_ips }: PeerFields) -> Result<Self, RecordError> {
        if allowed_ips.is_empty() || allowed_ips.iter().any(|net| net.trunc() != *net) {
            return Err(RecordError::Value("allowed_ips"));
        }
        Ok(Self { key: key(&public_key)?, allowed_ips })
    }
}

/// The highest epoch of a peer that a member owned. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which.
    pub epoch: Epoch,
    /// Whose it is.
    pub owner: MemberId,
}

/// Fields of a [`Seen`].
#[derive(Serialize, Deserialize)]
pub struct SeenFields {
    epoch: u64,
    owner: String,
}

impl Record for Seen {
    type Fields = SeenFields;

    fn to_fields(&self) -> SeenFields {
        SeenFields { epoch: self.epoch.get(), owner: format!("{:016x}", self.owner.0) }
    }

    fn from_fields(SeenFields { epoch, owner }: SeenFields) -> Result<Self, RecordError> {
        let epoch = Epoch::new(epoch).ok_or(RecordError::Value("epoch"))?;
        let owner = u64::from_str_radix(&owner, 16).map_err(|_| RecordError::Value("owner"))?;
        Ok(Self { epoch, owner: MemberId(owner) })
    }
}

/// A key that no member serves. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// How the peer was called.
    pub name: PeerName,
}

impl Revocation {
    /// One of which the key alone is known.
    pub fn unnamed() -> Self {
        Self { name: PeerName::parse("unnamed").expect("a name") }
    }
}

/// Fields of a [`Revocation`].
#[derive(Serialize, Deserialize)]
pub struct RevocationFields {
    name: String,
}

impl Record for Revocation {
    type Fields = RevocationFields;

    fn to_fields(&self) -> RevocationFields {
        RevocationFields { name: self.name.to_string() }
    }

    fn from_fields(RevocationFields { name }: RevocationFields) -> Result<Self, RecordError> {
        let name = PeerName::parse(&name).map_err(|_| RecordError::Value("name"))?;
        Ok(Self { name })
    }
}

fn key(text: &str) -> Result<PublicKey, RecordError> {
    PublicKey::parse(text).map_err(|_| RecordError::Value("public_key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";

    fn text<R: Record>(record: &R) -> String {
        String::from_utf8(record.encode()).expect("JSON is text")
    }

    #[test]
    fn each_record_reads_as_it_is_written() {
        let key = PublicKey::parse(KEY).expect("a key");
        let endpoints = vec!["198.51.100.10:4920".to_owned()];
        let member = Member { key, endpoints, weight: 2, rack: 7, version: "0.2.0".to_owned() };
        let written = format!(
            r#"{{"v":1,"public_key":"{KEY}","endpoints":["198.51.100.10:4920"],"weight":2,"rack":7,"version":"0.2.0"}}"#
        );
        assert_eq!((text(&member), Member::decode(written.as_bytes())), (written, Ok(member)));
        let misses = BTreeSet::from(["a".to_owned()]);
        let load = Load { active: 3, standby: 4, rate_bps: 5, misses };
        let written = r#"{"v":1,"active":3,"standby":4,"rate_bps":5,"misses":["a"]}"#.to_owned();
        assert_eq!((text(&load), Load::decode(written.as_bytes())), (written, Ok(load)));
        let peer = Peer { key, allowed_ips: vec!["203.0.113.8/32".parse().expect("a network")] };
        let written = format!(r#"{{"v":1,"public_key":"{KEY}","allowed_ips":["203.0.113.8/32"]}}"#);
        assert_eq!((text(&peer), Peer::decode(written.as_bytes())), (written, Ok(peer)));
        let seen = Seen { epoch: Epoch::new(9).expect("an epoch"), owner: MemberId(0xab) };
        let written = r#"{"v":1,"epoch":9,"owner":"00000000000000ab"}"#.to_owned();
        assert_eq!((text(&seen), Seen::decode(written.as_bytes())), (written, Ok(seen)));
        let revoked = Revocation { name: PeerName::parse("home").expect("a name") };
        let written = r#"{"v":1,"name":"home"}"#.to_owned();
        assert_eq!((text(&revoked), Revocation::decode(written.as_bytes())), (written, Ok(revoked)));
    }

    #[test]
    fn what_a_later_release_adds_is_passed_over_and_its_formats_are_refused() {
        assert!(Load::decode(br#"{"v":1,"active":1,"standby":0,"rate_bps":0,"more":[1]}"#).is_ok());
        assert_eq!(Load::decode(br#"{"v":2,"of":"shapes"}"#), Err(RecordError::Format(2)));
    }

    #[test]
    fn what_cannot_be_is_no_record() {
        let peer = |key: &str, nets: &str| format!(r#"{{"v":1,"public_key":"{key}","allowed_ips":{nets}}}"#);
        for (value, wrong) in [
            (peer("AAAA", r#"["10.0.0.0/8"]"#), "public_key"),
            (peer(KEY, "[]"), "allowed_ips"),
            (peer(KEY, r#"["10.0.0.1/8"]"#), "allowed_ips"),
        ] {
            assert_eq!(Peer::decode(value.as_bytes()), Err(RecordError::Value(wrong)), "{value}");
        }
        for value in ["", "7", "{}", r#"{"v":1}"#, &peer(KEY, r#"["here"]"#)] {
            assert!(matches!(Peer::decode(value.as_bytes()), Err(RecordError::Shape(_))), "{value}");
        }
        assert_eq!(Seen::decode(br#"{"v":1,"epoch":0,"owner":"1"}"#), Err(RecordError::Value("epoch")));
        let member = |word: &str| {
            let text =
                format!(r#"{{"v":1,"public_key":"{KEY}","endpoints":[],"weight":1,"rack":0,"version":"{word}"}}"#);
            Member::decode(text.as_bytes())
        };
        assert!(member("0.2.0").is_ok());
        assert_eq!(member(r"\u001b[2J"), Err(RecordError::Value("version")), "terminals would obey");
    }
}
