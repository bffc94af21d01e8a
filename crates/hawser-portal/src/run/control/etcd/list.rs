//! Members and peers as etcd has them, for people and scripts.

use std::collections::BTreeMap;

use hawser_config::{PeerName, PublicKey};
use hawser_etcd::driver::View;
use hawser_etcd::keys::MemberName;
use hawser_etcd::record::{Load, Member};
use hawser_etcd::state::{State, member_id};
use hawser_hub::units::MemberId;

use crate::api::{HubList, HubMember, HubPeer, HubRevoked};

/// All of it. Takes time in proportion to peers and members: beside the control thread.
pub fn list(view: &View, refused: &BTreeMap<PeerName, String>) -> HubList {
    let state = &view.state;
    let member = |(name, member, load): (&MemberName, &Member, Load)| HubMember {
        name: name.to_string(),
        public_key: member.key.to_string(),
        endpoints: member.endpoints.clone(),
        weight: member.weight,
        rack: member.rack,
        version: member.version.clone(),
        active: load.active,
        standby: load.standby,
        rate_mbps: load.rate_bps as f64 / 1e6,
    };
    let name = |id: MemberId| state.named(id).map_or_else(|| format!("{:016x}", id.0), ToString::to_string);
    let peers = view.roster.peers.iter().map(|peer| {
        let placed = state.place(&peer.key);
        let seen = state.seen(&peer.key).map(|(_, seen)| seen);
        HubPeer {
            name: peer.name.to_string(),
            public_key: peer.key.to_string(),
            allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
            active: placed.map(|placed| name(placed.active)),
            standby: placed.and_then(|placed| placed.standby).map(name),
            owner: seen.map(|seen| name(seen.owner)),
            epoch: seen.map_or(0, |seen| seen.epoch.get()),
            refused: refused.get(&peer.name).cloned(),
        }
    });
    let mut peers: Vec<HubPeer> = peers.collect();
    peers.extend(view.roster.refused.iter().map(|(name, why)| refused_peer(state, name, why)));
    let revoked = view.roster.revoked.iter();
    let revoked = revoked.map(|(key, name)| HubRevoked { name: name.to_string(), public_key: key.to_string() });
    HubList {
        members: state.members().map(member).collect(),
        peers,
        revoked: revoked.collect(),
        faults: state.faults().map(|(key, error)| format!("{key:?}: {error}")).collect(),
    }
}

fn refused_peer(state: &State, name: &PeerName, why: &str) -> HubPeer {
    let key = state.key_of(name);
    HubPeer {
        name: name.to_string(),
        public_key: key.map_or_else(String::new, |key: PublicKey| key.to_string()),
        refused: Some(why.to_owned()),
        ..HubPeer::default()
    }
}

/// Whether this is the member itself.
pub fn is_own(own: &PublicKey, id: MemberId) -> bool {
    member_id(own) == id
}
