//! The shim, between hosts of SCION networks: [`streams`] by several paths, which may be cut; what [`files`] cost on
//! the wire, and beside quinn; what [`strain`]s it.

pub(super) mod files;
pub(super) mod strain;
pub(super) mod streams;

use std::time::Duration;

use hawser_scion::select::Criterion;
use hawser_shim::status::ConnectionStatus;
use hawser_wire::Moment;
use hawser_wire::traffic::{RunningFlows, Towards};

use super::{Asked, Figures, LabError};
use crate::localnet::Localnet;
use crate::shim::{Place, ShimPair};

/// A network with shims in it. The shims end before the network does.
struct Ground {
    pair: ShimPair,
    net: Localnet,
}

impl Ground {
    /// With these lines more in the configuration of both shims.
    fn start(asked: &Asked, place: &Place, egress: u8, select: Criterion, more: &str) -> Result<Self, LabError> {
        let net = Localnet::up(&place.topology)?;
        let pair = ShimPair::start(&asked.program, &net, place.ends, egress, select, [more; 2])?;
        Ok(Self { pair, net })
    }

    /// A stream for so long, once it has this many flows; and when it started.
    fn stream(
        &self,
        towards: Towards,
        flows: u8,
        duration: Duration,
    ) -> Result<(ConnectionStatus, Moment, RunningFlows), LabError> {
        let connected = self.pair.flows(towards, 1).connect()?;
        let connection = self.pair.wait_flows(usize::from(flows))?;
        let start = Moment::now();
        Ok((connection, start, connected.start(start, duration)?))
    }
}
