//! The remote portal: what the world sends to its address goes to a peer, but for what stays here.
//!
//! ```text
//!   eth0 --> prerouting: is it for the address, and not of this host?  marked
//!            rule 0    iif eth0 fwmark GIVEN lookup GIVE       GIVE  ADDRESS dev hawser0
//!            rule 1    lookup local                                  unreachable ADDRESS
//!   hawser0 --> prerouting: from the address, and not from what stays here?  on, by the main table: out of eth0
//! ```
//! The kernel asks table `local` first of all, so that no rule comes before it: it is moved one place on. Only what
//! came in by the interface and is marked looks elsewhere, so that address resolution, source addresses and all that
//! this host sends are as they were. There is no translation, and what somebody's own translation gives another
//! destination finds nothing in GIVE and goes on.
//!
//! Forwarding is switched on for the interface. Where it was off, nothing new but what is the client's is forwarded
//! from there.
//!
//! Which flows are the client's, conntrack remembers by a bit of its mark: those that the client began, and those that
//! the world began towards what does not stay here. All others are this host's, those that began before the portal did
//! too.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hawser_config::{Config, InterfaceName, Kept, Transport};
use hawser_net::netcfg::{
    Change, Family, Mark, MarkMatch, NetConfigError, NftChain, NftName, NftTable, RouteSpec, RulePriority, RuleSpec,
    SysctlKey, TableId, quoted,
};
use ipnet::IpNet;

use super::{Ground, TakeoverError, families, refuse};
use crate::run::own;

/// The bit that marks packets, and in conntrack flows, of the client. Other bits of both stay as they are.
const GIVEN: u32 = 0x2000_0000;
/// The first place of all, and the one after it.
const FIRST: RulePriority = RulePriority(0);
const SECOND: RulePriority = RulePriority(1);
/// After conntrack, and before translation of destinations (nft(8), priorities of hooks).
const HOOK: &str = "type filter hook prerouting priority mangle";
/// Where forwarded packets are filtered.
const FORWARD_HOOK: &str = "type filter hook forward priority filter";
/// The interface that stands for all of them in sysctls.
const ALL: &str = "all";
const ON: &str = "1";
/// What stays whatever the configuration says: neighbours and routers (RFC 4861), multicast listeners (RFC 2710, 3810),
/// DHCP (RFC 2131, RFC 8415).
const STAYS: [&str; 3] =
    ["icmpv6 type { 130-137, 143 } return", "udp sport 67 udp dport 68 return", "udp sport 547 udp dport 546 return"];
const STAYS_FROM_CLIENT: [&str; 2] = ["icmpv6 type { 130-137, 143 } drop", "udp sport { 68, 546 } drop"];

/// What the configuration says. Plain data.
#[derive(Clone, Debug)]
pub struct Remote {
    tun: InterfaceName,
    name: NftName,
    table: TableId,
    /// What stays here, in the words of nft(8), once as destination and once as source.
    stays: Vec<[String; 2]>,
    /// Interfaces from which all is forwarded, because the configuration says so.
    served: Vec<String>,
}

impl Remote {
    pub fn new(config: &Config, keep: &[Kept]) -> Self {
        let tun = config.tun.name.clone();
        let stays = listened(config).chain(keep.iter().map(kept)).collect();
        let served = config.gateway.serve.iter().map(ToString::to_string).collect();
        let (name, table) = (NftName::of_takeover(tun.as_str()), own::table(&format!("{tun}/takeover")));
        Self { tun, name, table, stays, served }
    }

    /// What forwards nothing so far: it is not to become a router for its neighbours by the way.
    pub fn closed(&self, ground: &Ground) -> Result<Vec<(Family, String)>, NetConfigError> {
        let mut closed = Vec::new();
        let names: BTreeSet<&String> = ground.holders.iter().map(|(_, interface)| interface).collect();
        for name in names.into_iter().filter(|name| !self.served.contains(name)) {
            let v4 = [SysctlKey::forwarding_v4(name)?];
            let v6 = [SysctlKey::forwarding_v6(ALL)?, SysctlKey::force_forwarding(name)?];
            // An older kernel has not all of them.
            let is_off =
                |keys: &[SysctlKey]| keys.iter().all(|key| key.read().is_ok_and(|value| value != ON) || !key.exists());
            closed.extend(is_off(&v4).then(|| (Family::V4, name.clone())));
            closed.extend(is_off(&v6).then(|| (Family::V6, name.clone())));
        }
        Ok(closed)
    }

    /// The table of nftables, which marks, comes last, and goes first.
    pub fn changes(&self, ground: &Ground) -> Result<Vec<Change>, TakeoverError> {
        let mut changes = self.accepts_local()?;
        for (address, _) in &ground.holders {
            let address = IpNet::from(*address);
            changes.push(refuse(address, self.table, ground));
            changes.push(Change::Route(RouteSpec { table: Some(self.table), ..RouteSpec::to(address, ground.tun) }));
        }
        for family in families(ground.holders.iter().map(|(address, _)| address)) {
            changes.extend(interfaces(family, ground).into_iter().map(|interface| {
                Change::Rule(RuleSpec {
                    mark: Some(MarkMatch { mark: Mark(GIVEN), mask: GIVEN }),
                    input: Some(interface.to_owned()),
                    ..RuleSpec::at(family, FIRST, self.table)
                })
            }));
            changes.push(Change::LocalRule { family, priority: SECOND });
        }
        changes.push(Change::Nft(self.nft(ground)?));
        Ok(changes)
    }

    /// What the client sends has an address of this host as its source, which the kernel takes for a forgery.
    fn accepts_local(&self) -> Result<Vec<Change>, NetConfigError> {
        let key = SysctlKey::accept_local(self.tun.as_str())?;
        Ok(vec![Change::Sysctl { key, value: ON.to_owned() }])
    }

    fn nft(&self, ground: &Ground) -> Result<NftTable, TakeoverError> {
        let tun = quoted(self.tun.as_str())?;
        let mut prerouting = Vec::new();
        for (address, interface) in &ground.holders {
            let ip = if address.is_ipv4() { "ip" } else { "ip6" };
            prerouting.push(format!("iifname {} {ip} daddr {address} goto to_client", quoted(interface)?));
            prerouting.push(format!("iifname {tun} {ip} saddr {address} goto from_client"));
        }
        let mut forward = Vec::new();
        for (family, interface) in &ground.closed {
            forward.push(format!(
                "iifname {} meta nfproto {family} ct state new,invalid ct status ! dnat meta mark & {GIVEN:#x} == 0 drop",
                quoted(interface)?
            ));
        }
        let chain = |name: &str, hook: Option<&str>, rules| NftChain {
            name: name.to_owned(),
            hook: hook.map(str::to_owned),
            rules,
        };
        let chains = vec![
            // A chain is declared before it is jumped to.
            chain("give", None, give()),
            chain("to_client", None, self.for_client()),
            chain("from_client", None, self.by_client()),
            chain("prerouting", Some(HOOK), prerouting),
            chain("forward", Some(FORWARD_HOOK), forward),
        ];
        Ok(NftTable { name: self.name.clone(), sets: Vec::new(), chains })
    }

    /// What comes for the address: marked, or left to this host.
    fn for_client(&self) -> Vec<String> {
        let mut rules = vec![
            format!("ct mark & {GIVEN:#x} == {GIVEN:#x} goto give"),
            // A ping that began before the portal did would be answered by this host for as long as it lasts.
            "icmp type echo-request goto give".to_owned(),
            "icmpv6 type echo-request goto give".to_owned(),
            // Flows of this host; conntrack may not know those that are older than itself.
            "ct state established,related return".to_owned(),
            "tcp flags & syn == 0 ct state new,invalid socket wildcard 0 return".to_owned(),
        ];
        rules.extend(STAYS.map(str::to_owned));
        rules.extend(self.stays.iter().map(|[destination, _]| format!("{destination} return")));
        rules.push("goto give".to_owned());
        rules
    }

    /// What the client sends: what stays at the portal it cannot send in its name.
    fn by_client(&self) -> Vec<String> {
        let mut rules: Vec<String> = STAYS_FROM_CLIENT.map(str::to_owned).into();
        rules.extend(self.stays.iter().map(|[_, source]| format!("{source} drop")));
        rules.push(format!("ct state new ct mark set ct mark | {GIVEN:#x} return"));
        rules.push(format!("ct state established,related ct mark & {GIVEN:#x} != {GIVEN:#x} drop"));
        rules
    }
}

/// Marks flow and packet; a packet without a flow (conntrack could not place it) is the client's to judge.
fn give() -> Vec<String> {
    let flow = format!("ct state new,established ct mark & {GIVEN:#x} != {GIVEN:#x} ct mark set ct mark | {GIVEN:#x}");
    vec![flow, format!("meta mark set meta mark | {GIVEN:#x}")]
}

/// Where the portal listens on the addresses, by any transport.
fn listened(config: &Config) -> impl Iterator<Item = [String; 2]> {
    let taken: Vec<IpAddr> = config.takeover.iter().flat_map(|takeover| takeover.addresses.clone()).collect();
    let here = move |listen: &&SocketAddr| listen.ip().is_unspecified() || taken.contains(&listen.ip());
    let ports: BTreeSet<u16> = config.portal.listen.iter().filter(&here).map(SocketAddr::port).collect();
    // SCION packets come in UDP datagrams.
    let scion: Vec<SocketAddr> = config.portal.scion_sockets().collect();
    let scion: BTreeSet<u16> = scion.iter().filter(&here).map(SocketAddr::port).collect();
    let scion = scion.into_iter().map(|port| sides("udp", &port));
    let protocol = config.portal.ip_protocol.number();
    let others = config.portal.transports.iter().flat_map(move |transport| match transport {
        Transport::Udp | Transport::Scion | Transport::Auto => ports.iter().map(|port| sides("udp", port)).collect(),
        Transport::Tcp => ports.iter().map(|port| sides("tcp", port)).collect(),
        Transport::Ip => vec![[(); 2].map(|()| format!("meta l4proto {protocol}"))],
    });
    others.chain(scion)
}

fn kept(kept: &Kept) -> [String; 2] {
    sides(&kept.protocol.to_string(), &kept.ports)
}

fn sides(protocol: &str, ports: &impl fmt::Display) -> [String; 2] {
    ["dport", "sport"].map(|side| format!("{protocol} {side} {ports}"))
}

/// The interfaces with addresses of an IP version, each once.
fn interfaces(family: Family, ground: &Ground) -> BTreeSet<&str> {
    let here = ground.holders.iter().filter(|(address, _)| Family::of(*address) == family);
    here.map(|(_, interface)| interface.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use hawser_net::netcfg::{Change, Family, IfIndex};

    use super::super::{Ground, Plan};
    use hawser_config::Config;

    fn index(number: u32) -> IfIndex {
        IfIndex::new(number).expect("not zero")
    }

    fn changes(listen: &str, takeover: &str, holders: &[(&str, &str)]) -> Vec<Change> {
        let key = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
        let allowed: String = holders
            .iter()
            .map(|(address, _)| format!(", \"{address}/{}\"", if address.contains(':') { 128 } else { 32 }))
            .collect();
        let addresses: Vec<&str> = holders.iter().map(|(address, _)| *address).collect();
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = {listen}\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[[peer]]\n\
             name = \"home\"\npublic_key = \"{key}\"\nallowed_ips = [\"10.77.0.2/32\"{allowed}]\n\
             [takeover]\naddress = {addresses:?}\n{takeover}\n"
        );
        let plan = Plan::new(&Config::parse(&text, "test.toml").expect("a right configuration")).expect("a plan");
        let holders =
            holders.iter().map(|(address, name)| (address.parse().expect("an address"), (*name).to_owned())).collect();
        let ground = Ground {
            tun: index(5),
            loopback: index(1),
            holders,
            closed: vec![(Family::V6, "eth0".to_owned())],
            lan: None,
        };
        plan.changes(&ground).expect("they can be written")
    }

    fn rules(changes: &[Change], chain: &str) -> Vec<String> {
        let Some(Change::Nft(table)) = changes.last() else { panic!("the table comes last") };
        table.chains.iter().filter(|known| known.name == chain).flat_map(|chain| chain.rules.clone()).collect()
    }

    #[test]
    fn the_local_rule_makes_room_and_the_table_that_marks_comes_last() {
        let changes = changes(
            "[\"0.0.0.0:4920\"]",
            "",
            &[("198.51.100.7", "eth0"), ("2001:db8::7", "eth0"), ("198.51.100.8", "eth1")],
        );
        let said: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let short: Vec<&str> = said.iter().map(|s| s.split(" table ").next().expect("a part")).collect();
        assert_eq!(
            short,
            [
                "sysctl net/ipv4/conf/hawser0/accept_local = 1",
                "unreachable route 198.51.100.7/32 out of interface 1",
                "route 198.51.100.7/32 out of interface 5",
                "unreachable route 2001:db8::7/128 out of interface 1",
                "route 2001:db8::7/128 out of interface 5",
                "unreachable route 198.51.100.8/32 out of interface 1",
                "route 198.51.100.8/32 out of interface 5",
                "ipv4 rule 0: mark 0x20000000/0x20000000 from interface eth0 to",
                "ipv4 rule 0: mark 0x20000000/0x20000000 from interface eth1 to",
                "ipv4 rule for",
                "ipv6 rule 0: mark 0x20000000/0x20000000 from interface eth0 to",
                "ipv6 rule for",
                "nftables",
            ]
        );
        assert!(rules(&changes, "forward")[0].starts_with("iifname \"eth0\" meta nfproto ipv6 ct state new,invalid"));
        assert_eq!(rules(&changes, "prerouting")[4], "iifname \"eth1\" ip daddr 198.51.100.8 goto to_client");
    }

    #[test]
    fn what_stays_is_where_the_portal_listens_and_what_is_kept() {
        let own: [(&str, &str, &[&str]); 4] = [
            ("[\"0.0.0.0:4920\", \"[::]:4920\"]", "", &["udp dport 4920", "tcp dport 22"]),
            ("[\"198.51.100.7:443\"]", "keep = []", &["udp dport 443"]),
            // Nobody comes for this address by that one.
            ("[\"192.0.2.1:4920\"]", "keep = [\"tcp/2222\"]", &["tcp dport 2222"]),
            ("[\"0.0.0.0:53\"]", "keep = [\"udp/60000-61000\"]", &["udp dport 53", "udp dport 60000-61000"]),
        ];
        for (listen, keep, want) in own {
            let changes = changes(listen, keep, &[("198.51.100.7", "eth0")]);
            let is_ours =
                |rule: &&String| (rule.starts_with("udp") || rule.starts_with("tcp ")) && !rule.contains("syn");
            let stays: Vec<String> = rules(&changes, "to_client").iter().filter(is_ours).skip(2).cloned().collect();
            let want: Vec<String> = want.iter().map(|rule| format!("{rule} return")).collect();
            assert_eq!(stays, want, "{listen} {keep}");
            let silenced = rules(&changes, "from_client");
            assert!(
                want.iter().all(|rule| silenced.contains(&rule.replace("dport", "sport").replace("return", "drop")))
            );
        }
    }
}
