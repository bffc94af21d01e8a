//! Programs whose clock says something else (faketime(1)).

use std::fs;

/// Where Debian has the library, for `LD_PRELOAD`.
pub fn library() -> String {
    let folders = fs::read_dir("/usr/lib").expect("it is there").flatten();
    let library =
        folders.map(|folder| folder.path().join("faketime/libfaketime.so.1")).find(|library| library.exists());
    library.expect("libfaketime (`make tools` installs it)").display().to_string()
}
