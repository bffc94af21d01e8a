//! Tokens that are out: `tokens.d/NAME.toml` beside the configuration, for each peer that may still enrol.
//!
//! 1. [`Invitation::write`] makes the file, for [`super::Token`] to be given away. 2. [`Invitations::load`] reads those
//!    that may be used. 3. [`Invitations::remove`] forgets one: it was used, it expired, or it was taken back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hawser_config::PeerName;
use hawser_core::handshake::enrolment::{INVITATIONS_MAX, SECRET_LEN, Secret};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::files::{FileError, make_folder, remove_file, write_private};

/// Where they are, beside the configuration.
pub const TOKENS_FOLDER: &str = "tokens.d";
const EXTENSION: &str = "toml";

/// Why there is no invitation. Owned data.
#[derive(Debug, thiserror::Error)]
pub enum InvitationError {
    /// The system has no randomness.
    #[error("make token: the system gives no random bytes")]
    NoRandomness,
    /// As many tokens as can be are out.
    #[error("make token: {INVITATIONS_MAX} are out already")]
    TooMany,
    /// Its file was not written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Somebody may enrol under this name. Plain data, with a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// What the peer will be called.
    pub name: PeerName,
    /// By what its holder is known.
    pub secret: Secret,
    /// Until when, in seconds since 1970.
    pub expires: u32,
    /// The networks that the peer will have.
    pub allowed_ips: Vec<IpNet>,
}

/// The same as it stands in its file. Plain data.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    secret: String,
    expires: u32,
    allowed_ips: Vec<IpNet>,
}

impl Invitation {
    /// A new one, with a secret that nobody has.
    ///
    /// # Errors
    /// [`InvitationError::NoRandomness`].
    pub fn new(name: PeerName, expires: u32, allowed_ips: Vec<IpNet>) -> Result<Self, InvitationError> {
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        getrandom::fill(&mut *secret).map_err(|_| InvitationError::NoRandomness)?;
        Ok(Self { name, secret: Secret::new(*secret), expires, allowed_ips })
    }

    /// Writes it beside a configuration.
    ///
    /// # Errors
    /// [`InvitationError::File`]; [`InvitationError::TooMany`] where others are not used yet.
    pub fn write(&self, folder: &Path) -> Result<(), InvitationError> {
        let others = Invitations::load(folder, &[&self.name]).list.len();
        if others >= INVITATIONS_MAX {
            return Err(InvitationError::TooMany);
        }
        make_folder(&folder.join(TOKENS_FOLDER))?;
        let secret = STANDARD.encode(self.secret.bytes());
        let written = Written { secret, expires: self.expires, allowed_ips: self.allowed_ips.clone() };
        let text = Zeroizing::new(toml::to_string(&written).expect("strings, a number and a list"));
        let about = "# Whoever holds this secret may enrol once. `hawser peer` writes this file and removes it.\n";
        Ok(write_private(&file(folder, &self.name), &format!("{about}{}", text.as_str()))?)
    }

    /// Whether its time is over.
    pub fn is_over(&self, now: SystemTime) -> bool {
        now >= UNIX_EPOCH + Duration::from_secs(self.expires.into())
    }

    /// Whether its file is still there, beside a configuration: it was not taken back since it was read.
    pub fn is_out(&self, folder: &Path) -> bool {
        Self::read(&file(folder, &self.name)).as_ref() == Some(self)
    }

    fn read(path: &Path) -> Option<Self> {
        let name = PeerName::parse(path.file_stem()?.to_str()?).ok()?;
        let written: Written = toml::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let secret: [u8; SECRET_LEN] = STANDARD.decode(written.secret).ok()?.try_into().ok()?;
        let Written { expires, allowed_ips, .. } = written;
        Some(Self { name, secret: Secret::new(secret), expires, allowed_ips })
    }
}

/// Those that may be used, and where they are. None by default. Plain data, with secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invitations {
    /// The configuration's folder.
    pub folder: PathBuf,
    /// By name.
    pub list: Vec<Invitation>,
}

impl Invitations {
    /// Reads those beside a configuration. One whose peer is known was used, or is out of place; one that cannot be
    /// read is told in the log, and costs nobody else anything.
    pub fn load(folder: &Path, known: &[&PeerName]) -> Self {
        let entries = fs::read_dir(folder.join(TOKENS_FOLDER)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        paths.sort();
        let mut list = Vec::new();
        for path in paths {
            match Invitation::read(&path) {
                Some(invitation) => list.push(invitation),
                None => tracing::warn!(path = %path.display(), "token not read: the file is none"),
            }
        }
        list.retain(|invitation| !known.contains(&&invitation.name) && !invitation.is_over(SystemTime::now()));
        Self { folder: folder.to_owned(), list }
    }

    /// Forgets one; whether it was there.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn remove(folder: &Path, name: &PeerName) -> Result<bool, FileError> {
        remove_file(&file(folder, name))
    }
}

fn file(folder: &Path, name: &PeerName) -> PathBuf {
    folder.join(TOKENS_FOLDER).join(format!("{name}.{EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invitation(name: &str, expires: u32) -> Invitation {
        let net = "10.77.0.2/32".parse().expect("a net");
        Invitation::new(PeerName::parse(name).expect("a name"), expires, vec![net]).expect("randomness")
    }

    #[test]
    fn what_is_written_is_read_until_it_is_used_expired_or_taken_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let all = ["old", "used", "wanted"].map(|name| invitation(name, if name == "old" { 1 } else { u32::MAX }));
        all.iter().for_each(|one| one.write(folder).expect("it is written"));
        fs::write(folder.join(TOKENS_FOLDER).join("broken.toml"), "secret = 7").expect("a file");
        let [_, used, wanted] = &all;
        assert_eq!(Invitations::load(folder, &[&used.name]).list, std::slice::from_ref(wanted));
        assert!(wanted.is_out(folder) && !invitation("wanted", u32::MAX).is_out(folder), "another one of its name");
        assert!(Invitations::remove(folder, &wanted.name).expect("it is removed"));
        assert!(!wanted.is_out(folder));
        assert!(!Invitations::remove(folder, &wanted.name).expect("it is gone"));
        assert_eq!(Invitations::load(folder, &[&used.name]).list, []);
    }

    #[test]
    fn only_so_many_tokens_are_out_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |n: usize| format!("peer{n}");
        (0..INVITATIONS_MAX).for_each(|n| invitation(&name(n), u32::MAX).write(folder.path()).expect("there is room"));
        let one_more = invitation("more", u32::MAX);
        assert!(matches!(one_more.write(folder.path()), Err(InvitationError::TooMany)));
        invitation(&name(0), u32::MAX).write(folder.path()).expect("in the place of its own");
    }
}
