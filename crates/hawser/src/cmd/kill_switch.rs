//! `hawser kill-switch`: the way past the tunnel, closed as `fail = "closed"` says, or opened.
//!
//! `on` is run at boot, before there is a network: also where the configuration is faulty, by what it last said. `off`
//! is the way out for who has no tunnel and wants the internet all the same.

use std::future::Future;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hawser_config::{DEFAULT_FILE, DEFAULT_TUN_NAME};
use hawser_portal::run::kill_switch::{self, KillSwitchError, Record};

use crate::failure::Failure;

/// Close or open the way past the tunnel, by which traffic leaves while there is none
#[derive(Debug, Args)]
pub struct KillSwitch {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Close it where the configuration says `fail = "closed"`, or last said so and cannot be read now; else open it
    On(Of),
    /// Open it, whatever the configuration says: until the portal starts again
    Off(Of),
}

#[derive(Debug, Args)]
struct Of {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
}

impl KillSwitch {
    /// Does it.
    pub fn run(self) -> Result<(), Failure> {
        match self.task {
            Task::On(of) => on(&of.config),
            Task::Off(of) => off(&of.config),
        }
    }
}

fn on(file: &Path) -> Result<(), Failure> {
    match hawser_config::read(file) {
        Ok((config, _)) => {
            let closed = wait(kill_switch::follow(&config))?;
            let how = if closed { "closed: nothing leaves past the tunnel" } else { "open, as the configuration says" };
            eprintln!("kill switch of {}: {how}", config.tun.name);
            Ok(())
        }
        Err(error) => {
            let records = by_records(file)?;
            // Without a file there is no portal yet.
            if records.is_empty() && !file.exists() { Ok(()) } else { Err(error.into()) }
        }
    }
}

/// Closed by what was recorded, where the configuration cannot be read.
pub(super) fn by_records(file: &Path) -> Result<Vec<Record>, Failure> {
    let records = wait(kill_switch::as_recorded(&kill_switch::state_dir(file)))?;
    for record in &records {
        eprintln!("kill switch of {}: closed, as {} last said", record.tun, file.display());
    }
    Ok(records)
}

fn off(file: &Path) -> Result<(), Failure> {
    if !open(file)? {
        eprintln!("nothing was closed");
        return Ok(());
    }
    eprintln!("hint: the portal closes it again when it starts; for good: fail = \"open\" in {}", file.display());
    Ok(())
}

/// Opens it for every TUN device of which the configuration or a record tells; where neither does, for the usual one.
/// Whether any was closed.
pub(super) fn open(file: &Path) -> Result<bool, Failure> {
    let (named, folder) = match hawser_config::read(file) {
        Ok((config, _)) => (Some(config.tun.name.to_string()), config.portal.state_dir),
        Err(_) => (None, kill_switch::state_dir(file)),
    };
    let mut tuns: Vec<String> =
        kill_switch::records(&folder).into_iter().map(|record| record.tun).chain(named).collect();
    tuns.sort();
    tuns.dedup();
    // There is no record where it could not be written.
    if tuns.is_empty() {
        tuns.push(DEFAULT_TUN_NAME.to_owned());
    }
    let mut any = false;
    for tun in &tuns {
        if wait(kill_switch::lift(&folder, tun))? {
            eprintln!("kill switch of {tun}: open, traffic leaves past the tunnel");
            any = true;
        }
    }
    Ok(any)
}

fn wait<T>(work: impl Future<Output = Result<T, KillSwitchError>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("start: {error}")))?;
    runtime.block_on(work).map_err(|error| Failure::hinted(error.hint(), error))
}
