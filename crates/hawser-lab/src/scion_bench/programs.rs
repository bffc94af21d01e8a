//! The programs over snet, and the reference implementation's dispatchers, built by Go.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::go::GoModule;
use crate::localnet::{CLASSIC as CLASSIC_SERVICES, SERVICES};

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

/// The program that sends and receives, kept in a cache; none where that is this executable.
pub(super) fn end(cache: &Path, code: Code) -> Result<Option<PathBuf>, LabError> {
    let module = match code {
        Code::Classic => CLASSIC,
        Code::Snet | Code::SnetQueues => SNET,
        Code::Hawser | Code::HawserPlain | Code::Bulk | Code::Session => return Ok(None),
    };
    module.build(cache, &say).map(|folder| Some(folder.join(PROGRAM)))
}

/// The dispatcher of v0.11.0, with a Unix socket.
pub(super) fn dispatcher(cache: &Path) -> Result<PathBuf, LabError> {
    Ok(CLASSIC_SERVICES.build(cache, &say)?.join("dispatcher"))
}

/// The dispatcher of v0.15.1, without.
pub(super) fn shim(cache: &Path) -> Result<PathBuf, LabError> {
    Ok(SERVICES.build(cache, &say)?.join("dispatcher"))
}

fn say(line: &str) {
    tracing::info!("{line}");
    eprintln!("{line}");
}
