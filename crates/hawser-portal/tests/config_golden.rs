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
    let wrong: Vec<String> = inputs().iter().filter_map(|input| difference(input)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_damaged_configuration_is_answered_with_places_inside_it() {
    for input in inputs() {
        let text = std::fs::read_to_string(&input).expect("it can be read");
        for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            let (before, after) = text.split_at(at);
            let rest = after.get(1..).unwrap_or_default();
            for damaged in [
                before.to_owned(),
                format!("{before}{rest}"),
                format!("{before}\"{rest}"),
                format!("{before}ö\n{after}"),
            ] {
                for error in Config::parse(&damaged, "damaged.toml").err().into_iter().flatten() {
                    assert!(damaged.get(error.span.clone()).is_some(), "{error} at {:?} in\n{damaged}", error.span);
                    assert!(error.line <= damaged.lines().count() + 1, "{error}");
                }
            }
        }
    }
}

/// All files of the folder, sorted.
fn inputs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config");
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("tests/config is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= PAIRS_MIN, "only {} files in {}", inputs.len(), folder.display());
    inputs
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
