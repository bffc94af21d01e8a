//! A copy of a program that can be run at once.

use std::path::Path;
use std::process::Command;

/// Copies by another process. Were it ours, a child that a test beside us forks at that moment would hold the copy
/// open for writing, and the kernel would not run it ("text file busy", execve(2)).
pub fn program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().expect("cp runs");
    assert!(copied.success(), "cp {} {}: {copied}", from.display(), to.display());
}
