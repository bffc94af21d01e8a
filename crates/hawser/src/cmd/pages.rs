//! `hawser pages`: man pages and completions, written where packages and `/usr/local` keep them.
//!
//! 1. A man page for the program and for each command, below `share/man/man1`. 2. Completions for bash, zsh and fish.
//!
//! They are made from the arguments that this very binary understands, so that they never say anything else.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Arguments;
use crate::failure::Failure;

/// Where man pages are, below the directory that was named.
const MAN: &str = "share/man/man1";
/// Where each shell looks for the completion of a command, below the directory that was named.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/hawser"),
    (Shell::Zsh, "share/zsh/site-functions/_hawser"),
    (Shell::Fish, "share/fish/vendor_completions.d/hawser.fish"),
];

/// Write man pages and shell completions
#[derive(Debug, Args)]
pub struct Pages {
    /// The directory that is written to, such as /usr/local
    #[arg(value_name = "DIRECTORY")]
    prefix: PathBuf,
}

impl Pages {
    /// Writes them all; says where.
    pub fn run(self) -> Result<(), Failure> {
        write_man_pages(&self.prefix.join(MAN))?;
        for (shell, file) in COMPLETIONS {
            write_completion(shell, &self.prefix.join(file))?;
        }
        println!("{}: man pages, completions for bash, zsh and fish", self.prefix.join("share").display());
        Ok(())
    }
}

/// Step 1.
fn write_man_pages(directory: &Path) -> Result<(), Failure> {
    let written =
        std::fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
    written.map_err(|error| failed(directory, &error))
}

/// Step 2.
fn write_completion(shell: Shell, file: &Path) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "hawser", &mut text);
    let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(file, text)).map_err(|error| failed(file, &error))
}

fn failed(what: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("write {}: {error}", what.display()))
}
