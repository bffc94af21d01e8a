//! `hawser demo`: two links, one line, shown in half a minute.
//!
//! 1. The topology: 50 Mbit/s and 10 ms, 30 Mbit/s and 25 ms (one way), each with 100 ms of queue.
//! 2. One TCP transfer over link 1 alone: the kernel forwards it, without a tunnel.
//! 3. Two portals start; a ping beside nothing.
//! 4. One TCP transfer over the bond, a ping beside it; in its middle link 1 goes silent (every packet vanishes), and
//!    comes back.
//! 5. The figures, all from what the server received and when; pings from what the client got back.
//!
//! What is seen meanwhile is a `view`'s business.

mod chart;
mod figures;
mod hub;
mod page;
mod script;
mod view;

use std::path::Path;

pub use figures::Figures;
pub use hub::{HubFigures, run_hub};
pub(crate) use view::restore_terminal;

use crate::cleanup;
use crate::error::LabError;

/// Runs the demo with this `hawser` executable; whether it is shown on standard output meanwhile.
///
/// # Errors
/// Where it lacks root, a portal does not come to work, or nothing was received.
pub fn run(program: &Path, shown: bool) -> Result<Figures, LabError> {
    cleanup::start()?;
    if !shown {
        return script::play(program, &mut |_| ());
    }
    let figures = script::play(program, &mut *view::for_stdout());
    restore_terminal();
    figures
}

/// Plays on until this process is ended, for whoever looks at the local portal's page; `tell` is given the link to it.
///
/// # Errors
/// Where it lacks root, a portal does not come to work, or serves no page.
pub fn run_page(program: &Path, tell: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    cleanup::start()?;
    page::play(program, tell)
}
