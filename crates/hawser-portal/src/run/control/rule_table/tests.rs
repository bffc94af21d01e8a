//! The table of rules, as nftables is told it.

use super::*;

fn config(rules: &str) -> Config {
    let text = format!(
        "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.2/24\"]\ndefault_route = true\n\
         [gateway]\nserve = [\"lan0\"]\n[[link]]\nname = \"dsl\"\ninterface = \"eth0\"\n[[peer]]\nname = \"hub\"\n\
         public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nendpoints = [\"198.51.100.7:4920\"]\n\
         allowed_ips = [\"0.0.0.0/0\"]\n{rules}"
    );
    Config::parse(&text, "test.toml").expect("a right configuration")
}

fn chain_of(config: &Config, name: &str) -> Vec<String> {
    let table = table(config).expect("it can be written");
    table.chains.into_iter().find(|chain| chain.name == name).expect("the chain").rules
}

const DIRECT_RULE: &str = "via = \"direct\"\n";

#[test]
fn the_first_rule_that_matches_decides_and_those_after_the_last_that_asks_are_left_to_the_portal() {
    let config = config(&format!(
        "[[rule]]\ndscp = \"ef\"\npriority = 1\n\
         [[rule]]\nprotocol = \"udp\"\nports = [53, \"60-70\"]\n{DIRECT_RULE}\
         [[rule]]\ndestination = \"203.0.113.0/24\"\nmark = \"0x10/0xf0\"\n{DIRECT_RULE}\
         [[rule]]\nmac = \"3c:22:fb:01:02:03\"\ninterface = \"lan0\"\nscheduler = \"redundant\"\n\
         [[rule]]\nprotocol = \"tcp\"\nscheduler = \"flow\"\n"
    ));
    let want = [
        "ip dscp 46 return",
        "ip6 dscp 46 return",
        "meta l4proto 17 th sport 53 goto direct",
        "meta l4proto 17 th dport 53 goto direct",
        "meta l4proto 17 th sport 60-70 goto direct",
        "meta l4proto 17 th dport 60-70 goto direct",
        "meta mark & 0xf0 == 0x10 ip daddr 203.0.113.0/24 goto direct",
        "iifname \"lan0\" ether saddr 3c:22:fb:01:02:03 meta mark set meta mark & 0xe0ffffff | 0x1000000 return",
    ];
    assert_eq!(chain_of(&config, "rules_served"), want);
    assert_eq!(chain_of(&config, "rules_own"), want[..7], "a host has no device that it comes from");
    assert_eq!(chain_of(&config, "forward"), ["iifname { \"eth0\" } ct state new,invalid ct status ! dnat drop"]);
}

#[test]
fn names_have_a_set_for_each_ip_version_that_keeps_its_name_when_other_rules_come() {
    let rule = format!("[[rule]]\ndomains = [\"example.org\", \"*.example.net\"]\n{DIRECT_RULE}");
    let (one, two) = (config(&rule), config(&format!("[[rule]]\nprotocol = \"tcp\"\nresend = false\n{rule}")));
    let sets = |config: &Config| table(config).expect("it can be written").sets;
    assert_eq!(sets(&one), sets(&two));
    let [v4, v6] = &sets(&one)[..] else { panic!("two sets") };
    let want = [format!("ip daddr @{} goto direct", v4.name), format!("ip6 daddr @{} goto direct", v6.name)];
    assert_eq!(chain_of(&one, "rules_served"), want);
    assert!(learns(&one) && chain_of(&one, "prerouting")[0].contains("log group"));
    assert!(!is_needed(&config("[[rule]]\nprotocol = \"tcp\"\nresend = false\n")));
}
