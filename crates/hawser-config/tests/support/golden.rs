//! Golden pairs: each NAME.toml of a folder must give what NAME.golden beside it says.
//!
//! `HAWSER_WRITE_GOLDEN=1` writes the golden files anew; read the difference before it is committed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hawser_config::ConfigError;

/// All files of a folder, sorted. Fewer than `least` mean that it was not found or not read.
pub fn inputs(folder: &Path, least: usize) -> Vec<PathBuf> {
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= least, "only {} files in {}", inputs.len(), folder.display());
    inputs
}

/// Holds every answer, to a text and its file's name, against its golden one.
pub fn assert_golden(inputs: &[PathBuf], answer: impl Fn(&str, &str) -> String) {
    let wrong: Vec<String> = inputs.iter().filter_map(|input| difference(input, &answer)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn difference(input: &Path, answer: impl Fn(&str, &str) -> String) -> Option<String> {
    let text = std::fs::read_to_string(input).expect("it can be read");
    let name = input.file_name().and_then(|name| name.to_str()).expect("a plain name");
    let answer = answer(&text, name);
    let golden = input.with_extension("golden");
    if std::env::var_os("HAWSER_WRITE_GOLDEN").is_some() {
        std::fs::write(&golden, &answer).expect("it can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    (answer != expected).then(|| format!("{name}: expected\n{expected}\nfound\n{answer}"))
}

/// Faults as golden files have them.
pub fn render(errors: &[ConfigError]) -> String {
    let mut text = String::new();
    for error in errors {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{error}");
        if let Some(hint) = &error.hint {
            let _ = writeln!(text, "  hint: {hint}");
        }
        if let Some(line) = &error.corrected {
            let _ = writeln!(text, "  write: {line}");
        }
    }
    text
}
