//! Which programs the dynamic linker preloads nothing into: those that gain privileges, and those it does not load.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The bits by which a program runs as its file's owner or group (inode(7)).
const GAINS: u32 = 0o6000;
/// An ELF file's beginning, and of 64 bits (elf(5)): where the table of segments, its entries' size and number stand.
const MAGIC: [u8; 5] = [0x7f, b'E', b'L', b'F', 2];
const TABLE_AT: usize = 32;
const ENTRY_SIZE_AT: usize = 54;
const ENTRIES_AT: usize = 56;
/// The segment that names the dynamic linker (elf(5), PT_INTERP).
const INTERPRETER: u32 = 3;
/// The table stands right after the header in all that linkers write: so much of a file is enough.
const BEGINNING: u64 = 4096;

/// The file that a name means, as execvp(3) finds it.
pub(super) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Why nothing is preloaded into a program; none where it is, or nothing is known.
pub(super) fn refuses(program: &Path) -> Option<&'static str> {
    let mode = fs::metadata(program).ok()?.permissions().mode();
    if mode & GAINS != 0 {
        return Some("runs as its owner or group, and takes no preloaded library");
    }
    let mut beginning = Vec::new();
    File::open(program).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    (is_static(&beginning) == Some(true)).then_some("is linked statically, and takes no preloaded library")
}

/// Whether an ELF file of 64 bits, of this machine's byte order, needs no dynamic linker; none for all other files.
fn is_static(beginning: &[u8]) -> Option<bool> {
    if !beginning.starts_with(&MAGIC) {
        return None;
    }
    let half = |at: usize| Some(usize::from(u16::from_ne_bytes(beginning.get(at..at + 2)?.try_into().ok()?)));
    let table = u64::from_ne_bytes(beginning.get(TABLE_AT..TABLE_AT + 8)?.try_into().ok()?);
    let (table, size, count) = (usize::try_from(table).ok()?, half(ENTRY_SIZE_AT)?, half(ENTRIES_AT)?);
    for entry in 0..count {
        let at = table.checked_add(entry.checked_mul(size)?)?;
        let kind = beginning.get(at..at.checked_add(4)?)?;
        if u32::from_ne_bytes(kind.try_into().ok()?) == INTERPRETER {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(name: &str) -> Vec<u8> {
        let file = find(OsStr::new(name)).expect("it is in PATH, or named whole");
        let mut beginning = Vec::new();
        File::open(file).unwrap().take(BEGINNING).read_to_end(&mut beginning).unwrap();
        beginning
    }

    #[test]
    fn programs_that_need_the_dynamic_linker_are_told_from_others() {
        assert_eq!(is_static(&beginning("cat")), Some(false));
        assert_eq!(is_static(&beginning("/sbin/ldconfig")), Some(true));
        assert_eq!(is_static(b"#!/bin/sh\n"), None);
        let cat = beginning("cat");
        for cut in 0..1024 {
            assert_ne!(is_static(&cat[..cut]), Some(true), "cut to {cut}");
        }
    }

    #[test]
    fn names_are_found_in_path_and_files_are_themselves() {
        assert_eq!(find(OsStr::new("./x/y")), Some("./x/y".into()));
        assert!(find(OsStr::new("cat")).is_some_and(|file| file.is_absolute()));
        assert_eq!(find(OsStr::new("no-such-program-anywhere")), None);
    }
}
