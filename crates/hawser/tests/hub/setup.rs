//! What worlds there are, and what their portals' files say.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use hawser_lab::hub::{Configurations, SITES, Site};

use crate::etcd::Kind;
use crate::ipv6;
use crate::nat::INNER;
use crate::world::{HOMES, MEMBERS};

/// Calls are repaired and go first; pings go by the second link, which carries nothing else while the first one works.
const RULES: &str = "[[rule]]\nprotocol = \"udp\"\nfec = \"auto\"\npriority = 2\n\
                     [[rule]]\nprotocol = \"icmp\"\nvia = [\"two\"]\n";
const HIGHER_TIER: [&str; 2] = ["interface = \"two\"\n", "interface = \"two\"\nmetric = 1\n"];

/// What is tried. A plain value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// Members translate the homes' addresses, and tell each other of flows.
    pub nat: bool,
    /// Members that do not reach etcd serve nobody once their lease is over.
    pub strict: bool,
    /// Each answer of etcd's takes that long.
    pub round_trip: Option<Duration>,
    /// What its servers are like.
    pub servers: Kind,
    /// Two members that have their peers in their files: etcd runs, and none of them knows of it.
    pub files: bool,
    /// Rules at both ends, and tiers of links.
    pub rules: bool,
}

impl Setup {
    /// What tells its figures from others'.
    pub fn name(&self) -> String {
        let all = [
            (self.nat, " nat"),
            (self.files, ", two members without etcd"),
            (self.rules, ", with fec, rules and tiers"),
        ];
        all.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| *name).collect()
    }

    /// What its members are called.
    pub fn members(&self) -> &'static [&'static str] {
        const ALL: &[&str] = &MEMBERS;
        if self.files { &ALL[..2] } else { ALL }
    }

    /// The IPv4 addresses that move with a home: a public one, and where members translate its own.
    pub fn moving(&self, home: usize) -> Vec<Ipv4Addr> {
        [SITES[home], INNER[home]][..1 + usize::from(self.nat)].to_vec()
    }

    /// Writes the configurations of all portals. Gives the homes' keys.
    pub fn configure(&self, folder: &Path, etcd: &str) -> Vec<String> {
        let (moving, members) = ([0, 1].map(|home| self.moving(home)), self.members());
        let own = |home: usize| *moving[home].last().expect("one");
        let sites = [0, 1].map(|home| Site { name: HOMES[home], own: own(home), moving: &moving[home] });
        let etcd = (!self.files).then_some(etcd);
        let keys = Configurations { sites: &sites, members, etcd }.write(folder).expect("they are written");
        ipv6::configure(folder, if self.files { members } else { &[] });
        if self.rules {
            let file = |name: &str| folder.join(format!("{name}.toml"));
            members.iter().chain(&HOMES).for_each(|name| edit(&file(name), "[tun]\n", &format!("{RULES}[tun]\n")));
            HOMES.iter().for_each(|name| edit(&file(name), HIGHER_TIER[0], HIGHER_TIER[1]));
        }
        keys
    }
}

/// Replaces text in a configuration.
pub fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a configuration");
    assert!(text.contains(from), "{from} is not in {}", file.display());
    fs::write(file, text.replace(from, to)).expect("a configuration");
}
