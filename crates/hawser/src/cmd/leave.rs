//! `hawser leave`: what `hawser join` did is undone for good.

use std::path::PathBuf;

use clap::Args;
use hawser_config::{DEFAULT_FILE, DEFAULT_TUN_NAME};
use hawser_portal::pairing::remove_file;
use hawser_portal::run::clean_up;

use super::join::was_written_by_join;
use super::kill_switch;
use super::pairing::home::Home;
use super::pairing::service::Service;
use crate::failure::Failure;

/// Undo `hawser join`: end the portal, and remove its key and configuration
#[derive(Debug, Args)]
pub struct Leave {
    /// The configuration that `hawser join` wrote
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
}

impl Leave {
    /// Ends the portal first, which undoes all that it set.
    pub fn run(self) -> Result<(), Failure> {
        let home = Home::of(&self.config);
        if !home.config.exists() {
            return Err(Failure::wrong(format!("leave: there is no {}: nothing was joined", home.config.display())));
        }
        if !was_written_by_join(&home.config) {
            let failure = Failure::wrong(format!("leave: {} was not written by `hawser join`", home.config.display()));
            return Err(failure.hint("end that portal and remove its files yourself: systemctl disable --now hawser"));
        }
        // A file that was broken since does not say which device it is: the one that `join` writes.
        let tun = hawser_config::read(&home.config)
            .map_or(DEFAULT_TUN_NAME.to_owned(), |(read, _)| read.tun.name.to_string());
        Service::of(&home).stop(&home)?;
        // A portal that was killed has undone nothing.
        clean_up(&tun).map_err(|error| Failure::hinted(error.hint(), error))?;
        kill_switch::open(&home.config)?;
        // While the configuration is there this can be said again.
        for file in [&home.key, &home.config] {
            remove_file(file).map_err(Failure::failed)?;
        }
        for folder in [&home.state, &home.folder] {
            // Something of others may be there.
            let _ = std::fs::remove_dir(folder);
        }
        eprintln!("left: the portal has ended, its key and configuration are gone");
        eprintln!("hint: on the server, to forget this host: sudo hawser peer remove NAME");
        Ok(())
    }
}
