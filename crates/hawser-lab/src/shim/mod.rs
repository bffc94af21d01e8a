//! Shims on hosts of a SCION network, and what is done with them.
//!
//! 1. [`Place`]: the networks, and where client and server are in them.
//! 2. [`ShimPair`]: a shim on each host, as a process of its own (`pair`).
//! 3. `files`: a file from client to server, by TCP through the shims or the portals' tunnel, or by quinn beside them.
//! 4. `wire`: what of a SCION flow passed a link, by capture.

pub(crate) mod files;
mod pair;
mod wire;

pub(crate) use pair::PORT;
pub use pair::{Shim, ShimPair};
pub(crate) use wire::scion_flow;
pub use wire::{Carried, Wire, scion_links};

use hawser_wire::Direction;

use crate::error::LabError;
use crate::localnet::Topology;

/// The ASes of client and server in two ISDs.
const ISDS: [&str; 2] = ["1-ff00:0:110", "2-ff00:0:210"];

/// A network, and in which ASes of it client and server are. Plain data.
#[derive(Clone, Debug)]
pub struct Place {
    /// The network.
    pub topology: Topology,
    /// The ASes of client and server.
    pub ends: [&'static str; 2],
}

impl Place {
    /// Two ISDs, as many disjoint paths as links; plain veths without a way.
    ///
    /// # Errors
    /// Never: the network comes along.
    pub fn parallel(links: u8, way: Option<&Direction>) -> Result<Self, LabError> {
        let mut place = Self::of(include_str!("../../topologies/two-isds.toml"), Some(links), ISDS)?;
        if let Some(way) = way {
            place.topology.shape(way);
        }
        Ok(place)
    }

    /// Two ISDs and three paths: the two faster ones share a link.
    pub(crate) fn sharing() -> Result<Self, LabError> {
        Self::of(include_str!("../../topologies/sharing-isds.toml"), None, ISDS)
    }

    /// One path, up and down: the client's line is a plain veth.
    pub(crate) fn three_hops() -> Result<Self, LabError> {
        Self::of(include_str!("../../topologies/three-hops.toml"), None, ["1-ff00:0:111", "1-ff00:0:112"])
    }

    /// Six ASes in two ISDs, 24 paths.
    pub(crate) fn shila() -> Result<Self, LabError> {
        Self::of(include_str!("../../topologies/shila.toml"), None, ["1-ff00:0:111", "2-ff00:0:211"])
    }

    fn of(text: &str, links: Option<u8>, ends: [&'static str; 2]) -> Result<Self, LabError> {
        Ok(Self { topology: Topology::parse(text, "of the shim", None, links)?, ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_that_comes_along_is_right() {
        let sizes = |place: Result<Place, LabError>| {
            let Place { topology, ends } = place.expect("no fault");
            for end in ends {
                assert!(topology.ases.iter().any(|plan| plan.id.to_string() == end && plan.hosts > 0), "{end}");
            }
            (topology.ases.len(), topology.links.len())
        };
        assert_eq!(sizes(Place::parallel(8, None)), (2, 8));
        assert_eq!(sizes(Place::sharing()), (4, 5));
        assert_eq!(sizes(Place::three_hops()), (3, 2));
        assert_eq!(sizes(Place::shila()), (6, 12));
    }
}
