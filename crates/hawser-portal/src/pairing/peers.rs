//! Peers as commands write them: a file each in `peers.d`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hawser_config::{PEERS_FOLDER, PeerName, PublicKey};
use ipnet::IpNet;

use super::files::{FileError, failed, make_folder, write_private};

/// The file of a peer that a command wrote, beside a configuration.
pub fn peer_file(folder: &Path, name: &PeerName) -> PathBuf {
    folder.join(PEERS_FOLDER).join(format!("{name}.toml"))
}

/// Writes a peer's file; one that has its key already stays as it is.
///
/// # Errors
/// [`FileError`], also where another peer's is there.
pub fn add_peer(folder: &Path, name: &PeerName, key: &PublicKey, allowed_ips: &[IpNet]) -> Result<(), FileError> {
    make_folder(&folder.join(PEERS_FOLDER))?;
    let file = peer_file(folder, name);
    match fs::read_to_string(&file) {
        Ok(text) if text.contains(&format!("public_key = \"{key}\"")) => return Ok(()),
        Ok(_) => {
            let other = io::Error::new(io::ErrorKind::AlreadyExists, "another peer is in it");
            return Err(failed("write", &file)(other));
        }
        // What cannot be read cannot be written.
        Err(_) => {}
    }
    let networks: Vec<String> = allowed_ips.iter().map(|net| format!("\"{net}\"")).collect();
    let mut text = String::from("# Written by `hawser peer`, or when a token was used; may be edited.\n[[peer]]\n");
    let _ = writeln!(text, "name = \"{name}\"\npublic_key = \"{key}\"\nallowed_ips = [{}]", networks.join(", "));
    write_private(&file, &text)
}
