//! Per-flow balancing in the kernel: a route over all links that are up, at both ends; a flow's link follows from its
//! addresses and ports. Links that come and go change the route.

use super::{Contender, ContenderPlan, LabError, Offer, Options, Programs, Stage, Transport};
use crate::stage::Forward;

/// Balancing by flow. Down at first; one owner.
#[derive(Debug)]
struct Ecmp;

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    Options::of_contender(plan).finish()?;
    Ok(Box::new(Ecmp))
}

impl Contender for Ecmp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        let links: Vec<_> = (0..stage.links.len()).collect();
        let ends = stage.forward_over(&links, Forward::Flows)?;
        Ok(Offer { ends, socket: Transport::Tcp, programs: Vec::new(), portals: None })
    }

    fn down(&mut self, stage: &Stage) -> Result<(), LabError> {
        stage.stop_forwarding()
    }
}
