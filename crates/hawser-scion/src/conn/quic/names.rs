//! Names that quinn knows SCION endpoints by: it takes socket addresses, and hands them back.
//!
//! A name is an address of the discard-only prefix of IPv6 with a number, and the endpoint's port: `[100::7]:443`.
//! It means something to this process only, and nothing is ever sent to it.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use crate::addr::EndpointAddr;

/// 100::/64, the discard-only prefix (RFC 6666).
const PREFIX: u128 = 0x0100_u128 << 112;

/// Names at most; beyond, the oldest that was not asked for by this end goes.
const MOST_NAMES: usize = 65_536;

/// Names and who they stand for. Empty at first. For several threads.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<EndpointAddr, u64>,
    endpoints: BTreeMap<u64, Named>,
    last: u64,
}

#[derive(Debug)]
struct Named {
    endpoint: EndpointAddr,
    /// This end asked for it: it stays.
    stays: bool,
}

impl Names {
    /// The name of an endpoint, a new one if it has none; one that `stays` is never forgotten.
    pub(super) fn name(&self, endpoint: EndpointAddr, stays: bool) -> SocketAddr {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match table.numbers.get(&endpoint) {
            Some(number) => *number,
            None => table.add(endpoint),
        };
        if let Some(named) = table.endpoints.get_mut(&number) {
            named.stays |= stays;
        }
        SocketAddr::new(Ipv6Addr::from_bits(PREFIX | u128::from(number)).into(), endpoint.host.port())
    }

    /// The endpoint a name stands for.
    pub(super) fn endpoint(&self, name: SocketAddr) -> Option<EndpointAddr> {
        let IpAddr::V6(ip) = name.ip() else { return None };
        let number = u64::try_from(ip.to_bits() ^ PREFIX).ok()?;
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.endpoints.get(&number).map(|named| named.endpoint)
    }
}

impl Table {
    fn add(&mut self, endpoint: EndpointAddr) -> u64 {
        if self.endpoints.len() >= MOST_NAMES {
            let oldest = self.endpoints.iter().find(|(_, named)| !named.stays).map(|(number, _)| *number);
            if let Some(named) = oldest.and_then(|number| self.endpoints.remove(&number)) {
                self.numbers.remove(&named.endpoint);
            }
        }
        self.last += 1;
        self.numbers.insert(endpoint, self.last);
        self.endpoints.insert(self.last, Named { endpoint, stays: false });
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(number: usize) -> EndpointAddr {
        let host = Ipv6Addr::from_bits(0xfd << 120 | number as u128);
        EndpointAddr::new("1-ff00:0:110".parse().expect("an AS"), SocketAddr::new(host.into(), 443))
    }

    #[test]
    fn a_name_stands_for_its_endpoint_and_no_other() {
        let names = Names::default();
        let (a, b) = (names.name(endpoint(1), false), names.name(endpoint(2), false));
        assert_eq!((a.to_string(), b.to_string()), ("[100::1]:443".to_owned(), "[100::2]:443".to_owned()));
        assert_eq!(names.name(endpoint(1), true), a);
        assert_eq!((names.endpoint(a), names.endpoint(b)), (Some(endpoint(1)), Some(endpoint(2))));
        for nobody in ["[100::3]:443", "[2001:db8::1]:443", "[100:0:0:1::1]:443", "10.0.0.1:443"] {
            assert_eq!(names.endpoint(nobody.parse().expect("an address")), None, "{nobody}");
        }
    }

    #[test]
    fn strangers_push_out_strangers_only() {
        let names = Names::default();
        let ours = names.name(endpoint(0), true);
        let stranger = names.name(endpoint(1), false);
        for number in 2..MOST_NAMES + 10 {
            names.name(endpoint(number), false);
        }
        assert_eq!((names.endpoint(ours), names.endpoint(stranger)), (Some(endpoint(0)), None));
    }
}
