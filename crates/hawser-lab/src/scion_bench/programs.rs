//! The programs over snet, and the reference implementation's dispatchers, built by Go.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::go::GoModule;
use crate::localnet::Services;

use super::candidate::Code;

/// A file that both modules have.
macro_rules! shared {
    ($name:literal) => {
        ($name, include_str!(concat!("../../scion-baselines/program/", $name)))
    };
}

/// A module: the shared files, and those of its own folder.
macro_rules! module {
    ($name:literal, $folder:literal) => {
        GoModule {
            name: $name,
            files: &[
                ("go.mod", include_str!(concat!("../../scion-baselines/", $folder, "/go.mod"))),
                ("go.sum", include_str!(concat!("../../scion-baselines/", $folder, "/go.sum"))),
                ("network.go", include_str!(concat!("../../scion-baselines/", $folder, "/network.go"))),
                shared!("main.go"),
                shared!("order.go"),
                shared!("blast.go"),
                shared!("queues.go"),
                shared!("file.go"),
            ],
            packages: &["."],
        }
    };
}

/// Over snet of v0.15.1.
const SNET: GoModule = module!("scion-snet", "snet");
/// Over snet of v0.11.0, the last that speaks to a dispatcher.
const CLASSIC: GoModule = module!("scion-snet-classic", "classic");
/// What either's program is called: the last part of its module's name.
const PROGRAM: &str = "baseline";

/// Where the reference implementation's programs are kept. Nothing is built until it is asked for. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Baselines {
    cache: PathBuf,
}

impl Baselines {
    /// In a cache.
    pub fn new(cache: &Path) -> Self {
        Self { cache: cache.to_owned() }
    }

    /// The program that sends and receives; none where that is this executable.
    pub fn end(&self, code: Code) -> Result<Option<PathBuf>, LabError> {
        let module = match code {
            Code::Classic => CLASSIC,
            Code::Snet | Code::SnetQueues => SNET,
            Code::Hawser | Code::HawserPlain | Code::Bulk | Code::Session => return Ok(None),
        };
        module.build(&self.cache, &say).map(|folder| Some(folder.join(PROGRAM)))
    }

    /// The dispatcher of v0.11.0, with a Unix socket.
    pub fn dispatcher(&self) -> Result<PathBuf, LabError> {
        Ok(Services::classic(&self.cache, &say)?.program("dispatcher"))
    }

    /// The dispatcher of v0.15.1, without.
    pub fn shim(&self) -> Result<PathBuf, LabError> {
        Ok(Services::build(&self.cache, &say)?.program("dispatcher"))
    }
}

fn say(line: &str) {
    tracing::info!("{line}");
    eprintln!("{line}");
}
