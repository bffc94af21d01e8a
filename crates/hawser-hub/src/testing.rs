//! An endpoint whose peers never came, for what stands beside one and decides by itself.

use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, PeerConfig};
use hawser_core::handshake::{Identity, Psk};
use hawser_core::policy::Tuning;
use hawser_core::session::Settings;
use hawser_core::units::{Random, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection, Version};
use std::time::Duration;

struct Still;

impl Random for Still {
    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// A time, in milliseconds after the start.
pub fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// With this number of peers, all with the same network.
pub fn endpoint(peers: u8) -> Endpoint {
    let offer =
        Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(true), instance: InstanceId(1) };
    let peer = |number| PeerConfig {
        public_key: Identity::new([2 + number; 32]).public(),
        psk: Psk::default(),
        endpoints: Vec::new(),
        ranks: Vec::new(),
        allowed_ips: vec!["10.0.0.0/24".parse().expect("a network")],
    };
    let config = Config {
        identity: Identity::new([1; 32]),
        offer: offer.speaking(Version::OURS_IN_HUB),
        settings: Settings { congestion: Kind::Bbr, max_link_mtu: 1500, tuning: Tuning::default() },
        peers: (0..peers).map(peer).collect(),
    };
    Endpoint::new(config, Box::new(Still))
}
