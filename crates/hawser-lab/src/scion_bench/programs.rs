//! The programs over snet, and the reference implementation's dispatchers, built by Go.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::go::GoModule;
use crate::localnet::{CLASSIC as CLASSIC_SERVICES, SERVICES};

use super::plan::{Code, Way};

/// A module: the files of its own folder, and those that both have.
macro_rules! module {
    ($name:literal, $folder:literal) => {
        GoModule {
            name: $name,
            files: &[
                ("go.mod", include_str!(concat!("../../scion-baselines/", $folder, "/go.mod"))),
                ("go.sum", include_str!(concat!("../../scion-baselines/", $folder, "/go.sum"))),
                ("network.go", include_str!(concat!("../../scion-baselines/", $folder, "/network.go"))),
                ("main.go", include_str!("../../scion-baselines/program/main.go")),
                ("order.go", include_str!("../../scion-baselines/program/order.go")),
                ("blast.go", include_str!("../../scion-baselines/program/blast.go")),
                ("queues.go", include_str!("../../scion-baselines/program/queues.go")),
                ("file.go", include_str!("../../scion-baselines/program/file.go")),
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

/// The dispatcher of v0.11.0, with a Unix socket; or that of v0.15.1, without.
pub(super) fn dispatcher(cache: &Path, way: Way) -> Result<PathBuf, LabError> {
    let services = if way == Way::Dispatcher { CLASSIC_SERVICES } else { SERVICES };
    Ok(services.build(cache, &say)?.join("dispatcher"))
}

fn say(line: &str) {
    tracing::info!("{line}");
    eprintln!("{line}");
}
