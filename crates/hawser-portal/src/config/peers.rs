//! Peers in files of their own, beside the configuration: `peers.d/NAME.toml`, each with `[[peer]]` sections and nothing else.
//!
//! 1. [`PeerFile::read_all`] reads those whose name ends so, by name. 2. The configuration is read with their peers.
//! 3. [`distinct`] finds what two files claim.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Fault, Faults};
use super::reader::Sited;
use super::sections::{self, Claims};
use super::shape::{self, repeated};
use super::{Config, LoadError, Peer, hub, open, read_text, reading, schema};

/// Where files of peers are, beside the configuration.
pub const PEERS_FOLDER: &str = "peers.d";
/// Others are not read: editors and package managers leave some.
const EXTENSION: &str = "toml";

/// A file of peers, in which everything is right. Plain data.
#[derive(Debug)]
pub(super) struct PeerFile {
    path: PathBuf,
    text: String,
    peers: Vec<Sited<Peer>>,
}

impl PeerFile {
    /// All of them; none where the folder is not there.
    ///
    /// # Errors
    /// [`LoadError`] of the first file that cannot be read, or has faults.
    pub fn read_all(folder: &Path) -> Result<Option<Vec<Self>>, LoadError> {
        let folder = folder.join(PEERS_FOLDER);
        let failed = |source| LoadError::Read { path: folder.clone(), source };
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(failed)?,
        };
        let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths.map_err(failed)?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        paths.sort();
        paths.into_iter().map(Self::read).collect::<Result<_, _>>().map(Some)
    }

    fn read(path: PathBuf) -> Result<Self, LoadError> {
        let text = read_text(&path)?;
        match parse(&text, &path.display().to_string()) {
            Ok(peers) => Ok(Self { path, text, peers }),
            Err(errors) => Err(LoadError::Faulty { path, text, errors }),
        }
    }

    /// Its peers, in their order.
    pub fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        self.peers.iter().map(|peer| peer.value.clone())
    }
}

fn parse(text: &str, file: &str) -> Result<Vec<Sited<Peer>>, Vec<super::ConfigError>> {
    let mut faults = Faults::new(file, text);
    let Some(tree) = reading::tree(text, &mut faults) else { return Err(faults.into_sorted()) };
    let (tree, mut claims) = (tree.get_ref(), Claims::of(tree.get_ref()));
    let found = repeated(tree, "peer", &mut faults).into_iter();
    let peers: Vec<_> = found.map(|(t, s)| sections::peer(open("peer", t, s, &mut faults), &mut claims)).collect();
    let own: Vec<_> = schema::section("peer").into_iter().copied().collect();
    shape::unknown_sections(&own, tree, &mut faults);
    // None only where a fault was noted.
    let mut peers: Vec<_> = peers.into_iter().flatten().collect();
    if faults.is_empty() {
        hub::settle(&mut peers, &mut faults);
    }
    if faults.is_empty() { Ok(peers) } else { Err(faults.into_sorted()) }
}

/// Looks for what two files claim: a name, a key, a network.
///
/// # Errors
/// [`LoadError::Faulty`] of the file that is read later.
pub(super) fn distinct(main: &Path, config: &Config, files: &[PeerFile]) -> Result<(), LoadError> {
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
    use super::super::{load, read};
    use super::*;

    const MAIN: &str =
        "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n";
    const KEYS: [&str; 2] =
        ["RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="];

    fn peer(name: &str, key: usize, net: &str) -> String {
        format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\nallowed_ips = [\"{net}\"]\n", KEYS[key])
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
                let shown = |error: &super::super::ConfigError| {
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
        let table: [Row<'_>; 7] = [
            (MAIN, &[("a.toml", &one), ("b.toml", &again)], &["b.toml:1: the peer name is taken"]),
            (MAIN, &[("a.toml", &one), ("b.toml", &same_key)], &["b.toml:1: another peer has the public key"]),
            (&format!("{MAIN}{one}"), &[("b.toml", &same_net)], &["b.toml:1: the network belongs to a peer already"]),
            (MAIN, &[("a.toml", "[tun]\nname = \"x\"\n")], &["a.toml:1: unknown section `tun`"]),
            (
                MAIN,
                &[("a.toml", &one.replace("name", "nam"))],
                &["a.toml:1: missing key `name` in [[peer]]", "a.toml:2: unknown key `nam` in [[peer]]"],
            ),
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
        match load(&folder.path().join("hawser.toml")) {
            Err(LoadError::Read { path, .. }) => assert_eq!(path, file),
            other => panic!("{other:?}"),
        }
    }
}
