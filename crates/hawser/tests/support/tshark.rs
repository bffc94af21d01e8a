//! tshark with the dissector.

use std::path::Path;
use std::process::{Command, Stdio};

/// Reads a capture; gives for each packet the values of each field.
pub fn run(capture: &Path, options: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/wireshark/hawser.lua");
    let mut command = Command::new("tshark");
    // Two passes: a label's first datagrams may be too short to tell whether frames are in clear.
    command.args(["-n", "-2", "-X", &format!("lua_script:{}", script.display()), "-r"]).arg(capture).args(options);
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "aggregator=,"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let out = command.stdin(Stdio::null()).output().expect("run tshark (package tshark)");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !said.contains("ua:") && !said.contains("rror"), "{said}");
    let text = String::from_utf8(out.stdout).expect("text");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}
