//! The shim, between hosts of SCION networks.
//!
//! 1. [`paths`]: four disjoint paths together; two that share a link, against two that do not.
//! 2. [`cut`]: one path of four cut under a stream; all of them, for ten seconds.
//! 3. [`wire`]: what a full segment costs on a path of three hops, by capture; in datagrams, and as SCION's layer 4.
//! 4. [`quic`]: the same file by quinn over the same path, in turns.
//! 5. [`churn`]: 500 connections a second. 6. [`hostile`]: a stream beside a stranger's datagrams.

pub(super) mod churn;
pub(super) mod cut;
pub(super) mod hostile;
pub(super) mod paths;
pub(super) mod quic;
pub(super) mod wire;

use hawser_scion::select::Criterion;

use super::{Asked, Figures, LabError};
use crate::localnet::Localnet;
use crate::shim::{Place, ShimPair, ShimPlan};

/// A network with shims in it. The shims end before the network does.
struct Ground {
    pair: ShimPair,
    net: Localnet,
}

impl Ground {
    /// With these lines more in the configuration of both shims.
    fn start(asked: &Asked, place: &Place, egress: u8, select: Criterion, more: &str) -> Result<Self, LabError> {
        let net = Localnet::up(&place.topology)?;
        let between = ShimPlan::between(place.ends, egress, select);
        let plan = ShimPlan { client: more.to_owned(), server: more.to_owned(), ..between };
        let pair = ShimPair::start(&asked.program, &net, &plan)?;
        Ok(Self { pair, net })
    }
}
