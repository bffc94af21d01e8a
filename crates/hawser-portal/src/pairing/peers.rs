//! Peers as commands write them: a file each in `peers.d`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hawser_config::{PEERS_FOLDER, PeerName, PublicKey};
use ipnet::IpNet;

use super::files::{FileError, make_folder, write_private};

/// The file of a peer that a command wrote, beside a configuration.
pub fn peer_file(folder: &Path, name: &PeerName) -> PathBuf {
    folder.join(PEERS_FOLDER).join(format!("{name}.toml"))
}

/// Writes a peer's file.
///
/// # Errors
/// [`FileError`].
pub fn add_peer(folder: &Path, name: &PeerName, key: &PublicKey, allowed_ips: &[IpNet]) -> Result<(), FileError> {
    make_folder(&folder.join(PEERS_FOLDER))?;
    let networks: Vec<String> = allowed_ips.iter().map(|net| format!("\"{net}\"")).collect();
    let mut text = String::from("# Written by `hawser peer`, or when a token was used; may be edited.\n[[peer]]\n");
    let _ = writeln!(text, "name = \"{name}\"\npublic_key = \"{key}\"\nallowed_ips = [{}]", networks.join(", "));
    write_private(&peer_file(folder, name), &text)
}
