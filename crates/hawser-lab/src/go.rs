//! Programs that Go builds from their modules, at exact versions, into a cache.
//!
//! 1. A module of ours, part of this executable, names what is built and every version of it.
//! 2. Its folder in the cache is called after what it says: whatever is in there was built from just that.
//! 3. One process builds at a time; others wait, and find it built.
//! 4. It is built beside its place and moved there whole: what is half built is never found.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ring::digest::{SHA256, digest};

use crate::error::LabError;
use crate::text::hex;

/// The folder of ours in the user's cache.
const FOLDER: &str = "hawser-lab";
/// Bytes of a digest that tell one module from another.
const DIGEST_BYTES: usize = 8;
/// Neither symbols nor debug information: less to compile, to link and to keep. Source: go tool link, go tool compile.
const LEAN: [&str; 2] = ["-ldflags=-s -w", "-gcflags=all=-dwarf=false"];
/// C that Go compiles (SQLite: 25 s of a processor with -O1, 9 without) is not where these programs spend their time.
const C_FLAGS: &str = "-O0 -g0";
/// What go says first where it is not there.
const HINT: &str = "install Go 1.24 or later: https://go.dev/dl";

/// A module that is built, and what of it. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct GoModule {
    /// What users know it by, and its folder in the cache begins with.
    pub name: &'static str,
    /// Its files by name: `go.mod`, `go.sum`, and programs of ours, if there are any.
    pub files: &'static [(&'static str, &'static str)],
    /// Packages of programs; each program is called as its package's last part.
    pub packages: &'static [&'static str],
}

/// Where tools that the lab builds are kept. Source: XDG Base Directory Specification 0.8.
pub fn cache() -> PathBuf {
    let folder = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    cache.unwrap_or_else(|| PathBuf::from("/var/cache")).join(FOLDER)
}

impl GoModule {
    /// Its folder in a cache, whether it is built or not.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        let files = self.files.iter().flat_map(|(name, text)| [*name, *text]);
        let parts = files.chain(self.packages.iter().copied()).chain(LEAN).chain([C_FLAGS]);
        let all: String = parts.map(|part| format!("{part}\0")).collect();
        let short = hex(&digest(&SHA256, all.as_bytes()).as_ref()[..DIGEST_BYTES]);
        cache.join(format!("{}-{short}", self.name))
    }

    /// Steps 1 to 4; gives the folder with the programs. What takes long is told by `say`.
    ///
    /// # Errors
    /// [`LabError::Missing`] where there is no Go, [`LabError::Refused`] with what it said where it cannot build.
    pub fn build(&self, cache: &Path, say: &dyn Fn(&str)) -> Result<PathBuf, LabError> {
        let folder = self.folder(cache);
        if folder.is_dir() {
            return Ok(folder);
        }
        fs::create_dir_all(cache).map_err(self.failed("make the cache"))?;
        let lock = File::create(cache.join(format!("{}.lock", self.name))).map_err(self.failed("make a lock"))?;
        if lock.try_lock().is_err() {
            say(&format!("{} is being built by another process", self.name));
            lock.lock().map_err(self.failed("wait for the lock"))?;
        }
        if folder.is_dir() {
            return Ok(folder);
        }
        let beside = tempfile::Builder::new().prefix("building-").tempdir_in(cache);
        let beside = beside.map_err(self.failed("make a folder"))?;
        let (sources, programs) = (beside.path().join("src"), beside.path().join("bin"));
        self.compile(&sources, &programs, say)?;
        fs::rename(&programs, &folder).map_err(self.failed("keep it"))?;
        Ok(folder)
    }

    fn compile(&self, sources: &Path, programs: &Path, say: &dyn Fn(&str)) -> Result<(), LabError> {
        for (name, text) in self.files {
            let file = sources.join(name);
            let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text));
            made.map_err(self.failed(&format!("write {name}")))?;
        }
        fs::create_dir_all(programs).map_err(self.failed("make a folder"))?;
        say(&format!("building {} with go, once: this takes a minute or two", self.name));
        let mut go = Command::new("go");
        go.current_dir(sources).env("CGO_CFLAGS", C_FLAGS).stdin(Stdio::null());
        go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"]).args(LEAN);
        // A slash at its end says that it is a folder, also for a single program.
        go.arg("-o").arg(programs.join("")).args(self.packages);
        let output = go.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::missing("go", HINT),
            _ => self.failed("run go")(error),
        })?;
        if output.status.success() {
            return Ok(());
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        Err(LabError::refused(format!("build {}", self.name), reason))
    }

    fn failed(&self, action: &str) -> impl Fn(io::Error) -> LabError {
        move |error| LabError::refused(format!("build {}", self.name), format!("{action}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const HELLO: GoModule = GoModule {
        name: "hello",
        files: &[
            ("go.mod", "module hello\n\ngo 1.21\n"),
            ("one/main.go", "package main\n\nfunc main() { println(\"one\") }\n"),
            ("two/main.go", "package main\n\nfunc main() {}\n"),
        ],
        packages: &["./one", "./two"],
    };

    #[test]
    fn a_module_is_built_once_and_anew_when_it_says_something_else() {
        let cache = tempfile::tempdir().expect("a folder");
        let said = RefCell::new(Vec::new());
        let say = |line: &str| said.borrow_mut().push(line.to_owned());
        let folder = HELLO.build(cache.path(), &say).expect("it builds (this test needs go)");
        assert!(folder.join("one").is_file() && folder.join("two").is_file());
        assert_eq!(HELLO.build(cache.path(), &say).expect("it is there"), folder);
        assert_eq!(said.borrow().len(), 1, "built once: {said:?}");
        let other = GoModule { packages: &["./one"], ..HELLO };
        assert_ne!(other.folder(cache.path()), folder);
        let left: Vec<_> = fs::read_dir(cache.path()).expect("it is there").flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), 2, "the programs and a lock: {left:?}");
    }

    #[test]
    fn what_the_compiler_says_is_told() {
        let cache = tempfile::tempdir().expect("a folder");
        let wrong = GoModule { files: &[("go.mod", "module x\n\ngo 1.21\n"), ("main.go", "package main\n")], ..HELLO };
        let error = GoModule { packages: &["."], ..wrong }.build(cache.path(), &|_| {}).expect_err("it has no main");
        assert!(error.to_string().starts_with("build hello: ") && error.to_string().contains("main"), "{error}");
    }
}
