//! Whole files: each tests/config/NAME.toml must give what NAME.golden says, the parsed configuration or its faults.
//!
//! `HAWSER_WRITE_GOLDEN=1` writes the golden files anew; read the difference before it is committed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hawser_portal::config::{Config, ConfigError};

/// Fewer pairs than this mean that the folder was not found or not read.
const PAIRS_MIN: usize = 30;

#[test]
fn every_configuration_gives_its_golden_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config");
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("tests/config is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= PAIRS_MIN, "only {} files in {}", inputs.len(), folder.display());

    let wrong: Vec<String> = inputs.iter().filter_map(|input| difference(input)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What differs between a file's answer and its golden one.
fn difference(input: &Path) -> Option<String> {
    let text = std::fs::read_to_string(input).expect("it can be read");
    let name = input.file_name().and_then(|n| n.to_str()).expect("a plain name");
    let answer = match Config::parse(&text, name) {
        Ok(config) => format!("{config:#?}\n"),
        Err(errors) => errors.iter().map(render).collect(),
    };
    let golden = input.with_extension("golden");
    if std::env::var_os("HAWSER_WRITE_GOLDEN").is_some() {
        std::fs::write(&golden, &answer).expect("it can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    (answer != expected).then(|| format!("{name}: expected\n{expected}\nfound\n{answer}"))
}

fn render(error: &ConfigError) -> String {
    let mut text = format!("{error}\n");
    if let Some(hint) = &error.hint {
        let _ = writeln!(text, "  hint: {hint}");
    }
    if let Some(line) = &error.corrected {
        let _ = writeln!(text, "  write: {line}");
    }
    text
}
