//! What a token has to know at a member of a hub: the other members, and whom they serve.
//!
//! 1. Where members and peers are in etcd, the running portal says what is there. 2. Else whoever makes the token names
//!    the other members ([`shown`] is what their own `hawser serve` prints for that).

use hawser_config::{Config, DEFAULT_PORT, Etcd, PeerName, PublicKey, Transport};
use hawser_portal::api::{Client, ClientError, Deed, HubList, HubMember, NAMESAKE_HINT};
use hawser_portal::pairing::{Endpoint, Hub, Member, Share, Turn};
use ipnet::IpNet;
use serde_json::Value;

use super::home::Home;
use super::invite::split;
use crate::failure::Failure;

/// Nothing but a portal that is no member by default. Plain data.
#[derive(Debug, Default)]
pub struct Known {
    /// The hub; none where this portal is no member of one.
    pub hub: Option<Hub>,
    /// Which addresses this member promises, among all members.
    pub turn: Turn,
    /// Networks of peers that are not in the configuration.
    pub networks: Vec<IpNet>,
    /// Their names.
    pub names: Vec<String>,
}

/// What is known for a token of this peer; `named`: the other members, as they were typed.
pub fn known(
    home: &Home,
    config: &Config,
    own: &PublicKey,
    peer: &PeerName,
    named: &[String],
) -> Result<Known, Failure> {
    let Some(hub) = &config.hub else {
        return if named.is_empty() {
            Ok(Known::default())
        } else {
            Err(Failure::wrong("make token: --member is for a hub, and this portal is no member of one")
                .hint("a member has [hub] in its configuration (docs/hub.md)"))
        };
    };
    let Some(name) = &hub.name else {
        return Err(
            Failure::wrong("make token: this member of a hub has no name").hint("add to [hub]: name = \"zurich\"")
        );
    };
    let tcp = config.portal.transports.contains(&Transport::Tcp);
    match &hub.etcd {
        Some(etcd) if named.is_empty() => by_etcd(home, etcd, own, peer, tcp),
        Some(_) => Err(Failure::wrong("make token: --member, and etcd knows the members").hint("leave --member out")),
        None if named.is_empty() => Err(Failure::wrong("make token: a hub's token names all members")
            .hint("name each other one, as its `hawser serve` prints it: --member NAME=KEY@HOST:PORT")),
        None => {
            let others = named.iter().map(|text| typed(text, tcp)).collect::<Result<Vec<Member>, _>>()?;
            let turn = Turn::among(name, others.iter().map(|other| &other.name));
            let hub = Hub::new((name.clone(), own, Share::default()), others, false).map_err(Failure::failed)?;
            Ok(Known { hub: Some(hub), turn, ..Known::default() })
        }
    }
}

/// Step 1.
fn by_etcd(home: &Home, etcd: &Etcd, own: &PublicKey, peer: &PeerName, tcp: bool) -> Result<Known, Failure> {
    let told = Client::order(&home.socket, Deed::HubList).map_err(|error| match error {
        ClientError::NotRunning { .. } => {
            Failure::failed("make token: the portal does not run, and knows no other member")
                .hint(home.command("serve"))
        }
        error => Failure::failed(error),
    })?;
    let list: HubList = serde_json::from_value(told.unwrap_or(Value::Null))
        .map_err(|error| Failure::failed(format!("list members: {error}")))?;
    let others = || list.members.iter().filter(|member| member.public_key != own.to_string());
    if let Some(HubMember { name, endpoints, .. }) = others().find(|other| other.name == etcd.name.as_str()) {
        let other = format!("make token: the hub's member {name} is another portal, at {}", endpoints.join(", "));
        return Err(Failure::failed(other).hint(NAMESAKE_HINT));
    }
    let others = others().map(|member| read(member, tcp)).collect::<Result<Vec<Member>, Failure>>()?;
    if others.is_empty() {
        return Err(Failure::failed("make token: etcd knows no other member of this hub")
            .hint("a token names all that run: start the others, and look: hawser hub members"));
    }
    let networks = list.peers.iter().flat_map(|peer| &peer.allowed_ips).filter_map(|net| net.parse().ok());
    let share = share(etcd.weight, etcd.rack).expect("a configuration has no greater ones");
    Ok(Known {
        turn: Turn::among(&etcd.name, others.iter().map(|other| &other.name)),
        hub: Some(Hub::of_peer((etcd.name.clone(), own, share), others, peer).map_err(Failure::failed)?),
        networks: networks.collect(),
        names: list.peers.into_iter().map(|peer| peer.name).collect(),
    })
}

fn read(member: &HubMember, tcp: bool) -> Result<Member, Failure> {
    let name = &member.name;
    if member.endpoints.is_empty() {
        let failure = Failure::failed(format!("make token: member {name} does not say where it is reached"));
        return Err(failure.hint("add to its [hub]: endpoints = [\"HOST:PORT\"], and start it again"));
    }
    let read = || {
        let endpoints = member.endpoints.iter().map(|text| endpoint(text, tcp)).collect::<Option<_>>()?;
        let (name, public_key) = (PeerName::parse(name).ok()?, PublicKey::parse(&member.public_key).ok()?);
        Some(Member { name, public_key, endpoints, share: share(member.weight, member.rack)? })
    };
    read().ok_or_else(|| Failure::failed(format!("make token: what etcd has of member {name} cannot be read")))
}

fn share(weight: u32, rack: u32) -> Option<Share> {
    Some(Share { weight: weight.try_into().ok()?, rack: rack.try_into().ok()? })
}

fn endpoint(text: &str, tcp: bool) -> Option<Endpoint> {
    let (host, port) = split(text, DEFAULT_PORT)?;
    Some(Endpoint { host, port, udp: true, tcp })
}

/// Step 2.
fn typed(text: &str, tcp: bool) -> Result<Member, Failure> {
    let read = || {
        let (name, rest) = text.split_once('=')?;
        let (key, endpoints) = rest.split_once('@')?;
        let endpoints = endpoints.split(',').map(|text| endpoint(text, tcp)).collect::<Option<Vec<Endpoint>>>()?;
        let (name, public_key) = (PeerName::parse(name).ok()?, PublicKey::parse(key).ok()?);
        Some(Member { name, public_key, endpoints, share: Share::default() })
    };
    let failure = || Failure::wrong(format!("read member {text:?}: expected NAME=KEY@HOST[:PORT][,HOST[:PORT]]"));
    read().ok_or_else(|| failure().hint("at that member: sudo hawser serve --hub NAME prints it"))
}

/// A member as [`typed`] reads it.
pub fn shown(name: &PeerName, key: &PublicKey, endpoints: &[Endpoint]) -> String {
    let endpoints: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    format!("{name}={key}@{}", endpoints.join(","))
}

/// How the other members are told of a peer where they share no etcd; `key` may be a word in its place.
pub fn telling(hub: &Hub, name: &PeerName, key: &str, addresses: &[IpNet]) -> Option<String> {
    if hub.is_shared() {
        return None;
    }
    let others: Vec<&str> = hub.others().iter().map(|member| member.name.as_str()).collect();
    let networks: Vec<String> =
        addresses.iter().map(|net| format!(" --allowed-ip {}", IpNet::from(net.addr()))).collect();
    let command = format!("sudo hawser peer add {name} --key {key}{}", networks.concat());
    Some(format!("at each other member ({}), which does not know this peer yet:\n  {command}", others.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";

    #[test]
    fn a_member_reads_as_its_own_serve_prints_it() {
        for endpoints in ["198.51.100.20:4920", "geneva.example:443,[2001:db8::20]:4920"] {
            let member = typed(&format!("geneva={KEY}@{endpoints}"), false).expect("it is right");
            assert_eq!(shown(&member.name, &member.public_key, &member.endpoints), format!("geneva={KEY}@{endpoints}"));
        }
        let usual = typed(&format!("geneva={KEY}@192.0.2.7"), false).expect("it is right");
        assert_eq!(usual.endpoints[0].port, DEFAULT_PORT);
        for wrong in ["", "geneva", KEY, &format!("geneva={KEY}"), &format!("geneva={KEY}@"), "geneva=AAAA@192.0.2.7"] {
            assert!(typed(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_members_are_told_by_a_command_unless_etcd_tells_them() {
        let own = PublicKey::new([7; 32]).expect("a key");
        let named = |name: &str| PeerName::parse(name).expect("a name");
        let hub = |shared| {
            let geneva = typed(&format!("geneva={KEY}@192.0.2.7"), false).expect("it is right");
            Hub::new((named("zurich"), &own, Share::default()), vec![geneva], shared).expect("it is right")
        };
        let net = ["10.77.0.2/24".parse().expect("a net")];
        assert_eq!(telling(&hub(true), &named("home"), "KEY", &net), None);
        let told = telling(&hub(false), &named("home"), "KEY", &net).expect("they have to be");
        let expected = "at each other member (geneva), which does not know this peer yet:\n  \
                        sudo hawser peer add home --key KEY --allowed-ip 10.77.0.2/32";
        assert_eq!(told, expected);
    }
}
