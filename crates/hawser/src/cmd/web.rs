//! `hawser web`: a link to the page that shows the portal.

use std::path::PathBuf;

use clap::Args;
use hawser_config::DEFAULT_SOCKET;
use hawser_portal::api::{Client, Deed};

use super::output::{print, unanswered};
use crate::failure::Failure;

/// Print a link to the page that shows the running portal; it works once, within five minutes
#[derive(Debug, Args)]
pub struct Web {
    /// The portal's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

impl Web {
    /// Has the portal open the page where it is not yet, and prints the link.
    pub fn run(self) -> Result<(), Failure> {
        let answer = Client::order(&self.socket, Deed::Login).map_err(|error| unanswered(error, "up", "web"))?;
        let link = answer.as_ref().and_then(|answer| answer.get("link")?.as_str());
        let link = link.ok_or_else(|| Failure::failed("ask portal for a link: the answer has none"))?;
        print(&format!("{link}\n"))
    }
}
