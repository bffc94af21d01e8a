//! The local portal: the client behind it has the address by which the tunnel's other end is reached too.
//!
//! ```text
//!   5200  not from all fwmark LINKS lookup TO      what goes to the address goes to the client, but for the links' own
//!   5201  from ADDRESS lookup FROM                 what the client sends goes into the tunnel, or nowhere
//!
//!   TO    ADDRESS dev lan0                         FROM  networks of lan0 dev lan0
//!                                                        allowed_ips of the peers dev hawser0
//!                                                        unreachable default
//! ```
//! The rules also answer for the reverse path check (`rp_filter`): by them each of the two ways is the other's reverse,
//! so that a strict one passes. The main table is not asked for what the client sends: a route there to a network of a
//! link would let it out past the tunnel.

use std::net::IpAddr;

use hawser_config::Config;
use hawser_net::netcfg::{Change, Family, Mark, MarkMatch, RouteSpec, RulePriority, RuleSpec, TableId};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Ground, families, refuse};
use crate::run::own;

/// Places of the rules: before those of others for whole hosts or networks, which are mostly above 10,000.
const TO_CLIENT: RulePriority = RulePriority(5200);
const FROM_CLIENT: RulePriority = RulePriority(5201);
/// Compares all bits of a mark.
const WHOLE_MARK: u32 = u32::MAX;

/// What the configuration says. Plain data.
#[derive(Clone, Debug)]
pub struct Local {
    links: Mark,
    to: TableId,
    from: TableId,
    allowed: Vec<IpNet>,
}

impl Local {
    pub fn new(config: &Config) -> Self {
        let tun = config.tun.name.as_str();
        Self {
            links: own::mark(tun),
            // No TUN device has such a name.
            to: own::table(&format!("{tun}/to client")),
            from: own::table(&format!("{tun}/from client")),
            allowed: config.peers.iter().flat_map(|peer| &peer.allowed_ips).copied().collect(),
        }
    }

    /// Routes before rules, so that nothing is led into an empty table.
    pub fn changes(&self, addresses: &[IpAddr], ground: &Ground) -> Vec<Change> {
        families(addresses.iter()).flat_map(|family| self.of_family(family, addresses, ground)).collect()
    }

    fn of_family(&self, family: Family, addresses: &[IpAddr], ground: &Ground) -> Vec<Change> {
        let here = |net: &&IpNet| Family::of(net.addr()) == family;
        let route = |destination: IpNet, interface, table| {
            Change::Route(RouteSpec { table: Some(table), ..RouteSpec::to(destination, interface) })
        };
        let own: Vec<IpNet> = addresses.iter().map(|address| IpNet::from(*address)).collect();
        let mut changes = vec![refuse(everything(family), self.from, ground)];
        changes.extend(self.allowed.iter().filter(here).map(|net| route(*net, ground.tun, self.from)));
        if let Some((lan, networks)) = &ground.lan {
            let beside = networks.iter().filter(here).filter(|net| !self.allowed.contains(net) && !own.contains(net));
            changes.extend(beside.map(|net| route(*net, *lan, self.from)));
            changes.extend(own.iter().filter(here).map(|address| route(*address, *lan, self.to)));
        }
        let mark = Some(MarkMatch { mark: self.links, mask: WHOLE_MARK });
        changes.push(Change::Rule(RuleSpec { mark, invert: true, ..RuleSpec::at(family, TO_CLIENT, self.to) }));
        changes.extend(own.iter().filter(here).map(|address| {
            Change::Rule(RuleSpec { source: Some(*address), ..RuleSpec::at(family, FROM_CLIENT, self.from) })
        }));
        changes
    }
}

fn everything(family: Family) -> IpNet {
    match family {
        Family::V4 => Ipv4Net::default().into(),
        Family::V6 => Ipv6Net::default().into(),
    }
}

#[cfg(test)]
mod tests {
    use hawser_net::netcfg::IfIndex;

    use super::super::{Ground, Plan};
    use hawser_config::Config;

    fn index(number: u32) -> IfIndex {
        IfIndex::new(number).expect("not zero")
    }

    fn said(address: &str, networks: &[&str]) -> Vec<String> {
        let key = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.2/24\"]\n[[link]]\nname = \"dsl\"\n\
             interface = \"eth0\"\n[[peer]]\nname = \"hub\"\npublic_key = \"{key}\"\nendpoints = [\"198.51.100.7:4920\"]\n\
             allowed_ips = [\"0.0.0.0/0\", \"::/0\"]\n[takeover]\naddress = {address}\ninterface = \"lan0\"\n"
        );
        let plan = Plan::new(&Config::parse(&text, "test.toml").expect("a right configuration")).expect("a plan");
        let networks = networks.iter().map(|net| net.parse().expect("a network")).collect();
        let lan = Some((index(3), networks));
        let ground = Ground { tun: index(5), loopback: index(1), holders: Vec::new(), closed: Vec::new(), lan };
        plan.changes(&ground).expect("they can be written").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_for_the_client_goes_to_it_and_what_it_sends_into_the_tunnel_or_nowhere() {
        let said = said("\"198.51.100.7\"", &["192.168.8.0/24", "fd08::/64"]);
        let without_tables: Vec<&str> = said.iter().map(|s| s.split(" table ").next().expect("a part")).collect();
        assert_eq!(
            without_tables,
            [
                "unreachable route 0.0.0.0/0 out of interface 1",
                "route 0.0.0.0/0 out of interface 5",
                "route 192.168.8.0/24 out of interface 3",
                "route 198.51.100.7/32 out of interface 3",
                "ipv4 rule 5200: not mark 0x4857f1a1/0xffffffff to",
                "ipv4 rule 5201: from 198.51.100.7/32 to",
            ]
        );
    }

    #[test]
    fn each_ip_version_has_rules_of_its_own() {
        let said = said("[\"198.51.100.7\", \"2001:db8::7\"]", &[]);
        let rules: Vec<&str> = said.iter().filter(|s| s.contains("rule")).filter_map(|s| s.split(':').next()).collect();
        assert_eq!(rules, ["ipv4 rule 5200", "ipv4 rule 5201", "ipv6 rule 5200", "ipv6 rule 5201"]);
        assert!(said.iter().any(|s| s.starts_with("route 2001:db8::7/128 out of interface 3")));
    }
}
