//! Where a tunnel's program is.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// What the variable that names a program begins with.
const VARIABLE: &str = "HAWSER_LAB_";

/// The program of a contender: what an option names, or the variable for its kind, or that of this name on the PATH.
///
/// # Errors
/// [`LabError::Missing`], which says how it is named.
pub(super) fn find(kind: &str, (option, told): (&str, Option<&Path>), name: &str) -> Result<PathBuf, LabError> {
    let variable = variable(kind);
    let told = told.map(Path::to_owned).or_else(|| env::var_os(&variable).map(PathBuf::from));
    let found = match &told {
        Some(told) => told.is_file().then(|| told.clone()),
        None => on_path(name, &env::var_os("PATH").unwrap_or_default()),
    };
    found.ok_or_else(|| {
        let what = told.map_or_else(|| name.to_owned(), |told| told.display().to_string());
        let hint = format!("install {kind}, or name its program: option `{option}`, or {variable}");
        LabError::Missing { what, hint }
    })
}

fn variable(kind: &str) -> String {
    VARIABLE.to_owned() + &kind.to_uppercase().replace('-', "_")
}

fn on_path(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_missing_by_name() {
        let error = find("mlvpn-rs", ("program", None), "a-program-nobody-has").expect_err("nobody has it");
        assert_eq!(error.to_string(), "a-program-nobody-has is missing");
        let hint = "install mlvpn-rs, or name its program: option `program`, or HAWSER_LAB_MLVPN_RS";
        assert_eq!(error.hint(), Some(hint));
        let told = find("mlvpn", ("program", Some(Path::new("/nowhere/mlvpn"))), "sh").expect_err("not there");
        assert_eq!(told.to_string(), "/nowhere/mlvpn is missing", "what was told goes before the PATH");
    }

    #[test]
    fn a_program_is_found_on_the_path_in_its_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        for place in [&first, &second] {
            std::fs::create_dir(place).and_then(|()| std::fs::write(place.join("it"), "")).expect("written");
        }
        let path = env::join_paths([Path::new("/nowhere"), &second, &first]).expect("no colons");
        assert_eq!(on_path("it", &path), Some(second.join("it")));
        assert_eq!(on_path("another", &path), None);
    }
}
