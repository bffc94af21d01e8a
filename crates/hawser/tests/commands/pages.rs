//! Man pages and completions name every command that the binary has.

use std::fs;
use std::path::Path;
use std::process::Command;

fn hawser(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_hawser")).args(arguments).output().expect("the binary starts");
    assert!(out.status.success(), "hawser {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("help is text")
}

/// The commands that a help text lists, in its order.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Two spaces before a command; lines that go on are further in.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Every command with those below it, as they are typed: `shim run`.
fn commands() -> Vec<String> {
    let mut all = listed(&hawser(&["--help"]));
    let mut at = 0;
    while at < all.len() {
        let words: Vec<&str> = all[at].split(' ').chain(["--help"]).collect();
        let below: Vec<String> = listed(&hawser(&words)).iter().map(|name| format!("{} {name}", all[at])).collect();
        all.extend(below);
        at += 1;
    }
    all
}

fn written() -> tempfile::TempDir {
    let prefix = tempfile::tempdir().expect("a directory");
    hawser(&["pages", prefix.path().to_str().expect("its path is text")]);
    prefix
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn every_command_has_a_man_page_that_names_its_options() {
    let prefix = written();
    let commands = commands();
    assert!(commands.iter().any(|command| command == "peer add"), "commands below others are found: {commands:?}");
    for command in &commands {
        let page = prefix.path().join(format!("share/man/man1/hawser-{}.1", command.replace(' ', "-")));
        let page = read(&page).replace("\\-", "-");
        let help = hawser(&command.split(' ').chain(["--help"]).collect::<Vec<_>>());
        let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        for option in options {
            let option = option.trim_matches(|c: char| !c.is_ascii_lowercase() && c != '-');
            assert!(page.contains(option), "hawser {command}: its page does not name {option}");
        }
    }
}

#[test]
fn every_shell_completes_every_command() {
    let prefix = written();
    let files =
        ["bash-completion/completions/hawser", "zsh/site-functions/_hawser", "fish/vendor_completions.d/hawser.fish"];
    for file in files {
        let text = read(&prefix.path().join("share").join(file));
        for command in commands() {
            let name = command.rsplit(' ').next().unwrap_or_default();
            assert!(text.contains(name), "{file} does not name `{command}`");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let out = Command::new(env!("CARGO_BIN_EXE_hawser")).args(["pages", "/proc/nowhere"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.starts_with("error: write /proc/nowhere/"), "{said}");
}
