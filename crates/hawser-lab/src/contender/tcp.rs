//! Plain TCP over the best single link.
//!
//! 1. Without a LAN there is nothing to set: applications use the link's addresses, and a stage routes by source.
//! 2. With a LAN the link's router forwards between client and server.

use super::links::{choose, forward, has_lan};
use super::options::Options;
use super::undo::Undo;
use super::{Contender, Offer, Programs, Transport};
use crate::error::LabError;
use crate::scenario::ContenderPlan;
use crate::stage::{Ends, Stage};

/// One link, without a tunnel. Down at first; one owner.
#[derive(Debug)]
struct Tcp {
    label: String,
    link: Option<String>,
    undo: Undo,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    let mut options = Options::new(plan);
    let link = options.string("link")?;
    options.finish()?;
    Ok(Box::new(Tcp { label: plan.label.clone(), link, undo: Undo::default() }))
}

impl Contender for Tcp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        let link = choose(stage, self.link.as_deref(), &self.label)?;
        let mut ends = Ends { client: link.address, server: link.far_address };
        if has_lan(stage) {
            ends = stage.hosts;
            let mut undo = Undo::default();
            forward(stage, &[link], &ends, &mut undo)?;
            self.undo = undo;
        }
        Ok(Offer { ends, socket: Transport::Tcp, programs: Vec::new() })
    }

    fn down(&mut self, _: &Stage) -> Result<(), LabError> {
        self.undo.undo()
    }
}
