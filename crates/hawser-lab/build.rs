//! Lists the scenario files, so that they become part of the program: `scenarios/GROUP/NAME.toml`, and traces beside
//! them.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name: &str| PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}")));
    let root = variable("CARGO_MANIFEST_DIR").join("scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut list = String::new();
    for group in sorted(&root)?.iter().filter(|path| path.is_dir()) {
        for file in sorted(group)? {
            if file.extension().is_some_and(|extension| extension == "toml" || extension == "trace") {
                let name = file.strip_prefix(&root).unwrap_or(&file);
                let (name, path) = (name.display().to_string(), file.display().to_string());
                list += &format!("    ({name:?}, include_str!({path:?})),\n");
            }
        }
    }
    fs::write(variable("OUT_DIR").join("scenarios.rs"), format!("&[\n{list}]\n"))
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
