//! Plain TCP over the best single link.
//!
//! 1. Without a LAN applications use the link's addresses, and what they send to the server's leaves by that link or
//!    not at all.
//! 2. With a LAN the portals' places forward over the link.

use super::links::{Choice, has_lan, lead};
use super::undo::Undo;
use super::{Contender, ContenderPlan, LabError, Offer, Options, Programs, Stage, Transport};
use crate::stage::Forward;

/// One link, without a tunnel. Down at first; one owner.
struct Tcp {
    choice: Choice,
    undo: Undo,
}

pub(super) fn make(plan: &ContenderPlan, _: &Programs) -> Result<Box<dyn Contender>, LabError> {
    let mut options = Options::of_contender(plan);
    let choice = Choice::parse(plan, &mut options)?;
    options.finish()?;
    Ok(Box::new(Tcp { choice, undo: Undo::default() }))
}

impl Contender for Tcp {
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError> {
        let link = self.choice.place(stage)?;
        let ends = stage.forward_over(&[link], Forward::First)?;
        if !has_lan(stage) {
            lead(stage, link, ends.server, "", &mut self.undo)?;
        }
        Ok(Offer { ends, socket: Transport::Tcp, programs: Vec::new(), portals: None })
    }

    fn down(&mut self, stage: &Stage) -> Result<(), LabError> {
        self.undo.undo()?;
        stage.stop_forwarding()
    }
}
