//! What of a new configuration can change while the portal runs: peers, with their endpoints and networks, links, the
//! scheduler, rules, and name servers. All else waits for a restart.
//!
//! 1. [`effective`] is the old configuration with what can change of the new one. 2. [`Places`] knows the core's name
//!    of each peer, and what is to be done for the new ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use hawser_config::{Config, MarkKinds, Peer, PeerName, PresharedKey, PublicKey};
use hawser_core::handshake::PublicKey as CoreKey;
use hawser_core::units::PeerId;

use crate::run::messages::Reload;
use crate::run::plan;
use crate::run::privileges::Powers;

/// The configuration that can be in force without a restart. Links that need more than these powers cannot: what a
/// portal gave up does not come back. Nor can rules that look at marks which the TUN device does not tell apart: its
/// program takes more powers than that.
pub fn effective(old: &Config, new: &Config, powers: &Powers, marks: &MarkKinds) -> Config {
    let (links, peers, rules) = (new.links.clone(), new.peers.clone(), new.rules.clone());
    let mut config = Config { links, peers, rules, ..old.clone() };
    // They need the interface towards the world, which the portal opened at its start.
    if new.forwards.is_empty() || old.nat == new.nat {
        config.forwards.clone_from(&new.forwards);
    }
    // What a portal is in hubs is said in its handshakes, from its start.
    if hubs(old) != hubs(new) {
        config.peers = with_hubs_of_before(old, new);
    }
    config.traffic.scheduler = new.traffic.scheduler;
    config.tun.dns.clone_from(&new.tun.dns);
    if !powers.suffice(&config) {
        config.links.clone_from(&old.links);
    }
    if !marks.suffice(&config.rules) {
        config.rules.clone_from(&old.rules);
    }
    config
}

/// Who is in a hub before or after stays as it is; the others change, but for those that would collide with these.
fn with_hubs_of_before(old: &Config, new: &Config) -> Vec<Peer> {
    let in_hubs: HashSet<PublicKey> = hubs(old).into_iter().chain(hubs(new)).flatten().collect();
    let is_in_hub = |peer: &&Peer| in_hubs.contains(&peer.public_key);
    let mut peers: Vec<Peer> = old.peers.iter().filter(is_in_hub).cloned().collect();
    let collide = |one: &Peer, other: &Peer| {
        one.name == other.name || one.allowed_ips.iter().any(|net| other.allowed_ips.contains(net))
    };
    let others = new.peers.iter().filter(|peer| !is_in_hub(peer));
    let fit: Vec<Peer> = others.filter(|peer| !peers.iter().any(|fixed| collide(fixed, peer))).cloned().collect();
    peers.extend(fit);
    peers
}

/// The members of the hubs that a portal is a peer of.
fn hubs(config: &Config) -> Vec<Vec<PublicKey>> {
    config.hubs().map(|hub| hub.into_iter().map(|peer| peer.public_key).collect()).collect()
}

/// The sections in which two configurations differ.
pub fn changed_sections(old: &Config, new: &Config) -> Vec<&'static str> {
    let changes = [
        ("portal", old.portal != new.portal),
        ("tun", old.tun != new.tun),
        ("gateway", old.gateway != new.gateway),
        ("nat", old.nat != new.nat),
        ("link", old.links != new.links),
        ("peer", old.peers != new.peers),
        ("traffic", old.traffic != new.traffic),
        ("rule", old.rules != new.rules),
        ("forward", old.forwards != new.forwards),
        ("metrics", old.metrics != new.metrics),
        ("takeover", old.takeover != new.takeover),
        ("web", old.web != new.web),
        ("hub", old.hub != new.hub),
    ];
    changes.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
}

/// Which peer the core means by each `PeerId`. At first the configuration's, in their order; the control thread owns
/// it.
#[derive(Debug)]
pub struct Places {
    peers: Vec<Option<Peer>>,
    /// Where each is, by its key, which no other one has.
    keyed: HashMap<PublicKey, PeerId>,
}

impl Places {
    pub fn new(peers: &[Peer]) -> Self {
        let keyed = peers.iter().zip(0..).map(|(peer, id)| (peer.public_key, PeerId(id))).collect();
        Self { peers: peers.iter().cloned().map(Some).collect(), keyed }
    }

    /// The peer at this place.
    pub fn peer(&self, PeerId(id): PeerId) -> Option<&Peer> {
        self.peers.get(id as usize)?.as_ref()
    }

    /// The place of a peer.
    pub fn of(&self, peer: &Peer) -> Option<PeerId> {
        let id = *self.keyed.get(&peer.public_key)?;
        self.peer(id).filter(|known| identity(known) == identity(peer)).map(|_| id)
    }

    /// The peer that has this key.
    pub fn keyed(&self, key: &CoreKey) -> Option<&Peer> {
        self.peer(*self.keyed.get(&PublicKey::new(key.0).ok()?)?)
    }

    /// All peers' keys and places.
    #[cfg(feature = "etcd")]
    pub fn keys(&self) -> impl Iterator<Item = (PublicKey, PeerId)> {
        (0..).map(PeerId).zip(&self.peers).filter_map(|(id, peer)| Some((peer.as_ref()?.public_key, id)))
    }

    /// The place of the peer of this name.
    pub fn named(&self, name: &str) -> Option<PeerId> {
        let is_it = |known: &Option<Peer>| known.as_ref().is_some_and(|known| known.name.as_str() == name);
        self.peers.iter().position(is_it).map(|at| PeerId(at as u32))
    }

    /// Peers that are the same but for their endpoints: tells what the core is to do for those that have others.
    pub fn readdress(&mut self, peers: &[Peer]) -> Reload {
        let (mut reload, new) = (Reload::default(), by_identity(peers));
        for (id, place) in (0..).map(PeerId).zip(&mut self.peers) {
            let Some(known) = place else { continue };
            let Some(new) = new.get(&identity(known)).copied() else { continue };
            if (&known.endpoints, &known.ranks) != (&new.endpoints, &new.ranks) {
                reload.changed.push((id, plan::known_peer(new)));
                *place = Some(new.clone());
            }
        }
        reload
    }

    /// The keys of those that go when these peers are taken over; somebody else may have the same one then.
    pub fn gone(&self, peers: &[Peer]) -> Vec<PublicKey> {
        let new = by_identity(peers);
        let known = self.peers.iter().flatten();
        known.filter(|known| !new.contains_key(&identity(known))).map(|known| known.public_key).collect()
    }

    /// Takes over the new peers, and tells what the core is to do for it.
    pub fn follow(&mut self, peers: &[Peer], preshared: &BTreeMap<PeerName, PresharedKey>) -> Reload {
        let (mut reload, new, mut kept) = (Reload::default(), by_identity(peers), HashSet::new());
        for (id, place) in (0..).map(PeerId).zip(&mut self.peers) {
            let Some(old) = place else { continue };
            match new.get(&identity(old)).copied() {
                None => {
                    reload.removed.push(id);
                    self.keyed.remove(&old.public_key);
                    *place = None;
                }
                Some(new) => {
                    let told = |peer: &Peer| (peer.endpoints.clone(), peer.ranks.clone(), peer.networks());
                    if told(old) != told(new) {
                        reload.changed.push((id, plan::core_peer(new, preshared)));
                    }
                    kept.insert(identity(new));
                    *place = Some(new.clone());
                }
            }
        }
        let mut free = 0;
        for added in peers.iter().filter(|peer| !kept.contains(&identity(peer))) {
            free += self.peers[free..].iter().take_while(|place| place.is_some()).count();
            self.peers.resize(self.peers.len().max(free + 1), None);
            self.peers[free] = Some(added.clone());
            self.keyed.insert(added.public_key, PeerId(free as u32));
            reload.added.push((PeerId(free as u32), plan::core_peer(added, preshared)));
        }
        reload
    }
}

/// A peer is who has its keys: with others it is another one.
fn identity(peer: &Peer) -> (PublicKey, Option<&Path>) {
    (peer.public_key, peer.preshared_key_file.as_deref())
}

fn by_identity(peers: &[Peer]) -> HashMap<(PublicKey, Option<&Path>), &Peer> {
    peers.iter().map(|peer| (identity(peer), peer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hawser_config::{MarkMatch, Rule, Transport};

    const KEYS: [&str; 3] = [
        "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
        "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=",
    ];

    /// Peers by the numbers of their keys, each with a network and perhaps an endpoint.
    fn config(tun: &str, metric: u16, peers: &[(usize, &str, &str)]) -> Config {
        let mut text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"{tun}\"]\n\
             [[link]]\nname = \"dsl\"\ninterface = \"eth0\"\nmetric = {metric}\n"
        );
        for (key, net, endpoints) in peers {
            text += &format!(
                "[[peer]]\nname = \"peer{key}\"\npublic_key = \"{}\"\nallowed_ips = [\"{net}\"]\nendpoints = [{endpoints}]\n",
                KEYS[*key]
            );
        }
        Config::parse(&text, "test.toml").expect("a right configuration")
    }

    const ONE: (usize, &str, &str) = (0, "10.1.0.0/16", "\"192.0.2.1:4920\"");
    const TWO: (usize, &str, &str) = (1, "10.2.0.0/16", "");
    const THREE: (usize, &str, &str) = (2, "10.3.0.0/16", "\"192.0.2.3:4920\"");

    #[test]
    fn peers_and_links_change_at_once_and_the_rest_is_named() {
        let old = config("10.77.0.1/24", 0, &[ONE, TWO]);
        let elsewhere = (0, ONE.1, "\"192.0.2.9:4920\"");
        let with_ipv6 = (0, ONE.1, "\"192.0.2.1:4920\", \"[2001:db8::1]:4920\"");
        let mut with_link = old.clone();
        with_link.links.push(hawser_config::Link { transport: Transport::Udp, ..old.links[0].clone() });
        let mut raw = config("10.77.0.1/24", 0, &[ONE, TWO, THREE]);
        raw.links[0].transport = Transport::Ip;
        let rule = |value| Rule { mark: Some(MarkMatch { value, mask: u32::MAX }), resend: false, ..Rule::default() };
        let with_rules = |rules: &[Rule]| Config { rules: rules.to_vec(), ..old.clone() };
        let (powers, marks) = (Powers::of(&old), MarkKinds::of(&[rule(7)]));
        let mut in_hub = old.clone();
        in_hub.peers[0].standby = vec![in_hub.peers[1].name.clone()];
        let mut with_dns = old.clone();
        with_dns.tun.dns.servers.push("10.77.0.2".parse().expect("an address"));
        let table: [(&str, Config, &[&str], &[&str]); 13] = [
            ("nothing", old.clone(), &[], &[]),
            ("a peer more", config("10.77.0.1/24", 0, &[ONE, TWO, THREE]), &["peer"], &[]),
            ("another endpoint", config("10.77.0.1/24", 0, &[elsewhere, TWO]), &["peer"], &[]),
            ("a metric", config("10.77.0.1/24", 7, &[ONE, TWO]), &["link"], &[]),
            ("an address and a metric", config("10.77.0.9/24", 7, &[ONE, TWO]), &["link"], &["tun"]),
            ("a name server", with_dns, &["tun"], &[]),
            ("another IP version", config("10.77.0.1/24", 0, &[with_ipv6, TWO]), &["peer"], &[]),
            ("a link more", with_link, &["link"], &[]),
            ("a link that needs what was given up", raw, &["peer"], &["link"]),
            ("a hub", in_hub, &[], &["peer"]),
            ("a rule", with_rules(&[Rule { mark: None, ..rule(0) }]), &["rule"], &[]),
            ("a mark that is told apart", with_rules(&[rule(7)]), &["rule"], &[]),
            ("a mark that is not", with_rules(&[rule(7), rule(8)]), &[], &["rule"]),
        ];
        for (what, new, changed, left) in table {
            let effective = effective(&old, &new, &powers, &marks);
            assert_eq!(changed_sections(&old, &effective), changed, "{what}");
            assert_eq!(changed_sections(&effective, &new), left, "{what}");
        }
    }

    #[test]
    fn peers_of_no_hub_come_and_go_although_a_hub_waits_for_a_restart() {
        let plain = config("10.77.0.1/24", 0, &[ONE, TWO, THREE]);
        let mut in_hub = config("10.77.0.1/24", 0, &[ONE, TWO]);
        in_hub.peers[0].standby = vec![in_hub.peers[1].name.clone()];
        let peers = |old: &Config, new: &Config| effective(old, new, &Powers::of(&plain), &MarkKinds::of(&[])).peers;
        assert_eq!(peers(&plain, &in_hub), plain.peers[..2], "the third goes");
        let with_third: Vec<Peer> = in_hub.peers.iter().chain(&plain.peers[2..]).cloned().collect();
        assert_eq!(peers(&in_hub, &plain), with_third, "and comes");
        let mut colliding = plain.clone();
        colliding.peers[2].allowed_ips.clone_from(&plain.peers[0].allowed_ips);
        assert_eq!(peers(&in_hub, &colliding), in_hub.peers, "one that is in the way of a member waits");
    }

    #[test]
    fn a_peer_keeps_its_place_and_one_that_goes_leaves_it_to_the_next() {
        let mut places = Places::new(&config("10.77.0.1/24", 0, &[ONE, TWO]).peers);
        let mut follow = |peers: &[(usize, &str, &str)]| {
            let peers = config("10.77.0.1/24", 0, peers).peers;
            let reload = places.follow(&peers, &BTreeMap::new());
            for peer in &peers {
                let id = places.of(peer).expect("it has a place");
                let keyed = places.keyed(&CoreKey(*peer.public_key.as_bytes()));
                assert_eq!((places.peer(id), keyed), (Some(peer), Some(peer)));
            }
            let ids = |list: &[(PeerId, _)]| list.iter().map(|(id, _)| id.0).collect::<Vec<_>>();
            let removed: Vec<u32> = reload.removed.iter().map(|id| id.0).collect();
            (removed, ids(&reload.changed), ids(&reload.added))
        };
        assert_eq!(follow(&[TWO, ONE]), (vec![], vec![], vec![]), "their order in the file does not matter");
        assert_eq!(follow(&[TWO, THREE]), (vec![0], vec![], vec![0]));
        assert_eq!(follow(&[(1, "10.9.0.0/16", ""), THREE, ONE]), (vec![], vec![1], vec![2]));
        assert_eq!(follow(&[THREE]), (vec![1, 2], vec![], vec![]));
    }

    #[test]
    fn who_has_another_preshared_key_goes_and_comes_back_as_another_one() {
        let old = config("10.77.0.1/24", 0, &[ONE, TWO]).peers;
        let mut places = Places::new(&old);
        let mut new = config("10.77.0.1/24", 0, &[ONE, TWO, THREE]).peers;
        assert_eq!(places.gone(&new), []);
        new[0].preshared_key_file = Some("psk".into());
        assert_eq!(places.gone(&new), [old[0].public_key]);
        assert_eq!((places.of(&old[0]), places.of(&new[0])), (Some(PeerId(0)), None));
        let reload = places.follow(&new, &BTreeMap::new());
        assert_eq!((reload.removed, reload.added.len()), (vec![PeerId(0)], 2));
        assert_eq!((places.of(&old[0]), places.of(&new[0])), (None, Some(PeerId(0))));
        assert_eq!(places.gone(&new), []);
        assert_eq!(places.gone(&new[1..]), [old[0].public_key]);
    }
}
