//! What is done to a world: to members' machines, to the net, and to what routers say to each other.

use std::net::IpAddr;

use hawser_lab::hub::{SITES, outward, upward};

use crate::ipv6::{ALL, PREFIXES};
use crate::world::{MEMBERS, World, nft, said};

impl World {
    /// All that a member's machine sends, and all that comes to it, is lost from now on; or no more.
    pub fn silence(&self, member: usize, silent: bool) {
        let namespace = &self.network.members[member];
        if silent {
            let chain = |hook: &str| format!("chain {hook} {{ type filter hook {hook} priority -300; policy drop; }};");
            nft(namespace, &format!("table inet silent {{ {} {} }}", chain("prerouting"), chain("output")));
        } else {
            nft(namespace, "delete table inet silent");
        }
    }

    /// What matches one of these is lost on its way through the net from now on.
    pub fn lose(&self, matches: &[String]) {
        let rules: String = matches.iter().map(|one| format!("{one} drop; ")).collect();
        let chain = "chain forward { type filter hook forward priority 0; ";
        nft(&self.network.net, &format!("table inet lost {{ {chain}{rules} }}; }}"));
    }

    /// What members say to each other through the net is lost from now on.
    pub fn part_members(&self) {
        let own: Vec<String> = (0..MEMBERS.len()).map(|member| outward(member)[0].to_string()).collect();
        let own = own.join(", ");
        self.lose(&[format!("ip saddr {{ {own} }} ip daddr {{ {own} }}")]);
    }

    pub fn lose_no_more(&self) {
        nft(&self.network.net, "delete table inet lost");
    }

    /// What the router's daemons and a member's say to each other is lost from now on: BGP and BFD.
    pub fn unroute(&self, member: usize) {
        let [own, _] = upward(member);
        let lost = |way: &str| format!("ip {way} {own} meta l4proto {{ tcp, udp }} th dport {{ 179, 3784 }} drop; ");
        let chain = |hook: &str, way| format!("chain {hook} {{ type filter hook {hook} priority 0; {} }};", lost(way));
        let [from, to] = [chain("input", "saddr"), chain("output", "daddr")];
        nft(&self.network.router, &format!("table inet unrouted {{ {from} {to} }}"));
    }

    /// No more; returns when the router hears all members' announcements: the owner's and the standby's.
    pub fn route_again(&self) {
        nft(&self.network.router, "delete table inet unrouted");
        for (site, prefix) in SITES.into_iter().zip(PREFIXES) {
            self.frr.wait_for_paths(IpAddr::from(site).into(), 2);
            self.frr.wait_for_paths(prefix.into(), 2);
        }
    }

    /// Packets of the homes' that a member gave the router so far: begins to count at the first call.
    pub fn forwarded(&self, member: usize) -> u64 {
        let name = MEMBERS[member];
        let there = said(&self.network.router, "nft", "list table inet counted");
        if !there.contains("counter") {
            let of = [format!("ip saddr {{ {}, {} }}", SITES[0], SITES[1]), format!("ip6 saddr {ALL}")];
            let rule = |name: &str| of.iter().map(|of| format!("iifname {name} {of} counter; ")).collect::<String>();
            let rules: String = MEMBERS.iter().map(|name| rule(name)).collect();
            let chain = "chain prerouting { type filter hook prerouting priority -300; ";
            nft(&self.network.router, &format!("table inet counted {{ {chain}{rules} }}; }}"));
            return 0;
        }
        let count = |line: &str| -> u64 {
            let (_, count) = line.split_once("packets ").expect("a counter");
            count.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
        };
        there.lines().filter(|line| line.contains(&format!("iifname \"{name}\""))).map(count).sum()
    }
}
