//! What a SCION path to an endpoint is known by in packets, whichever way they go.
//!
//! A packet names no AS between the first and the last, but every interface in its hop fields. From a known AS on,
//! interfaces say which way it is: each leads to one neighbour. Their authenticators and segment ids do not belong to
//! it: they change when the path is renewed, or on the way.

use crate::addr::EndpointAddr;
use crate::packet::DataplaneView;
use std::net::IpAddr;

/// An endpoint, and the interfaces from there to here. Empty at first; its memory is used again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Key(Vec<u8>);

impl Key {
    /// Of a packet that came from `endpoint` along `path`.
    pub(super) fn set_came(&mut self, endpoint: &EndpointAddr, path: &DataplaneView<'_>) {
        self.begin(endpoint, path.as_bytes().len());
        for (info, hops) in path.segments() {
            for hop in hops {
                let (from, to) = if info.construction { (hop.ingress, hop.egress) } else { (hop.egress, hop.ingress) };
                self.0.extend(from.0.to_be_bytes());
                self.0.extend(to.0.to_be_bytes());
            }
        }
    }

    /// Of a packet that goes to `endpoint` along `path`.
    pub(super) fn set_goes(&mut self, endpoint: &EndpointAddr, path: &DataplaneView<'_>) {
        self.set_came(endpoint, path);
        self.0[HEAD_LEN..].reverse();
        // The order of interfaces is right now, that of each one's bytes is not.
        self.0[HEAD_LEN..].as_chunks_mut::<2>().0.iter_mut().for_each(|id| id.reverse());
    }

    fn begin(&mut self, endpoint: &EndpointAddr, path_len: usize) {
        let host = match endpoint.host.ip() {
            IpAddr::V4(host) => host.to_ipv6_mapped(),
            IpAddr::V6(host) => host,
        };
        self.0.clear();
        self.0.extend(endpoint.isd_as.to_bits().to_be_bytes());
        self.0.extend(host.octets());
        self.0.extend(endpoint.host.port().to_be_bytes());
        // The same interfaces in other segments have headers of another length.
        self.0.extend((path_len as u16).to_be_bytes());
    }
}

/// Bytes before the interfaces: ISD-AS, host, port, length of the path.
const HEAD_LEN: usize = 8 + 16 + 2 + 2;

#[cfg(test)]
mod tests {
    use super::super::testing::{dataplane, endpoint};
    use super::*;
    use crate::packet::DataplaneView;

    fn came(at: &str, path: &DataplaneView<'_>) -> Key {
        let mut key = Key::default();
        key.set_came(&endpoint(at), path);
        key
    }

    #[test]
    fn there_and_back_are_the_same_way_and_renewal_does_not_change_it() {
        let (one, renewed) = (dataplane(&[41, 1, 2, 3], 7), dataplane(&[41, 1, 2, 3], 8));
        let other = dataplane(&[41, 1, 2, 4], 7);
        let view = DataplaneView::of(&one).expect("a path");
        let mut goes = Key::default();
        goes.set_goes(&endpoint("1-ff00:0:112,10.0.0.9:31000"), &view);
        let back = |path| {
            let reversed = DataplaneView::of(path).expect("a path").reversed().expect("a way back");
            came("1-ff00:0:112,10.0.0.9:31000", &DataplaneView::of(&reversed).expect("a path"))
        };
        assert_eq!(back(&one), goes);
        assert_eq!(back(&renewed), goes, "other authenticators");
        assert_ne!(back(&other), goes, "another interface");
        assert_ne!(came("1-ff00:0:112,10.0.0.9:31000", &view), goes, "another direction");
    }

    #[test]
    fn every_part_of_an_endpoint_counts() {
        let path = dataplane(&[1, 2], 1);
        let view = DataplaneView::of(&path).expect("a path");
        let keys = [
            "1-ff00:0:112,10.0.0.9:31000",
            "1-ff00:0:112,10.0.0.9:31001",
            "1-ff00:0:112,10.0.0.8:31000",
            "2-ff00:0:112,10.0.0.9:31000",
        ]
        .map(|at| came(at, &view));
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key));
        }
    }
}
