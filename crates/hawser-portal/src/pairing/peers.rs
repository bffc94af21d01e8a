//! Peers as commands write them: a file each in `peers.d`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hawser_config::{PEERS_FOLDER, PeerName, PublicKey};
use ipnet::IpNet;
use serde::Deserialize;

use super::files::{FileError, failed, make_folder, write_private};

/// The file of a peer that a command wrote, beside a configuration.
pub fn peer_file(folder: &Path, name: &PeerName) -> PathBuf {
    folder.join(PEERS_FOLDER).join(format!("{name}.toml"))
}

/// Of a file of peers, what tells one from another. Plain data.
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    peer: Vec<Keyed>,
}

/// The same of one peer. Plain data.
#[derive(Deserialize)]
struct Keyed {
    public_key: String,
}

/// Writes a peer's file, where none is there that has its key: whether it wrote.
///
/// # Errors
/// [`FileError`], also where a file is there without that key: somebody edited it.
pub fn add_peer(folder: &Path, name: &PeerName, key: &PublicKey, allowed_ips: &[IpNet]) -> Result<bool, FileError> {
    make_folder(&folder.join(PEERS_FOLDER))?;
    let file = peer_file(folder, name);
    match fs::read_to_string(&file) {
        Ok(text) if has_key(&text, key) => return Ok(false),
        Ok(_) => {
            let other = io::Error::new(io::ErrorKind::AlreadyExists, "it was edited: another peer is in it, or none");
            return Err(failed("write", &file)(other));
        }
        // What cannot be read cannot be written.
        Err(_) => {}
    }
    let networks: Vec<String> = allowed_ips.iter().map(|net| format!("\"{net}\"")).collect();
    let mut text = String::from("# Written by `hawser peer`, or when a token was used; may be edited.\n[[peer]]\n");
    let _ = writeln!(text, "name = \"{name}\"\npublic_key = \"{key}\"\nallowed_ips = [{}]", networks.join(", "));
    write_private(&file, &text).map(|()| true)
}

/// Whether one of its peers has this key: a comment is no peer.
fn has_key(text: &str, key: &PublicKey) -> bool {
    let peers = toml::from_str(text).map_or_else(|_| Vec::new(), |Written { peer }| peer);
    peers.iter().any(|peer| PublicKey::parse(&peer.public_key).is_ok_and(|other| other == *key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_and_one_that_was_edited_is_taken_for_the_peers_only_if_it_has_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let [own, other] = [1, 2].map(|byte| PublicKey::new([byte; 32]).expect("not zero"));
        let (name, net) = (PeerName::parse("shed").expect("a name"), "10.77.0.9/32".parse().expect("a net"));
        let add = || add_peer(folder.path(), &name, &own, &[net]).map_err(|error| error.to_string());
        assert_eq!(add(), Ok(true));
        let file = peer_file(folder.path(), &name);
        let text = fs::read_to_string(&file).expect("it was written");
        let refused = Err(format!("write {}", file.display()));
        let commented: String = text.lines().map(|line| format!("# {line}\n")).collect();
        let table = [
            (text.clone(), Ok(false)),
            (format!("{text}endpoints = []"), Ok(false)),
            (text.replace("public_key = ", "public_key="), Ok(false)),
            (commented, refused.clone()),
            (String::new(), refused.clone()),
            (text.replace(&own.to_string(), &other.to_string()), refused.clone()),
            (format!("{text}[[peer"), refused),
        ];
        for (edited, expect) in table {
            fs::write(&file, &edited).expect("it is written");
            assert_eq!(add(), expect, "{edited}");
            assert_eq!(fs::read_to_string(&file).expect("it is there"), edited, "it stays as it is");
        }
    }
}
