//! Plain TCP over the best single link.
//!
//! 1. Without a LAN applications use the link's addresses, and what they send to the server's leaves by that link or
//!    not at all.
//! 2. With a LAN the portals' places forward over the link.

use super::links::{choose, has_lan, lead};
use super::undo::Undo;
use super::{Contender, Offer, Programs, Transport};
use crate::error::LabError;
use crate::options::Options;
use crate::scenario::ContenderPlan;
use crate::stage::{Forward, Stage};

/// One link, without a tunnel. Down at first; one owner.
#[derive(Debug)]
struct Tcp {
    label: String,
    link: Option<String>,
    undo: Undo,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    let mut options = Options::of_contender(plan);
    let link = options.string("link")?;
    options.finish()?;
    Ok(Box::new(Tcp { label: plan.label.clone(), link, undo: Undo::default() }))
}

impl Contender for Tcp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        let link = choose(stage, self.link.as_deref(), &self.label)?;
        let ends = stage.forward_over(&[link], Forward::First)?;
        if !has_lan(stage) {
            lead(stage, link, ends.server, &mut self.undo)?;
        }
        Ok(Offer { ends, socket: Transport::Tcp, programs: Vec::new(), portals: None })
    }

    fn down(&mut self, stage: &Stage) -> Result<(), LabError> {
        self.undo.undo()?;
        stage.stop_forwarding()
    }
}
