//! A hub's configuration: `standby` of a [[peer]], which names the other members, and `[hub]` of a member itself, with
//! what it says of `etcd`.

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use super::error::{Fault, Faults};
use super::etcd::{self, Etcd};
use super::kinds::integer;
use super::links::Peer;
use super::parsers::peer_name;
use super::reading::{Sited, Table};
use super::{Config, PeerName};

/// Numbers of the kernel's tables: `main`, and `local`, which is the kernel's own (rtnetlink(7)).
const TABLE_MAIN: u32 = 254;
const TABLE_LOCAL: u32 = 255;

/// `[hub]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// The kernel's table that the networks of peers are announced in.
    pub table: u32,
    /// What the member is called; none where nobody has to know.
    pub name: Option<PeerName>,
    /// Where members, peers and revocations are kept for all members; none: in each member's files.
    pub etcd: Option<Etcd>,
}

impl Config {
    /// The members of each hub that this portal is a peer of: the active one, its standby, and those after it.
    pub fn hubs(&self) -> impl Iterator<Item = Vec<&Peer>> {
        let named = |name: &PeerName| self.peers.iter().find(|peer| peer.name == *name);
        let active = self.peers.iter().filter(|peer| !peer.standby.is_empty());
        active.map(move |active| std::iter::once(active).chain(active.standby.iter().filter_map(named)).collect())
    }
}

/// Reads `[hub]`.
pub(super) fn section(table: &mut Table<'_, '_, '_>) -> Hub {
    let number = table.get("table", |value| match u32::try_from(integer(value)?) {
        Ok(number) if number != 0 && number != TABLE_LOCAL => Ok(number),
        _ => {
            Err(Fault::new("a kernel table for routes has a number from 1 to 4294967295, and 255 is the kernel's own")
                .hint("leave it out for the main table, or choose a number: table = 4920"))
        }
    });
    let name = table.get("name", peer_name);
    Hub { table: number.unwrap_or(TABLE_MAIN), etcd: etcd::read(table, name.as_ref()), name }
}

/// Whether peers come from etcd, so that the file need not have any.
pub(super) fn has_etcd(tree: &DeTable<'_>) -> bool {
    let hub = tree.get("hub").and_then(|hub| hub.get_ref().as_table());
    hub.is_some_and(|hub| hub.contains_key("etcd"))
}

/// The names of peers that are another's standby, right or wrong.
pub(super) fn standbys(tree: &DeTable<'_>) -> BTreeSet<String> {
    let peers = tree.get("peer").and_then(|peers| peers.get_ref().as_array());
    let peers = peers.into_iter().flat_map(|peers| peers.iter());
    let named = peers.filter_map(|peer| Some(peer.get_ref().as_table()?.get("standby")?.get_ref()));
    let names = named.flat_map(|value| one_or_more(value).filter_map(DeValue::as_str).map(str::to_owned));
    names.collect()
}

/// Reads `standby`: a name, or a list of names.
pub(super) fn names(value: &DeValue<'_>) -> Result<Vec<PeerName>, Fault> {
    one_or_more(value).map(peer_name).collect()
}

fn one_or_more<'v, 't>(value: &'v DeValue<'t>) -> impl Iterator<Item = &'v DeValue<'t>> {
    let list = value.as_array().map(|items| items.iter().map(|item| item.get_ref()));
    let one = list.is_none().then_some(value);
    list.into_iter().flatten().chain(one)
}

/// Gives each standby the networks of its active member, and notes a fault for one that cannot be.
pub(super) fn settle(peers: &mut [Sited<Peer>], faults: &mut Faults<'_>) {
    for place in 0..peers.len() {
        let (active, span) = (peers[place].value.clone(), peers[place].span.clone());
        for name in &active.standby {
            let Some(standby) = peers.iter_mut().find(|peer| peer.value.name == *name) else {
                let fault =
                    Fault::new(format!("standby \"{name}\" of peer \"{}\" is no [[peer]] of this file", active.name));
                let hint = format!("add a [[peer]] with name = \"{name}\", public_key and endpoints");
                faults.add(span.clone(), fault.hint(hint));
                continue;
            };
            let wrong = if *name == active.name {
                "it is its own standby"
            } else if !standby.value.standby.is_empty() {
                "its standby has a standby, too"
            } else if !standby.value.shared_ips.is_empty() {
                "its standby is another peer's already, or named twice"
            } else {
                standby.value.shared_ips.clone_from(&active.allowed_ips);
                continue;
            };
            let fault = Fault::new(format!("peer \"{}\": {wrong}", active.name));
            faults.add(
                span.clone(),
                fault.hint("each member of a hub has a [[peer]] section; the first names the others"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    const KEYS: [&str; 3] = [
        "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
        "q7FhFz2qNi2zhvYb1Kuj4ZUIDTlEzb8CyZk7BkvPMFk=",
    ];
    const NETS: &str = "allowed_ips = [\"10.0.0.0/8\"]\n";
    const MORE: &str = "allowed_ips = [\"10.0.0.0/9\"]\n";

    /// Peers a, b and c, as far as they are given.
    fn config(hub: &str, peers: &[&str]) -> Result<Config, Vec<String>> {
        let mut text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n\
                        [tun]\naddresses = [\"10.77.0.1/24\"]\n"
            .to_owned();
        text += hub;
        for ((name, key), more) in ["a", "b", "c"].iter().zip(KEYS).zip(peers) {
            text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\n{more}");
        }
        Config::parse(&text, "t.toml").map_err(|faults| faults.into_iter().map(|fault| fault.message).collect())
    }

    #[test]
    fn a_standby_has_the_networks_of_its_active_member_and_none_of_its_own() {
        let config = config("", &[&format!("standby = \"b\"\n{NETS}"), "", MORE]).expect("it is right");
        let shown = |at: usize| (config.peers[at].allowed_ips.len(), config.peers[at].networks().len());
        assert_eq!([shown(0), shown(1), shown(2)], [(1, 1), (0, 1), (1, 1)]);
        assert_eq!(config.peers[1].networks(), config.peers[0].networks());
        let names = |config: &Config| -> Vec<Vec<String>> {
            config.hubs().map(|hub| hub.into_iter().map(|peer| peer.name.to_string()).collect()).collect()
        };
        assert_eq!(names(&config), [["a", "b"]]);
        let three = self::config("", &[&format!("standby = [\"c\", \"b\"]\n{NETS}"), "", ""]).expect("right");
        assert_eq!(names(&three), [["a", "c", "b"]]);
        assert!(three.peers.iter().all(|peer| peer.networks() == three.peers[0].networks()));
    }

    #[test]
    fn what_is_no_pair_is_told() {
        let standby = |name: &str, nets: &str| format!("standby = \"{name}\"\n{nets}");
        let to_b = standby("b", NETS);
        let twice = format!("standby = [\"b\", \"b\"]\n{NETS}");
        let table: [(&[&str], &[&str]); 7] = [
            (&[&standby("x", NETS)], &["standby \"x\" of peer \"a\" is no [[peer]] of this file"]),
            (&[&to_b, MORE], &["a standby has its active member's networks"]),
            (&[&standby("a", NETS)], &["a standby has its active member's networks"]),
            (&[&to_b, &standby("c", ""), ""], &["peer \"a\": its standby has a standby, too"]),
            (&[&to_b, "", &standby("b", MORE)], &["peer \"c\": its standby is another peer's already, or named twice"]),
            (&[&twice, ""], &["peer \"a\": its standby is another peer's already, or named twice"]),
            (&[NETS, ""], &["missing key `allowed_ips` in [[peer]]"]),
        ];
        for (peers, faults) in table {
            assert_eq!(config("", peers).expect_err("it is wrong"), faults, "{peers:?}");
        }
    }

    #[test]
    fn a_member_announces_in_the_main_table_unless_another_is_named() {
        let table = |hub: &str| config(hub, &[NETS]).map(|config| config.hub.map(|hub| hub.table));
        assert_eq!(table(""), Ok(None));
        assert_eq!(table("[hub]\n"), Ok(Some(254)));
        assert_eq!(table("[hub]\ntable = 4920\n"), Ok(Some(4920)));
        let named = config("[hub]\nname = \"zurich\"\n", &[NETS]).expect("it is right").hub.expect("it is there");
        assert_eq!(named.name.map(|name| name.to_string()).as_deref(), Some("zurich"));
        for wrong in ["0", "255", "4294967296", "-1"] {
            let faults = table(&format!("[hub]\ntable = {wrong}\n")).expect_err("no table for routes");
            assert!(faults[0].starts_with("`table`: a kernel table"), "{faults:?}");
        }
    }
}
