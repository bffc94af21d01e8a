//! Those who may enrol by a token, and those who just did.
//!
//! ```text
//!   file in tokens.d --follow--> invited --bind--> bound --settle: it is a peer, the token's file goes--> 60 s: forgotten
//!                                 ^  \--expire: the file goes    |
//!                                 +------- settle: it is none ---+
//! ```
//! Who just enrolled is answered for a while: the first answer may be lost. Whoever else holds the token is not.

use std::time::{Duration, Instant, SystemTime};

use hawser_config::{Config, PublicKey};
use hawser_core::handshake::PublicKey as CoreKey;
use hawser_core::handshake::enrolment::{Invitation as CoreInvitation, InvitationId};

use crate::pairing::{self, Invitation, Invitations};

/// How long who enrolled is answered: as long as `hawser join` asks.
const ANSWERED_FOR: Duration = Duration::from_secs(60);

/// A token that may be used, and who enrolled by it. Begins unbound; [`Enrolments`] owns it.
#[derive(Debug)]
struct Enrolment {
    id: InvitationId,
    invitation: Invitation,
    /// Its key, and since when it has been known.
    bound: Option<(CoreKey, Instant)>,
    /// The peer's file was written for it, and not by somebody else before.
    wrote: bool,
}

/// All of them. Begins with the files of the start; the control thread owns it.
#[derive(Debug)]
pub struct Enrolments {
    invitations: Invitations,
    enrolments: Vec<Enrolment>,
    next: u32,
}

impl Enrolments {
    pub fn new(invitations: Invitations) -> Self {
        let mut enrolments = Self { invitations: Invitations::default(), enrolments: Vec::new(), next: 0 };
        enrolments.follow(invitations);
        enrolments
    }

    /// The files were read again: who was taken back may not enrol any more.
    pub fn follow(&mut self, invitations: Invitations) {
        self.enrolments
            .retain(|enrolment| enrolment.bound.is_some() || invitations.list.contains(&enrolment.invitation));
        for invitation in &invitations.list {
            if self.enrolments.iter().all(|enrolment| enrolment.invitation != *invitation) {
                let id = InvitationId(self.next);
                self.next = self.next.wrapping_add(1);
                self.enrolments.push(Enrolment { id, invitation: invitation.clone(), bound: None, wrote: false });
            }
        }
        self.invitations = invitations;
    }

    /// For the core, those first that may still be used: it looks at a bounded number.
    pub fn core(&self) -> Vec<CoreInvitation> {
        let core = |enrolment: &Enrolment| CoreInvitation {
            id: enrolment.id,
            secret: enrolment.invitation.secret.clone(),
            bound: enrolment.bound.map(|(key, _)| key),
        };
        let (bound, open): (Vec<_>, Vec<_>) = self.enrolments.iter().partition(|enrolment| enrolment.bound.is_some());
        open.into_iter().chain(bound).map(core).collect()
    }

    /// What was promised to who has shown this key, and the key; none where it cannot become a peer.
    pub fn promised(&self, id: InvitationId, key: CoreKey, config: &Config) -> Option<(Invitation, PublicKey)> {
        let enrolment = self.enrolments.iter().find(|enrolment| enrolment.id == id && enrolment.bound.is_none())?;
        let (key, invitation) = (PublicKey::new(key.0).ok()?, &enrolment.invitation);
        // Its file counts, also where the configuration cannot be read again, and with it what was taken back.
        if !invitation.is_out(&self.invitations.folder) {
            tracing::warn!(token = %invitation.name, "token not taken: it was taken back");
            return None;
        }
        // A peer of this name with this key came by this token, and it was not bound yet.
        let other = config.peers.iter().find(|peer| (peer.public_key == key) != (peer.name == invitation.name));
        if let Some(peer) = other {
            let token = &invitation.name;
            tracing::warn!(%token, peer = %peer.name, "token not taken: the name or the key is a peer's");
            return None;
        }
        Some((invitation.clone(), key))
    }

    /// Makes a peer of who has shown this key in a file, and binds its token to that; [`Self::settle`] says whether it is
    /// one. Whether the configuration is to be read again; what fails is told.
    pub fn admit(&mut self, id: InvitationId, core_key: CoreKey, invitation: &Invitation, key: &PublicKey) -> bool {
        let Invitation { name, allowed_ips, .. } = invitation;
        match pairing::add_peer(&self.invitations.folder, name, key, allowed_ips) {
            Ok(wrote) => {
                self.enrolments.iter_mut().filter(|one| one.id == id).for_each(|one| one.wrote |= wrote);
                self.bind(id, core_key)
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(peer = %name, %error, cause, "peer not enrolled");
                false
            }
        }
    }

    /// Binds a token to who is to become a peer by it; whether there is such a token.
    pub fn bind(&mut self, id: InvitationId, core_key: CoreKey) -> bool {
        let Some(enrolment) = self.enrolments.iter_mut().find(|enrolment| enrolment.id == id) else { return false };
        enrolment.bound = Some((core_key, Instant::now()));
        true
    }

    /// It is a peer, and its token used; or it is none after all: nobody is answered, and the token may be used again.
    pub fn settle(&mut self, id: InvitationId, is_peer: bool) {
        let Some(enrolment) = self.enrolments.iter_mut().find(|enrolment| enrolment.id == id) else { return };
        let (name, folder) = (&enrolment.invitation.name, &self.invitations.folder);
        // The peer first: a token that was used must not be lost with nothing to show for it.
        let removed = if is_peer {
            let key = enrolment.bound.and_then(|(key, _)| PublicKey::new(key.0).ok());
            let public_key = key.map(|key| key.to_string()).unwrap_or_default();
            tracing::info!(peer = %name, public_key, "peer enrolled by its token");
            Invitations::remove(folder, name)
        } else {
            tracing::warn!(token = %name, "token not taken: its peer waits for a restart, or for a right configuration");
            enrolment.bound = None;
            // What stood there before is not ours to remove.
            if std::mem::take(&mut enrolment.wrote) {
                pairing::remove_file(&pairing::peer_file(folder, name))
            } else {
                Ok(false)
            }
        };
        if let Err(error) = removed {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(peer = %name, %error, cause, "a file of an enrolment stays");
        }
    }

    /// Forgets those whose time is over; whether there were any.
    pub fn expire(&mut self) -> bool {
        if self.enrolments.is_empty() {
            return false;
        }
        let (before, now) = (self.enrolments.len(), SystemTime::now());
        let folder = &self.invitations.folder;
        self.enrolments.retain(|enrolment| match enrolment.bound {
            Some((_, since)) => since.elapsed() < ANSWERED_FOR,
            None if enrolment.invitation.is_over(now) => {
                let name = &enrolment.invitation.name;
                match Invitations::remove(folder, name) {
                    Ok(_) => tracing::info!(token = %name, "token expired"),
                    Err(error) => tracing::warn!(token = %name, %error, "token expired, and its file stays"),
                }
                false
            }
            None => true,
        });
        self.enrolments.len() != before
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use hawser_config::PeerName;

    use super::*;

    const KEY: CoreKey = CoreKey([7; 32]);

    /// A configuration without peers, and one token.
    fn scene(folder: &Path) -> (Config, Enrolments, Invitation, PublicKey) {
        let text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n\
                    [tun]\naddresses = [\"10.77.0.1/24\"]\n";
        let file = folder.join("hawser.toml");
        fs::write(&file, text).expect("a file");
        fs::create_dir(folder.join(hawser_config::PEERS_FOLDER)).expect("a folder");
        let (config, _) = hawser_config::read(&file).expect("it is right");
        let net = "10.77.0.2/32".parse().expect("a net");
        let name = PeerName::parse("home").expect("a name");
        let invitation = Invitation::new(name, u32::MAX, vec![net]).expect("randomness");
        invitation.write(folder).expect("it is written");
        let enrolments = Enrolments::new(Invitations::load(folder, &[]));
        (config, enrolments, invitation, PublicKey::new(KEY.0).expect("not zero"))
    }

    fn bound(enrolments: &Enrolments) -> Vec<Option<CoreKey>> {
        enrolments.core().into_iter().map(|one| one.bound).collect()
    }

    #[test]
    fn who_is_no_peer_after_all_leaves_the_token_and_the_file_that_stood_there_before() {
        let id = InvitationId(0);
        for (is_edited, is_peer) in [(false, false), (true, false), (false, true), (true, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let (config, mut enrolments, invitation, key) = scene(folder.path());
            let file = pairing::peer_file(folder.path(), &invitation.name);
            let edited =
                format!("[[peer]]\nname = \"home\"\npublic_key = \"{key}\"\nallowed_ips = [\"10.1.0.0/16\"]\n");
            if is_edited {
                fs::write(&file, &edited).expect("it is written");
            }
            assert_eq!(enrolments.promised(id, KEY, &config), Some((invitation.clone(), key)));
            assert!(enrolments.admit(id, KEY, &invitation, &key) && file.exists());
            assert_eq!(bound(&enrolments), [Some(KEY)]);
            enrolments.settle(id, is_peer);
            assert_eq!(bound(&enrolments), [is_peer.then_some(KEY)], "who else holds the token may come");
            assert_eq!(invitation.is_out(folder.path()), !is_peer, "it is used, or as good as before");
            assert_eq!(file.exists(), is_edited || is_peer);
            if is_edited {
                assert_eq!(fs::read_to_string(&file).expect("it is there"), edited);
            }
        }
    }

    #[test]
    fn a_token_that_was_taken_back_is_not_taken_though_nobody_read_the_files_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let (config, enrolments, invitation, _) = scene(folder.path());
        assert!(enrolments.promised(InvitationId(0), KEY, &config).is_some());
        Invitations::remove(folder.path(), &invitation.name).expect("it is removed");
        assert_eq!(enrolments.promised(InvitationId(0), KEY, &config), None);
    }
}
