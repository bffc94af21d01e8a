//! What one user gives to another: everything that a portal needs to enrol at another one, in a line of text.
//!
//! `hwr1:` and base64url (RFC 4648 section 5, without padding) of:
//!
//! ```text
//! version 1 | public key 32 | secret 16 | expires 4 | name | addresses | gateways | endpoints | name servers | checksum 4
//!   name       length 1, bytes
//!   addresses  count 1, each: prefix length 1, address        the inner ones of who enrols
//!   gateways   count 1, each: address                         those of the portal that invites
//!   endpoints  count 1, each: transports 1 (bits: udp, tcp), port 2, host
//!   address    4 or 6, then 4 or 16 bytes                     host: an address, or 0, length 1, the name's bytes
//! ```
//! Version 1 ends before the name servers (written as gateways are), and is what a portal without any writes: older
//! ones read it. Version 3 is of a hub's member (`hub`), and an older program says that it does not know it: it would
//! join that member alone, and have no standby. Numbers are big-endian, `expires` counts seconds since 1970. The
//! checksum is the beginning of SHA-256 over all before.

mod bytes;
mod hub;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hawser_config::{HostName, PeerName, PublicKey};
use hawser_core::handshake::enrolment::{SECRET_LEN, Secret};
use ipnet::IpNet;
use ring::digest::{SHA256, digest};

use bytes::{Reader, put_address, put_count, put_endpoints, put_text};
pub use hub::{Hub, HubError, MEMBERS_MAX, Member, Share};

/// How a token begins.
pub const TOKEN_PREFIX: &str = "hwr1:";
/// The versions of its bytes: without name servers, with some, and of a hub's member.
const PLAIN: u8 = 1;
const WITH_NAME_SERVERS: u8 = 2;
const OF_HUB: u8 = 3;
/// Bytes of the checksum: one slip in four thousand million goes unseen, and then it is an unknown token.
const CHECKSUM_LEN: usize = 4;
/// Longest text that is looked at: every list may have 255 items, and a token has four.
const TEXT_MAX: usize = 4096;

/// Why text is no token. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It begins otherwise.
    #[error("read token: a token begins with `{TOKEN_PREFIX}`")]
    Prefix,
    /// Its checksum is wrong.
    #[error("read token: it was altered, or is not whole")]
    Altered,
    /// Another version made it.
    #[error("read token: it is of version {0}, and this program knows versions up to {OF_HUB}")]
    Version(u8),
    /// It was made wrongly: the checksum is right.
    #[error("read token: its {0} is wrong")]
    Malformed(&'static str),
}

impl TokenError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Prefix | Self::Altered => {
                "copy all of it, in one line, as the server printed it; or scan its QR code"
            }
            Self::Version(_) => "install the same version of hawser on both sides",
            Self::Malformed(_) => "have the server print another: sudo hawser peer add NAME",
        }
    }
}

/// Where a portal is reached: an address or a name. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name, for the resolver of who enrols.
    Name(HostName),
}

impl Host {
    /// Reads an address, in brackets or not, or a name; none where it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        match bare.parse() {
            Ok(address) => Some(Self::Address(address)),
            Err(_) => HostName::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// A place where a portal listens. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where.
    pub host: Host,
    /// At which port.
    pub port: u16,
    /// By UDP.
    pub udp: bool,
    /// In streams of TCP.
    pub tcp: bool,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A token. Everything in it is right; it holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whose portal it is.
    pub public_key: PublicKey,
    /// By which its holder enrols.
    pub secret: Secret,
    /// Until when, in seconds since 1970.
    pub expires: u32,
    /// What its holder is called there.
    pub name: PeerName,
    /// The inner addresses of its holder, with the prefix of their networks; at least one.
    pub addresses: Vec<IpNet>,
    /// Those of the portal.
    pub gateways: Vec<IpAddr>,
    /// Where that is reached, the best first; at least one.
    pub endpoints: Vec<Endpoint>,
    /// Name servers for its holder; mostly none.
    pub name_servers: Vec<IpAddr>,
    /// The hub that the portal is a member of; mostly none.
    pub hub: Option<Hub>,
}

impl Token {
    /// Whether it can be read: longer text is not looked at.
    pub fn is_readable(&self) -> bool {
        self.to_string().len() <= TOKEN_PREFIX.len() + TEXT_MAX
    }

    /// How long ago it expired; none: it has not.
    pub fn expired(&self, now: SystemTime) -> Option<Duration> {
        let end = UNIX_EPOCH + Duration::from_secs(self.expires.into());
        now.duration_since(end).ok().filter(|since| !since.is_zero())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let version = match (&self.hub, self.name_servers.is_empty()) {
            (Some(_), _) => OF_HUB,
            (None, false) => WITH_NAME_SERVERS,
            (None, true) => PLAIN,
        };
        let mut out = vec![version];
        out.extend(self.public_key.as_bytes());
        out.extend(self.secret.bytes());
        out.extend(self.expires.to_be_bytes());
        put_text(&mut out, self.name.as_str());
        put_count(&mut out, self.addresses.len());
        for net in &self.addresses {
            out.push(net.prefix_len());
            put_address(&mut out, net.addr());
        }
        put_count(&mut out, self.gateways.len());
        self.gateways.iter().for_each(|address| put_address(&mut out, *address));
        put_endpoints(&mut out, &self.endpoints);
        if version > PLAIN {
            put_count(&mut out, self.name_servers.len());
            self.name_servers.iter().for_each(|address| put_address(&mut out, *address));
        }
        self.hub.iter().for_each(|hub| hub.put(&mut out));
        let checksum = checksum(&out);
        out.extend(checksum);
        out
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, TokenError> {
        let (body, sum) = bytes.split_last_chunk::<CHECKSUM_LEN>().ok_or(TokenError::Altered)?;
        if checksum(body) != *sum {
            return Err(TokenError::Altered);
        }
        let mut from = Reader(body);
        let version = from.byte("version")?;
        if !matches!(version, PLAIN..=OF_HUB) {
            return Err(TokenError::Version(version));
        }
        let public_key = from.public_key()?;
        let token = Self {
            public_key,
            secret: Secret::new(from.array::<SECRET_LEN>("secret")?),
            expires: u32::from_be_bytes(from.array("expiry")?),
            name: from.name()?,
            addresses: from.list("inner address", Reader::network)?,
            gateways: from.list("gateway", |from| from.address("gateway"))?,
            endpoints: from.list("endpoint", Reader::endpoint)?,
            name_servers: match version {
                PLAIN => Vec::new(),
                _ => from.list("name server", |from| from.address("name server"))?,
            },
            hub: (version == OF_HUB).then(|| Hub::read(&mut from, &public_key)).transpose()?,
        };
        if version == WITH_NAME_SERVERS && token.name_servers.is_empty() {
            return Err(TokenError::Malformed("name server"));
        }
        let whole = from.0.is_empty() && !token.addresses.is_empty() && !token.endpoints.is_empty();
        if whole { Ok(token) } else { Err(TokenError::Malformed("length")) }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.to_bytes()))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim().strip_prefix(TOKEN_PREFIX).ok_or(TokenError::Prefix)?;
        if text.len() > TEXT_MAX {
            return Err(TokenError::Altered);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Altered)?;
        Self::from_bytes(&bytes)
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_LEN] {
    *digest(&SHA256, bytes).as_ref().first_chunk().expect("a digest is longer")
}
