//! From files to a configuration: [`read`] the text, that of the peers beside it (`peers.d/NAME.toml`), and parse them.
//!
//! 1. [`read_text`] reads a file whole, and no more than a configuration can be.
//! 2. Files of peers, each with `[[peer]]` sections alone, are read by name; then the configuration, with their peers.
//! 3. What two files claim is found. [`log_format`] is read by itself, before everything else.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::error::{Fault, Faults};
use super::links::{self, Peer};
use super::reading::{Sited, parse, parse_into, values};
use super::schema::{PEER, SCHEMA};
use super::words::LogFormat;
use super::{Config, ConfigError, KeyFileError, key, sections};

/// Where files of peers are, beside the configuration.
pub const PEERS_FOLDER: &str = "peers.d";
/// Others are not read: editors and package managers leave some.
const EXTENSION: &str = "toml";
/// No configuration is larger, in bytes: 4,000 peers take 1 MB.
pub const TEXT_LIMIT: u64 = 8 << 20;

/// Why a configuration was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("read configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file has faults.
    #[error("read configuration {}: {} error{} to correct", path.display(), errors.len(), plural(errors))]
    Faulty {
        /// The file.
        path: PathBuf,
        /// Its text, to show the faults in.
        text: String,
        /// The faults, in the order of the file; at least one.
        errors: Vec<ConfigError>,
    },
    /// A key file could not be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

fn plural(errors: &[ConfigError]) -> &'static str {
    if errors.len() == 1 { "" } else { "s" }
}

/// Reads a regular file of at most [`TEXT_LIMIT`] bytes. It waits for nobody: a FIFO without a writer is refused at
/// once, as are devices.
///
/// # Errors
/// [`LoadError::Read`].
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    bounded(path, TEXT_LIMIT).map_err(|source| LoadError::Read { path: path.to_owned(), source })
}

fn bounded(path: &Path, limit: u64) -> io::Result<String> {
    let file = key::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    // A file may grow while it is read.
    if file.take(limit + 1).read_to_string(&mut text)? as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {} MiB", limit >> 20)));
    }
    Ok(text)
}

/// Reads and parses a file.
///
/// # Errors
/// [`LoadError::Read`], and [`LoadError::Faulty`] with every fault.
pub fn from_file<T>(
    path: &Path,
    parse: impl FnOnce(&str, &str) -> Result<T, Vec<ConfigError>>,
) -> Result<(T, String), LoadError> {
    let text = read_text(path)?;
    match parse(&text, &path.display().to_string()) {
        Ok(value) => Ok((value, text)),
        Err(errors) => Err(LoadError::Faulty { path: path.to_owned(), text, errors }),
    }
}

/// Reads the configuration at `path`, without its keys. Gives its text too.
///
/// # Errors
/// [`LoadError::Read`] and [`LoadError::Faulty`].
pub fn read(path: &Path) -> Result<(Config, String), LoadError> {
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let files = PeerFile::read_all(folder)?;
    let others = files.as_deref().map(|files| values(files.iter().flat_map(|file| file.peers.clone())));
    let name = path.display().to_string();
    let mut config = match parse(&text, &name, SCHEMA, |file| Config::of(file, others.as_deref())) {
        Ok(config) => config,
        Err(errors) => return Err(LoadError::Faulty { path: path.to_owned(), text, errors }),
    };
    distinct(path, &config, files.as_deref().unwrap_or_default())?;
    // All that a portal has is beside its configuration, as key files are, unless it says where.
    let portal = &mut config.portal;
    portal.keylog = portal.keylog.take().map(|file| folder.join(file));
    (portal.socket, portal.state_dir) = (folder.join(&portal.socket), folder.join(&portal.state_dir));
    Ok((config, text))
}

/// The format of the log that the configuration at `path` asks for; lines where it cannot be read, or has faults there.
pub fn log_format(path: &Path) -> LogFormat {
    let Ok(text) = read_text(path) else { return LogFormat::Text };
    let mut faults = Faults::new("", &text);
    parse_into(&text, SCHEMA, &mut faults, |file| file.one("log", sections::log)).unwrap_or(LogFormat::Text)
}

/// A file of peers, in which everything is right. Plain data.
struct PeerFile {
    path: PathBuf,
    text: String,
    peers: Vec<Sited<Peer>>,
}

impl PeerFile {
    /// All of them, or why the first of them cannot be read; none where the folder is not there.
    fn read_all(folder: &Path) -> Result<Option<Vec<Self>>, LoadError> {
        let folder = folder.join(PEERS_FOLDER);
        let entries = std::fs::read_dir(&folder);
        let paths = entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
        let mut paths = match paths {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            paths => paths.map_err(|source| LoadError::Read { path: folder, source })?,
        };
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        paths.sort();
        paths.into_iter().map(Self::read).collect::<Result<_, _>>().map(Some)
    }

    fn read(path: PathBuf) -> Result<Self, LoadError> {
        let (peers, text) = from_file(&path, |text, file| parse(text, file, &[PEER], links::peers))?;
        Ok(Self { path, text, peers })
    }
}

/// Looks for what two files claim: a name, a key, a network. That is a fault of the file that is read later.
fn distinct(main: &Path, config: &Config, files: &[PeerFile]) -> Result<(), LoadError> {
    let beside: usize = files.iter().map(|file| file.peers.len()).sum();
    let own = config.peers.iter().take(config.peers.len() - beside);
    let mut claimed: BTreeMap<String, &Path> = own.flat_map(claims).map(|(claim, _)| (claim, main)).collect();
    for file in files {
        let name = file.path.display().to_string();
        let mut faults = Faults::new(&name, &file.text);
        for peer in &file.peers {
            for (claim, fault) in claims(&peer.value) {
                if let Some(first) = claimed.insert(claim, &file.path).filter(|first| *first != file.path) {
                    faults.add(peer.span.clone(), Fault::new(fault).hint(format!("first in {}", first.display())));
                }
            }
        }
        if !faults.is_empty() {
            let (path, text) = (file.path.clone(), file.text.clone());
            return Err(LoadError::Faulty { path, text, errors: faults.into_sorted() });
        }
    }
    Ok(())
}

/// What only one peer may have, each with the fault of a second one.
fn claims(peer: &Peer) -> Vec<(String, &'static str)> {
    let mut claims = vec![
        (format!("name {}", peer.name), "the peer name is taken"),
        (format!("key {}", peer.public_key), "another peer has the public key"),
    ];
    let networks = peer.allowed_ips.iter();
    claims.extend(networks.map(|net| (format!("network {net}"), "the network belongs to a peer already")));
    claims
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, MAIN};
    use super::*;

    fn peer(name: &str, key: usize, net: &str) -> String {
        tests::peer(name, key, &format!("allowed_ips = [\"{net}\"]\n"))
    }

    /// A configuration and files of peers.
    fn folder(main: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(PEERS_FOLDER)).expect("a folder");
        std::fs::write(folder.path().join("hawser.toml"), main).expect("a file");
        for (name, text) in files {
            std::fs::write(folder.path().join(PEERS_FOLDER).join(name), text).expect("a file");
        }
        folder
    }

    fn faults(main: &str, files: &[(&str, &str)]) -> Vec<String> {
        let folder = folder(main, files);
        match read(&folder.path().join("hawser.toml")) {
            Err(LoadError::Faulty { errors, .. }) => {
                let shown = |error: &ConfigError| {
                    let file = Path::new(&error.file).file_name().expect("a name").to_string_lossy().into_owned();
                    format!("{file}:{}: {}", error.line, error.message)
                };
                errors.iter().map(shown).collect()
            }
            other => panic!("{:?}", other.map(|(config, _)| config)),
        }
    }

    #[test]
    fn peers_come_from_the_configuration_and_then_from_their_files_by_name() {
        let (one, two) = (peer("one", 0, "10.77.0.2/32"), peer("two", 1, "10.77.0.3/32"));
        let main = format!("{MAIN}{two}");
        let files = [("z.toml", one.as_str()), ("half.toml.tmp", "["), ("README", "no peer")];
        let folder = folder(&main, &files);
        let (config, _) = read(&folder.path().join("hawser.toml")).expect("it is right");
        let names: Vec<&str> = config.peers.iter().map(|peer| peer.name.as_str()).collect();
        assert_eq!(names, ["two", "one"]);
    }

    #[test]
    fn a_portal_that_listens_needs_no_peer_once_there_is_a_folder_for_them() {
        let folder = folder(MAIN, &[]);
        let path = folder.path().join("hawser.toml");
        assert_eq!(read(&path).expect("it is right").0.peers, []);
        std::fs::remove_dir(folder.path().join(PEERS_FOLDER)).expect("it is empty");
        assert!(matches!(read(&path), Err(LoadError::Faulty { .. })), "a portal of old needs one");
    }

    #[test]
    fn faults_are_told_with_the_file_that_has_them() {
        let (one, again) = (peer("one", 0, "10.77.0.2/32"), peer("one", 1, "10.77.0.3/32"));
        let (same_key, same_net) = (peer("two", 0, "10.77.0.3/32"), peer("two", 1, "10.77.0.2/32"));
        // A configuration, files beside it, and what is said.
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
        let table: [Row<'_>; 8] = [
            (MAIN, &[("a.toml", &one), ("b.toml", &again)], &["b.toml:1: the peer name is taken"]),
            (MAIN, &[("a.toml", &one), ("b.toml", &same_key)], &["b.toml:1: another peer has the public key"]),
            (&format!("{MAIN}{one}"), &[("b.toml", &same_net)], &["b.toml:1: the network belongs to a peer already"]),
            (MAIN, &[("a.toml", "[tun]\nname = \"x\"\n")], &["a.toml:1: unknown section `tun`"]),
            (
                MAIN,
                &[("a.toml", &one.replace("name", "nam"))],
                &["a.toml:1: missing key `name` in [[peer]]", "a.toml:2: unknown key `nam` in [[peer]]"],
            ),
            (MAIN, &[("a.toml", &format!("{one}standby = \"x\"\n[pear]\n"))], &["a.toml:6: unknown section `pear`"]),
            (MAIN, &[("a.toml", "[[peer")], &["a.toml:1: unclosed array table, expected `]]`"]),
            (
                &MAIN.replace("listen = [\"0.0.0.0:4920\"]", ""),
                &[("a.toml", &one)],
                &["hawser.toml:1: peer \"one\" has no `endpoints`, and the portal does not `listen`"],
            ),
        ];
        for (main, files, expect) in table {
            assert_eq!(faults(main, files), expect, "{files:?}");
        }
    }

    #[test]
    fn a_file_of_peers_that_cannot_be_read_is_named() {
        let folder = folder(MAIN, &[]);
        let file = folder.path().join(PEERS_FOLDER).join("a.toml");
        std::fs::create_dir(&file).expect("a folder");
        match read(&folder.path().join("hawser.toml")) {
            Err(LoadError::Read { path, .. }) => assert_eq!(path, file),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_regular_files_of_some_size_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        std::fs::write(&path, "1234").expect("a file");
        assert_eq!(bounded(&path, 4).expect("it fits"), "1234");
        assert_eq!(bounded(&path, 3).expect_err("it does not").kind(), io::ErrorKind::FileTooLarge);
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a fifo");
        for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
            let kind = bounded(path, 4).expect_err("no regular file").kind();
            assert!(matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory), "{path:?}: {kind:?}");
        }
    }
}
