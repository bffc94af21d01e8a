//! Where things are: all keys of a hub, below its prefix.
//!
//! ```text
//! /hawser/hub/members/zurich    with the member's lease
//!             load/zurich       with the same
//!             peers/home
//!             epochs/44a18b5e…  by the peer's public key, in hexadecimal: another key is another peer
//!             revoked/44a18b5e…
//!             history           has no `/` after it: programs that do not know it pass it over
//! ```

use std::fmt::{self, Write as _};

use hawser_config::{PeerName, PublicKey};

/// The one key without a name.
const HISTORY: &str = "history";

/// A member's name: members are no peers. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberName(pub PeerName);

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A key below the prefix. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A member.
    Member(MemberName),
    /// What it has to do.
    Load(MemberName),
    /// A peer.
    Peer(PeerName),
    /// The epoch that was seen of a peer.
    Epoch(PublicKey),
    /// A peer that is served no more.
    Revoked(PublicKey),
    /// Which history of etcd's this is.
    History,
}

/// What all keys begin with; ends in `/`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Of a configuration, which has one that ends in `/`.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The first of all keys.
    pub fn begin(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The first key after all of them: the one that ends in the character after `/`.
    pub fn end(&self) -> Vec<u8> {
        let mut end = self.0.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        end
    }

    /// A key in full.
    pub fn full(&self, key: &Key) -> Vec<u8> {
        let below = match key {
            Key::Member(name) => format!("members/{name}"),
            Key::Load(name) => format!("load/{name}"),
            Key::Peer(name) => format!("peers/{name}"),
            Key::Epoch(key) => format!("epochs/{}", hex(key)),
            Key::Revoked(key) => format!("revoked/{}", hex(key)),
            Key::History => HISTORY.to_owned(),
        };
        format!("{}{below}", self.0).into_bytes()
    }

    /// Reads one. None where it is nothing of a hub's.
    pub fn parse(&self, full: &[u8]) -> Option<Key> {
        let below = std::str::from_utf8(full).ok()?.strip_prefix(&self.0)?;
        if below == HISTORY {
            return Some(Key::History);
        }
        let (kind, name) = below.split_once('/')?;
        let named = || PeerName::parse(name).ok();
        match kind {
            "members" => Some(Key::Member(MemberName(named()?))),
            "load" => Some(Key::Load(MemberName(named()?))),
            "peers" => Some(Key::Peer(named()?)),
            "epochs" => Some(Key::Epoch(unhex(name)?)),
            "revoked" => Some(Key::Revoked(unhex(name)?)),
            _ => None,
        }
    }
}

fn hex(key: &PublicKey) -> String {
    let mut text = String::new();
    for byte in key.as_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<PublicKey> {
    // One spelling alone, so that no two keys of etcd's are of one peer.
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 64 || !digits {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    PublicKey::new(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_as_they_are_written_and_lie_between_the_first_and_the_last() {
        let prefix = Prefix::new("/hawser/hub/");
        let name = PeerName::parse("zurich").expect("a name");
        let key = PublicKey::new([0xa1; 32]).expect("a key");
        let member = MemberName(name.clone());
        let hex = "a1".repeat(32);
        for (key, text) in [
            (Key::Member(member.clone()), "members/zurich".to_owned()),
            (Key::Load(member), "load/zurich".to_owned()),
            (Key::Peer(name), "peers/zurich".to_owned()),
            (Key::Epoch(key), format!("epochs/{hex}")),
            (Key::Revoked(key), format!("revoked/{hex}")),
            (Key::History, "history".to_owned()),
        ] {
            let full = prefix.full(&key);
            assert_eq!(full, format!("/hawser/hub/{text}").into_bytes());
            assert!(prefix.begin() < &full[..] && full < prefix.end());
            assert_eq!(prefix.parse(&full), Some(key));
        }
        assert_eq!(prefix.end(), b"/hawser/hub0");
    }

    #[test]
    fn what_else_lies_there_is_nothing() {
        let prefix = Prefix::new("/hawser/hub/");
        let hex = "a1".repeat(32);
        for text in [
            "/hawser/hubs/peers/a".to_owned(),
            "/hawser/hub/peers".to_owned(),
            "/hawser/hub/peers/".to_owned(),
            "/hawser/hub/peers/a/b".to_owned(),
            "/hawser/hub/peers/a b".to_owned(),
            "/hawser/hub/other/a".to_owned(),
            "/hawser/hub/history/a".to_owned(),
            format!("/hawser/hub/revoked/{}", hex.to_uppercase()),
            format!("/hawser/hub/revoked/{}", &hex[2..]),
            format!("/hawser/hub/revoked/{}", "00".repeat(32)),
        ] {
            assert_eq!(prefix.parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(prefix.parse(&[0xff]), None);
    }
}
