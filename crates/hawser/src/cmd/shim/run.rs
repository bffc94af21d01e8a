//! `hawser shim run`: a program that asks for TCP gets MPTCP.
//!
//! 1. The library that does it is found: beside `hawser`, or in `../lib/hawser`. It is installed and not unpacked from
//!    the binary, because whoever can write to an unpacked copy could change every program that is run so.
//! 2. What will not be upgraded is told: set-user-ID and static programs, a kernel without MPTCP. They run all the
//!    same.
//! 3. The program takes this process's place, with the library before others that are to be preloaded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::program;
use crate::failure::Failure;

/// The library's file, as cargo names it.
const LIBRARY: &str = "libhawser_preload.so";
/// Where it is, from the directory of `hawser`: beside it, installed by a package, or where cargo left it.
const PLACES: [&str; 3] = ["", "../lib/hawser", "deps"];
/// The dynamic linker's variable, and what stands between libraries in it (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";
const BETWEEN: [u8; 2] = [b':', b' '];
/// Whether the kernel has MPTCP (Documentation/networking/mptcp-sysctl).
const ENABLED: &str = "/proc/sys/net/mptcp/enabled";

#[derive(Debug, Args)]
pub struct Run {
    /// The program, and what it is told
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Run {
    /// Runs the program; comes back only where that fails.
    pub fn run(self) -> Result<(), Failure> {
        let library = library()?;
        let (name, arguments) =
            self.command.split_first().ok_or_else(|| Failure::wrong("run a program: none is named"))?;
        if let Some(reason) = fs::read_to_string(ENABLED).map_or(Some("has no"), |value| switched_off(&value)) {
            eprintln!("warning: the kernel {reason} mptcp: {} gets plain tcp", name.display());
        }
        if let Some(reason) = program::find(name).and_then(|path| program::refuses(&path)) {
            eprintln!("warning: {} {reason}: it gets plain tcp", name.display());
        }
        let error = Command::new(name).args(arguments).env(PRELOAD, preloaded(&library)).exec();
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => "name a program that is in PATH, or its file",
            _ => "see that the file may be executed",
        };
        Err(Failure::failed(format!("run {}: {error}", name.display())).hint(hint))
    }
}

fn switched_off(value: &str) -> Option<&'static str> {
    (value.trim() == "0").then_some("has net.mptcp.enabled = 0, and so no")
}

/// Step 1.
fn library() -> Result<PathBuf, Failure> {
    let own = env::current_exe().map_err(|error| Failure::failed(format!("find {LIBRARY}: {error}")))?;
    let directory = own.parent().unwrap_or(Path::new("/"));
    let places = PLACES.map(|place| directory.join(place).join(LIBRARY));
    let found = places.iter().find(|place| place.is_file()).ok_or_else(|| {
        let error = format!("find {LIBRARY}: it is neither beside {} nor in ../lib/hawser from there", own.display());
        Failure::failed(error).hint("install it beside hawser")
    })?;
    if found.as_os_str().as_bytes().iter().any(|byte| BETWEEN.contains(byte)) {
        let error = format!("preload {}: the dynamic linker takes no path with a colon or a space", found.display());
        return Err(Failure::failed(error).hint("install hawser elsewhere"));
    }
    Ok(found.clone())
}

/// Step 3: what the variable says.
fn preloaded(library: &Path) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(others) = env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        value.push(OsStr::new(":"));
        value.push(others);
    }
    value
}
