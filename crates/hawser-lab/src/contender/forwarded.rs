//! Without a tunnel: the stage forwards what applications send, as routers do.
//!
//! - [`tcp`] goes by the best single link. Without a LAN applications use the link's addresses, and what they send to
//!   the server's leaves by that link or not at all. With a LAN the portals' places forward over the link.
//! - [`ecmp`] is per-flow balancing in the kernel: a route over all links that are up, at both ends; a flow's link
//!   follows from its addresses and ports. Links that come and go change the route.

use super::links::{Choice, has_lan, lead};
use super::undo::Undo;
use super::{Contender, ContenderPlan, Down, LabError, Offer, Options, Programs, Stage, Transport};

pub(super) fn tcp(plan: &ContenderPlan, _: &Programs) -> Result<Contender, LabError> {
    let mut options = Options::of_contender(plan);
    let choice = Choice::parse(plan, &mut options)?;
    options.finish()?;
    Ok(Box::new(move |stage: &Stage| up(Some(&choice), stage)))
}

pub(super) fn ecmp(plan: &ContenderPlan, _: &Programs) -> Result<Contender, LabError> {
    Options::of_contender(plan).finish()?;
    Ok(Box::new(|stage: &Stage| up(None, stage)))
}

/// By the one link; without it, by all of them.
fn up(choice: Option<&Choice>, stage: &Stage) -> Result<(Offer, Down), LabError> {
    let links = match choice {
        Some(choice) => vec![choice.place(stage)?],
        None => (0..stage.links.len()).collect(),
    };
    let (ends, mut undo) = (stage.forward_over(&links)?, Undo::default());
    if choice.is_some() && !has_lan(stage) {
        lead(stage, links[0], ends.server, "", &mut undo)?;
    }
    let down: Down = Box::new(move |stage: &Stage| undo.undo().and_then(|()| stage.stop_forwarding()));
    Ok((Offer { ends, socket: Transport::Tcp, programs: Vec::new(), portals: None }, down))
}
