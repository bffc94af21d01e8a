//! Where a case writes its figures, and with what they are to be judged: commit, date, machine.

use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde_json::{Value, json};

/// Writes a case's figures to target/tmp/endure/CASE.json.
pub fn write(case: &str, command: &str, figures: &impl Serialize) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("endure");
    std::fs::create_dir_all(&folder).expect("a folder");
    let all = json!({ "case": case, "command": command, "on": on(), "figures": figures });
    let path = folder.join(format!("{case}.json"));
    std::fs::write(&path, serde_json::to_string_pretty(&all).expect("plain data")).expect("a file");
    eprintln!("{}", path.display());
}

/// Commit, date, kernel and load of the moment.
pub fn on() -> Value {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "commit": said("git", &["describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]),
        "date": said("date", &["-u", "+%Y-%m-%d %H:%M"]),
        "machine": format!("{cpus} processors, {}", said("uname", &["-sr"])),
        "load": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
    })
}

/// A number that the environment may give.
pub fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text} is no number")))
}
