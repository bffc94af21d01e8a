//! Lists the scenario files, so that they become part of the program: `scenarios/GROUP/NAME.toml`, and traces beside
//! them.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &mut files)?;
    }
    files.sort();
    let entry = |file: &PathBuf| {
        let name = file.strip_prefix(&root).unwrap_or(file);
        format!("    ({:?}, include_str!({:?})),\n", name.display().to_string(), file.display().to_string())
    };
    let list: String = files.iter().map(entry).collect();
    fs::write(Path::new(&variable("OUT_DIR")).join("scenarios.rs"), format!("&[\n{list}]\n"))
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml" || extension == "trace") {
            files.push(path);
        }
    }
    Ok(())
}
