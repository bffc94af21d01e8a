//! The networks that the shim is measured in.

use hawser_wire::Direction;

use crate::error::LabError;
use crate::localnet::Topology;
use crate::scenario::FileError;

const TWO_ISDS: (&str, &str) = ("two-isds.toml", include_str!("../../topologies/two-isds.toml"));
const SHARING: (&str, &str) = ("sharing-isds.toml", include_str!("../../topologies/sharing-isds.toml"));
const THREE_HOPS: (&str, &str) = ("three-hops.toml", include_str!("../../topologies/three-hops.toml"));
const SHILA: (&str, &str) = ("shila.toml", include_str!("../../topologies/shila.toml"));

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
        let mut topology = parsed(TWO_ISDS, Some(links))?;
        if let Some(way) = way {
            topology.shape(way);
        }
        Ok(Self { topology, ends: ["1-ff00:0:110", "2-ff00:0:210"] })
    }

    /// Two ISDs and three paths: the two faster ones share a link.
    pub(crate) fn sharing() -> Result<Self, LabError> {
        Ok(Self { topology: parsed(SHARING, None)?, ends: ["1-ff00:0:110", "2-ff00:0:210"] })
    }

    /// One path, up and down: the client's line is a plain veth.
    pub(crate) fn three_hops() -> Result<Self, LabError> {
        Ok(Self { topology: parsed(THREE_HOPS, None)?, ends: ["1-ff00:0:111", "1-ff00:0:112"] })
    }

    /// Six ASes in two ISDs, 24 paths.
    pub(crate) fn shila() -> Result<Self, LabError> {
        Ok(Self { topology: parsed(SHILA, None)?, ends: ["1-ff00:0:111", "2-ff00:0:211"] })
    }
}

fn parsed((file, text): (&str, &str), links: Option<u8>) -> Result<Topology, LabError> {
    let told = |error: FileError| LabError::Refused { action: format!("read {file}"), said: error.to_string() };
    Topology::parse(text, file, None, links).map_err(told)
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
