//! What the bond is judged by, on any links.
//!
//! 1. A [`Network`] is links and what happens to them, drawn or recorded.
//! 2. [`bulk`]: one TCP stream, its goodput over what the links could carry, and a ping beside it.

pub mod bulk;

use crate::net::LinkSpec;
use crate::portal::Recipe;
use crate::situation::second;
use crate::world::{Act, LOCAL, REMOTE, Setup, World};
use hawser_core::congestion::Kind;

/// Links, and what happens to them. A plain value.
#[derive(Clone)]
pub struct Network {
    /// What it is called.
    pub name: String,
    /// Decides all that is random.
    pub seed: u64,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// What happens to them, and at which second.
    pub acts: Vec<(f64, Act)>,
    /// How long it is looked at.
    pub seconds: f64,
}

impl Network {
    /// A bond of its links.
    pub fn world(&self) -> World {
        let setup = Setup {
            seed: self.seed,
            links: self.links.clone(),
            recipes: [LOCAL, REMOTE].map(|side| Recipe::of(side, Kind::Bbr)),
            clocks: None,
            both_greet: false,
        };
        let mut world = World::new(setup);
        self.acts.iter().for_each(|(at, act)| world.at(second(*at), act.clone()));
        world
    }
}
