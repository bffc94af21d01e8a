//! The default route by the tunnel: a table of its own, and two rules in each IP version that has one.
//!
//! ```text
//!   32763  from all fwmark DIRECT lookup main               where rules lead packets past it (`rule_table`)
//!   32764  from all lookup main suppress_prefixlength 0     what has a route of its own keeps it
//!   32765  not from all fwmark MARK lookup TABLE            the rest goes by the tunnel: TABLE has its default route
//!   32766  from all lookup main                             the links' own traffic, by MARK, goes on to here
//! ```
//! With `answer_by_link`, `from ADDRESS lookup main` stands beside the first for each address of a link: who calls this
//! host there is answered as before.
//!
//! Rules of others that mean something particular, or whose table has no default route, stay before these, and also
//! hold for the links' traffic (`hawser_net::netcfg::Rtnl::place_for_rules`).

use hawser_config::{Config, Fail};
use hawser_net::netcfg::{
    Change, Family, IfIndex, MarkMatch, NetConfigError, RouteSpec, Rtnl, RulePriority, RuleSpec, TableId, has_ipv6,
};
use ipnet::IpNet;

use super::rule_table;
use crate::run::own;

/// Compares all bits of a mark.
const WHOLE_MARK: u32 = u32::MAX;
/// Passes over default routes (`FRA_SUPPRESS_PREFIXLEN`, ip-rule(8)).
const DEFAULT_ROUTES: u32 = 0;

/// Where the rules stand. Initially nowhere; the control thread owns it.
#[derive(Debug, Default)]
pub struct Places {
    /// The priorities of the rules in each IP version that has a default route.
    priorities: Vec<(Family, [RulePriority; 2])>,
    /// The addresses of links that answer past the tunnel.
    answering: Vec<IpNet>,
    /// Rules lead some packets past the tunnel, or did: such flows end by the way that they began by.
    direct: bool,
    /// The IP versions that have no default route by the tunnel, where nothing may go past it: with the place for such
    /// packets.
    closed: Vec<(Family, RulePriority)>,
}

impl Places {
    /// Looks at the rules that are there, where the configuration wants a default route in any IP version.
    pub async fn ask(rtnl: &Rtnl, config: &Config) -> Result<Self, NetConfigError> {
        let (mut places, mut closed) = (Vec::new(), Vec::new());
        if config.tun.default_route {
            // A reload may bring the other IP version's: the rules of others are looked at now, while ours are not
            // there.
            for family in families_of_device(config) {
                places.push((family, rtnl.place_for_rules(family).await?));
            }
        }
        if config.tun.fail == Fail::Closed {
            for family in families().filter(|family| places.iter().all(|(known, _)| known != family)) {
                closed.push((family, rtnl.place_for_rules(family).await?[0]));
            }
        }
        Ok(Self { priorities: places, answering: Vec::new(), direct: false, closed })
    }

    /// Rules may lead packets past the tunnel; that stays so until the end.
    pub fn let_past(&mut self, config: &Config) {
        self.direct |= rule_table::is_needed(config);
    }

    /// Whether they do, or did.
    pub fn lets_past(&self) -> bool {
        self.direct
    }

    /// Packets with the mark of direct take the main table's routes, whatever those for everything say.
    fn past(&self, tun: &str) -> Vec<Change> {
        let mark = Some(MarkMatch { mark: own::direct_mark(tun), mask: WHOLE_MARK });
        let with_route = self.priorities.iter().map(|(family, [first, _])| (*family, *first));
        let all = with_route.chain(self.closed.iter().copied()).filter(|_| self.direct);
        let rule = |(family, RulePriority(first))| {
            Change::Rule(RuleSpec {
                mark,
                ..RuleSpec::at(family, RulePriority(first.saturating_sub(1)), TableId::MAIN)
            })
        };
        all.map(rule).collect()
    }

    /// These addresses answer past the tunnel from now on; whether others did before.
    pub fn answer(&mut self, addresses: Vec<IpNet>) -> bool {
        let changed = self.answering != addresses;
        self.answering = addresses;
        changed
    }
}

/// Those that the kernel has.
fn families() -> impl Iterator<Item = Family> {
    let has_ipv6 = has_ipv6();
    [Family::V4, Family::V6].into_iter().filter(move |family| *family == Family::V4 || has_ipv6)
}

fn families_of_device(config: &Config) -> impl Iterator<Item = Family> {
    let has = |family| config.tun.addresses.iter().any(|address| Family::of(address.addr()) == family);
    [Family::V4, Family::V6].into_iter().filter(move |family| has(*family))
}

/// Routes before rules, so that nothing is led into an empty table.
pub fn changes(config: &Config, interface: IfIndex, places: &Places) -> Vec<Change> {
    let tun = config.tun.name.as_str();
    let table = own::table(tun);
    let allowed = || config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    let default_route =
        |family| allowed().find(|net: &&IpNet| net.prefix_len() == 0 && Family::of(net.addr()) == family).copied();
    let mut changes = places.past(tun);
    for (family, [first, second]) in &places.priorities {
        let Some(everything) = default_route(*family) else { continue };
        let mark = Some(MarkMatch { mark: own::mark(tun), mask: WHOLE_MARK });
        let passing_over = Some(DEFAULT_ROUTES);
        let answering = places.answering.iter().filter(|net| Family::of(net.addr()) == *family);
        let from = |net: &IpNet| RuleSpec { source: Some(*net), ..RuleSpec::at(*family, *first, TableId::MAIN) };
        changes.extend(answering.map(from).map(Change::Rule));
        changes.extend([
            Change::Route(RouteSpec { table: Some(table), ..RouteSpec::to(everything, interface) }),
            Change::Rule(RuleSpec {
                suppress_prefix_length: passing_over,
                ..RuleSpec::at(*family, *first, TableId::MAIN)
            }),
            Change::Rule(RuleSpec { mark, invert: true, ..RuleSpec::at(*family, *second, table) }),
        ]);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(addresses: &str, allowed: &str, families: &[Family]) -> Vec<String> {
        let key = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [{addresses}]\n\
             default_route = true\n[[peer]]\nname = \"hub\"\npublic_key = \"{key}\"\nallowed_ips = [{allowed}]\n"
        );
        let config = Config::parse(&text, "test.toml").expect("a right configuration");
        assert_eq!(families_of_device(&config).collect::<Vec<_>>(), families);
        let places = families.iter().map(|family| (*family, [RulePriority(32_764), RulePriority(32_765)]));
        let changes = changes(
            &config,
            IfIndex::new(5).expect("not zero"),
            &Places { priorities: places.collect(), ..Places::default() },
        );
        changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_ip_version_with_an_address_and_a_peer_that_takes_all_has_one() {
        let v4 = [
            "route 0.0.0.0/0 out of interface 5 table 1213723041",
            "ipv4 rule 32764: to table 254",
            "ipv4 rule 32765: not mark 0x4857f1a1/0xffffffff to table 1213723041",
        ];
        let v6 = [
            "route ::/0 out of interface 5 table 1213723041",
            "ipv6 rule 32764: to table 254",
            "ipv6 rule 32765: not mark 0x4857f1a1/0xffffffff to table 1213723041",
        ];
        let (one, both) = ("\"10.77.0.2/24\"", "\"10.77.0.2/24\", \"fd77::2/64\"");
        assert_eq!(said(one, "\"0.0.0.0/0\", \"::/0\"", &[Family::V4]), v4);
        assert_eq!(said(both, "\"10.0.0.0/8\", \"::/0\"", &[Family::V4, Family::V6]), v6);
        assert_eq!(said(both, "\"0.0.0.0/0\", \"::/0\"", &[Family::V4, Family::V6]), [v4, v6].concat());
    }

    #[test]
    fn addresses_of_links_answer_by_the_main_table_before_anything_goes_by_the_tunnel() {
        let mut places = Places {
            priorities: vec![(Family::V4, [RulePriority(32_764), RulePriority(32_765)])],
            ..Places::default()
        };
        let addresses = || vec!["192.0.2.5/32".parse().expect("a net"), "2001:db8::5/128".parse().expect("a net")];
        assert!(places.answer(addresses()) && !places.answer(addresses()), "the same again is no change");
        let text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\n\
                    addresses = [\"10.77.0.2/24\"]\ndefault_route = true\n[[peer]]\nname = \"hub\"\n\
                    public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nallowed_ips = [\"0.0.0.0/0\"]\n";
        let config = Config::parse(text, "test.toml").expect("a right configuration");
        let changes = changes(&config, IfIndex::new(5).expect("not zero"), &places);
        let rules = changes.iter().filter_map(|change| match change {
            Change::Rule(rule) => Some((rule.source, rule.priority.0, rule.table, rule.suppress_prefix_length)),
            _ => None,
        });
        let link = "192.0.2.5/32".parse().ok();
        let expect = [
            (link, 32_764, TableId::MAIN, None),
            (None, 32_764, TableId::MAIN, Some(DEFAULT_ROUTES)),
            (None, 32_765, own::table("hawser0"), None),
        ];
        assert_eq!(rules.collect::<Vec<_>>(), expect, "ipv6 has no default route by the tunnel, and needs none");
    }
}
