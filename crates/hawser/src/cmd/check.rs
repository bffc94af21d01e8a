//! `hawser check`: whether `up` would take a configuration, or `shim` one of a shim.

use std::path::PathBuf;

use clap::Args;
use hawser_config::{Config, DEFAULT_FILE, LoadError};
use hawser_portal::keys::Keys;

use crate::failure::Failure;

/// Check a configuration and change nothing
#[derive(Debug, Args)]
pub struct Check {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
}

impl Check {
    /// Reads the file and the keys it names. Where these are missing here, or not this user's to read, the
    /// configuration is told to be correct, and the status tells that `up` would not start: it may be checked elsewhere
    /// than where it runs.
    pub fn run(self) -> Result<(), Failure> {
        #[cfg(feature = "scion")]
        if hawser_shim::config::is_shim(&self.config) {
            return self.shim();
        }
        let (config, text) = hawser_config::read(&self.config)?;
        for old in Config::outdated(&text, &self.config.display().to_string()) {
            eprintln!("warning: {old}");
            old.corrected.iter().for_each(|line| eprintln!("hint: write: {line}"));
        }
        let missing = match Keys::load(&config, &self.config, &text) {
            Err(LoadError::Key(error)) if error.is_out_of_reach() => Some(error),
            checked => {
                drop(checked?);
                None
            }
        };
        let (links, peers) = (config.links.len(), config.peers.len());
        eprintln!("{}: correct (links: {links}, peers: {peers})", self.config.display());
        missing.map_or(Ok(()), |error| Err(Failure::hinted(Some(error.hint()), error)))
    }

    /// Reads the file, and the map it names.
    #[cfg(feature = "scion")]
    fn shim(&self) -> Result<(), Failure> {
        let config = hawser_shim::config::load(&self.config)?;
        let map = config.map.as_deref().map(|map| hawser_shim::config::read_map(map, config.dns)).transpose()?;
        let (routes, mapped) = (config.routes.len(), map.map_or(0, |map| map.len()));
        eprintln!("{}: correct (routes: {routes}, in the map: {mapped})", self.config.display());
        Ok(())
    }
}
