//! The command as a user without rights runs it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

#[path = "copied.rs"]
pub mod copied;

/// Source: Debian Policy 9.2.2.
const NOBODY: u32 = 65_534;

/// Runs it as nobody. Needs root, to become nobody.
pub fn run(arguments: &[&str]) -> Output {
    // Where the executable lies, nobody may not be able to go.
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir();
    let folder = folder.expect("a folder can be made");
    let program = folder.path().join("hawser");
    copied::program(Path::new(env!("CARGO_BIN_EXE_hawser")), &program);
    let output = Command::new(program).args(arguments).current_dir("/").uid(NOBODY).output();
    output.expect("it runs (needs root, to become nobody)")
}
