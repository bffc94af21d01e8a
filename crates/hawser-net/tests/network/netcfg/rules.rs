//! The place of rules for everything among those of others.

use hawser_net::netcfg::{Family, Rtnl, RulePriority};

use super::lab::{in_namespace, ip, veth_up};

/// What tailscaled sets in each IP version.
const TAILSCALE: [&str; 4] = [
    "rule add priority 5210 fwmark 0x80000/0xff0000 lookup main",
    "rule add priority 5230 fwmark 0x80000/0xff0000 lookup default",
    "rule add priority 5250 fwmark 0x80000/0xff0000 type unreachable",
    "rule add priority 5270 lookup 52",
];
/// Between all of Tailscale's and those of the kernel.
const AFTER: [RulePriority; 2] = [RulePriority(32_764), RulePriority(32_765)];
/// Before the one for Tailscale's table.
const BEFORE: [RulePriority; 2] = [RulePriority(5_268), RulePriority(5_269)];

#[test]
fn a_table_is_asked_before_ours_while_it_has_no_default_route() {
    in_namespace(|| async {
        veth_up("v0", "v1");
        let rtnl = Rtnl::open().unwrap();
        for (family, version, peer) in
            [(Family::V4, "-4", "100.64.0.7/32"), (Family::V6, "-6", "fd7a:115c:a1e0::7/128")]
        {
            for rule in TAILSCALE {
                ip(&format!("{version} {rule}"));
            }
            let steps = [
                (format!("add {peer} dev v0 table 52"), AFTER),
                ("add throw default table 52".to_owned(), AFTER),
                ("del throw default table 52".to_owned(), AFTER),
                ("add default dev v0 table 52".to_owned(), BEFORE),
                ("del default dev v0 table 52".to_owned(), AFTER),
                ("add unreachable default table 52".to_owned(), BEFORE),
            ];
            for (change, want) in steps {
                ip(&format!("{version} route {change}"));
                assert_eq!(rtnl.place_for_rules(family).await.unwrap(), want, "{version} route {change}");
            }
        }
    });
}
