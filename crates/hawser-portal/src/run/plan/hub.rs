//! From a configuration to what a portal is in hubs.

use hawser_config::{Config, Peer};
use hawser_core::handshake::{Identity, PublicKey};
use hawser_core::units::PeerId;
use hawser_core::wire::{Offer, Version};
use hawser_hub::pair::Member;
use hawser_hub::units::{Epoch, MemberId};

use crate::keys::Keys;
use crate::run::messages::Hubs;

/// Who is in no hub does not say that it knows what one says.
pub(super) fn speaking(config: &Config, offer: Offer) -> Offer {
    let in_hub = config.hub.is_some() || config.hubs().next().is_some();
    if in_hub { offer.speaking(Version::OURS_IN_HUB) } else { offer }
}

/// What the portal is in hubs. `first` is above each epoch that it ever made; `random` is another at each start.
pub fn hubs(config: &Config, keys: &Keys, first: Epoch, random: u64) -> Hubs {
    // At the start peers have the places that the configuration gives them.
    let place = |peer: &Peer| config.peers.iter().position(|known| known.name == peer.name).unwrap_or_default();
    let member = |peer: &Peer| {
        let key = PublicKey(*peer.public_key.as_bytes());
        Member { id: MemberId::of(&key), peer: PeerId(place(peer) as u32) }
    };
    let joined = config.hubs().map(|hub| hub.into_iter().map(member).collect()).collect();
    let own = Identity::new(*keys.private.as_bytes()).public();
    Hubs { first, joined, member: config.hub.as_ref().map(|_| MemberId::of(&own)), random }
}
