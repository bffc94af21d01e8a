//! A token's bytes, written and read item by item. Whoever reads takes nothing for granted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_config::{KEY_BYTES, PeerName, PublicKey};
use ipnet::IpNet;

use super::{Endpoint, Host, TokenError};

/// Kinds of an address, and of a host name.
const NAME: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;
/// Transports of an endpoint, as bits.
const UDP: u8 = 1;
const TCP: u8 = 2;

pub fn put_count(out: &mut Vec<u8>, count: usize) {
    out.push(u8::try_from(count).expect("whoever makes a token has few of anything"));
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend(text.as_bytes());
}

pub fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.push(V4);
            out.extend(address.octets());
        }
        IpAddr::V6(address) => {
            out.push(V6);
            out.extend(address.octets());
        }
    }
}

pub fn put_endpoints(out: &mut Vec<u8>, endpoints: &[Endpoint]) {
    put_count(out, endpoints.len());
    for endpoint in endpoints {
        out.push(if endpoint.udp { UDP } else { 0 } | if endpoint.tcp { TCP } else { 0 });
        out.extend(endpoint.port.to_be_bytes());
        match &endpoint.host {
            Host::Address(address) => put_address(out, *address),
            Host::Name(name) => {
                out.push(NAME);
                put_text(out, name.as_str());
            }
        }
    }
}

/// What is left of a token's bytes. Used by one thread.
pub struct Reader<'t>(pub &'t [u8]);

impl<'t> Reader<'t> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'t [u8], TokenError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(TokenError::Malformed(what))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const LEN: usize>(&mut self, what: &'static str) -> Result<[u8; LEN], TokenError> {
        self.take(LEN, what)?.try_into().map_err(|_| TokenError::Malformed(what))
    }

    pub fn byte(&mut self, what: &'static str) -> Result<u8, TokenError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub fn text(&mut self, what: &'static str) -> Result<&'t str, TokenError> {
        let count = self.byte(what)?;
        std::str::from_utf8(self.take(count.into(), what)?).map_err(|_| TokenError::Malformed(what))
    }

    pub fn list<T>(
        &mut self,
        what: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, TokenError>,
    ) -> Result<Vec<T>, TokenError> {
        let count = self.byte(what)?;
        (0..count).map(|_| item(self)).collect()
    }

    pub fn address(&mut self, what: &'static str) -> Result<IpAddr, TokenError> {
        match self.byte(what)? {
            V4 => Ok(Ipv4Addr::from(self.array::<4>(what)?).into()),
            V6 => Ok(Ipv6Addr::from(self.array::<16>(what)?).into()),
            _ => Err(TokenError::Malformed(what)),
        }
    }

    pub fn public_key(&mut self) -> Result<PublicKey, TokenError> {
        const WHAT: &str = "public key";
        PublicKey::new(self.array::<KEY_BYTES>(WHAT)?).map_err(|_| TokenError::Malformed(WHAT))
    }

    pub fn name(&mut self) -> Result<PeerName, TokenError> {
        const WHAT: &str = "name";
        PeerName::parse(self.text(WHAT)?).map_err(|_| TokenError::Malformed(WHAT))
    }

    pub fn network(&mut self) -> Result<IpNet, TokenError> {
        const WHAT: &str = "inner address";
        let length = self.byte(WHAT)?;
        IpNet::new(self.address(WHAT)?, length).map_err(|_| TokenError::Malformed(WHAT))
    }

    pub fn endpoint(&mut self) -> Result<Endpoint, TokenError> {
        const WHAT: &str = "endpoint";
        let wrong = TokenError::Malformed(WHAT);
        let transports = self.byte(WHAT)?;
        let port = u16::from_be_bytes(self.array(WHAT)?);
        let host = if self.0.first() == Some(&NAME) {
            self.byte(WHAT)?;
            match Host::parse(self.text(WHAT)?) {
                Some(name @ Host::Name(_)) => name,
                _ => return Err(wrong),
            }
        } else {
            Host::Address(self.address(WHAT)?)
        };
        if port == 0 || transports == 0 || transports & !(UDP | TCP) != 0 {
            return Err(wrong);
        }
        Ok(Endpoint { host, port, udp: transports & UDP != 0, tcp: transports & TCP != 0 })
    }
}
