//! Packets of others: forwarded between the tunnel and the networks beyond this host, and translated where they leave.
//!
//! 1. [`table`] is what nftables does: the segment size of TCP clamped to what the way carries, both ways; translation
//!    of inner addresses, and nothing but answers and forwarded ports let in where that is done.
//! 2. [`Beyond::follow`] makes each interface forward when it appears, and no other. IPv6 needs linux 6.17 for that; an
//!    older one forwards by all interfaces, which is said.
//! 3. [`Beyond::warn_of_drops`] tells of tables of others that would drop what is forwarded.
//!
//! A host that becomes a router on one interface forgets the routers that it heard of on all others, unless these are
//! set to listen even as a router (`rt6_purge_dflt_routers`, linux ipv6/route.c): they are, before.

use std::net::{IpAddr, SocketAddr};

use hawser_config::{Config, Forward, InterfaceName, Link, TakeoverRole};
use hawser_net::netcfg::{
    Change, Feature, NetConfig, NetConfigError, NftChain, NftError, NftName, NftTable, Rtnl, SysctlError, SysctlKey,
    quoted,
};
use ipnet::IpNet;

use super::rule_table;

/// Where the chains are called (nft(8)): segment sizes where packets are mangled, translation as the last thing.
const FORWARD_HOOK: &str = "type filter hook forward priority mangle";
const POSTROUTING_HOOK: &str = "type nat hook postrouting priority srcnat";
const PREROUTING_HOOK: &str = "type nat hook prerouting priority dstnat";
/// To the largest segment that both ways carry; never a larger one than asked for.
const CLAMP: &str = "tcp flags syn tcp option maxseg size set rt mtu";
/// The interface that stands for all of them in sysctls, and that of the host alone.
const ALL: &str = "all";
const LOOPBACK: &str = "lo";
const ON: &str = "1";
/// Values of `accept_ra` (ip-sysctl): a host listens to routers; a router does too.
const LISTEN: &str = "1";
const LISTEN_AS_ROUTER: &str = "2";

/// Which interfaces forward. Initially none; the control thread owns it.
#[derive(Debug, Default)]
pub struct Beyond {
    tun: String,
    served: Vec<String>,
    worlds: Vec<String>,
    links: Vec<String>,
    /// Links forward too, every interface where one link stands for all: answers to what rules led past the tunnel come
    /// in by them.
    answered_by: Vec<String>,
    answered_by_all: bool,
    told: bool,
}

/// Step 1; none where packets of others are none of this portal's business.
///
/// # Errors
/// Where the name of an interface cannot stand in a rule.
pub fn table(config: &Config) -> Result<Option<NftTable>, NftError> {
    if !forwards(config) {
        return Ok(None);
    }
    let tun = quoted(config.tun.name.as_str())?;
    let mut forward = vec![format!("iifname {tun} {CLAMP}"), format!("oifname {tun} {CLAMP}")];
    let mut chains = Vec::new();
    if let Some(world) = &config.nat {
        let world = quoted(world.as_str())?;
        let inner = [("ip", inner(config, true)), ("ip6", inner(config, false))];
        let inner: Vec<_> = inner.into_iter().filter(|(_, nets)| !nets.is_empty()).collect();
        // A neighbour there could reach them by a route of its own.
        let guard = |(ip, nets): &(&str, String)| {
            format!("iifname {world} oifname {tun} {ip} daddr {{ {nets} }} ct state new,invalid ct status ! dnat drop")
        };
        forward.extend(taken_over(config).map(|(ip, address)| format!("{ip} daddr {address} accept")));
        forward.extend(inner.iter().map(guard));
        let leave =
            |(ip, nets): &(&str, String)| format!("iifname {tun} oifname {world} {ip} saddr {{ {nets} }} masquerade");
        let stays = taken_over(config).map(|(ip, address)| format!("iifname {tun} {ip} saddr {address} accept"));
        chains.push(chain("postrouting", POSTROUTING_HOOK, stays.chain(inner.iter().map(leave)).collect()));
        if !config.forwards.is_empty() {
            let rules = config.forwards.iter().flat_map(|forward| lead(forward, &world)).collect();
            chains.push(chain("prerouting", PREROUTING_HOOK, rules));
        }
    }
    if config.gateway.masquerade {
        let served: Result<Vec<String>, NftError> =
            config.gateway.serve.iter().map(|name| quoted(name.as_str())).collect();
        // Who calls a forwarded port is known by his own address behind the peer.
        let known = (!config.forwards.is_empty()).then(|| "ct status dnat accept".to_owned());
        let hidden = served?.into_iter().map(|name| format!("iifname {name} oifname {tun} masquerade"));
        let rules = known.into_iter().chain(hidden).collect();
        chains.push(chain("to_peers", POSTROUTING_HOOK, rules));
    }
    chains.insert(0, chain("forward", FORWARD_HOOK, forward));
    Ok(Some(NftTable { name: NftName::of_tun(config.tun.name.as_str()), sets: Vec::new(), chains }))
}

fn forwards(config: &Config) -> bool {
    config.nat.is_some() || !config.gateway.serve.is_empty() || config.takeover.is_some()
}

/// Where the client of a takeover is, at the local portal.
fn client_interface(config: &Config) -> Option<&InterfaceName> {
    match &config.takeover.as_ref()?.role {
        TakeoverRole::Local { interface } => Some(interface),
        TakeoverRole::Remote { .. } => None,
    }
}

/// Addresses that a client has for its own: they are reached, and nothing of theirs is translated.
fn taken_over(config: &Config) -> impl Iterator<Item = (&'static str, &IpAddr)> {
    let addresses = config.takeover.iter().flat_map(|takeover| &takeover.addresses);
    addresses.map(|address| (if address.is_ipv4() { "ip" } else { "ip6" }, address))
}

/// What comes from the world for a port of this host goes to the host behind a peer; the caller's address stays.
fn lead<'f>(forward: &'f Forward, world: &'f str) -> impl Iterator<Item = String> + 'f {
    let Forward { ports, protocols, host, host_port } = forward;
    let (version, ip) = if host.is_ipv4() { ("ipv4", "ip") } else { ("ipv6", "ip6") };
    let to = match (host, host_port) {
        (host, None) => host.to_string(),
        (host, Some(port)) => SocketAddr::new(*host, *port).to_string(),
    };
    protocols.iter().map(move |protocol| {
        format!(
            "iifname {world} meta nfproto {version} fib daddr type local {protocol} dport {ports} dnat {ip} to {to}"
        )
    })
}

fn chain(name: &str, hook: &str, rules: Vec<String>) -> NftChain {
    NftChain { name: name.to_owned(), hook: Some(hook.to_owned()), rules }
}

/// The networks of all peers, none inside another: a set of nftables takes no overlaps.
fn inner(config: &Config, v4: bool) -> String {
    let allowed = config.peers.iter().flat_map(|peer| &peer.allowed_ips);
    let nets: Vec<IpNet> = allowed.filter(|net| net.addr().is_ipv4() == v4).copied().collect();
    IpNet::aggregate(&nets).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Beyond {
    /// What the configuration says.
    pub fn new(config: &Config) -> Self {
        if !forwards(config) {
            return Self::default();
        }
        Self {
            tun: config.tun.name.to_string(),
            served: config.gateway.serve.iter().chain(client_interface(config)).map(ToString::to_string).collect(),
            worlds: config.nat.iter().map(ToString::to_string).collect(),
            links: config.links.iter().filter_map(|link| link.interface.as_ref()).map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    /// Rules lead packets of served networks past the tunnel from now on, perhaps: the links that are there forward
    /// answers. A failure is told.
    pub async fn let_answers_in(&mut self, net: &mut NetConfig, config: &Config) {
        if !rule_table::opens_links(config) {
            return;
        }
        self.answered_by = rule_table::link_interfaces(config).map(str::to_owned).collect();
        self.answered_by_all = config.links.iter().any(Link::is_any);
        let there = SysctlKey::ipv6_interfaces();
        let named = self.answered_by.clone();
        let all =
            there.into_iter().filter(|name| self.answered_by_all && !matches!(&**name, ALL | "default" | LOOPBACK));
        for interface in all.chain(named).collect::<std::collections::BTreeSet<_>>() {
            let is_there = SysctlKey::forwarding_v4(&interface).is_ok_and(|key| key.exists());
            if is_there && let Err(error) = self.follow(net, &interface).await {
                tracing::warn!(interface, %error, "forwarding not set");
            }
        }
    }

    /// What comes in by these is forwarded too.
    pub fn open_to(&mut self, worlds: impl IntoIterator<Item = String>) {
        self.worlds.extend(worlds);
    }

    /// Step 2: an interface has appeared.
    pub async fn follow(&mut self, net: &mut NetConfig, interface: &str) -> Result<(), NetConfigError> {
        let is_served = self.served.iter().any(|name| name == interface);
        let answers =
            self.answered_by_all && interface != LOOPBACK || self.answered_by.iter().any(|name| name == interface);
        let is_world = answers || self.worlds.iter().any(|name| name == interface);
        if self.tun == interface || is_served || is_world {
            set(net, SysctlKey::forwarding_v4(interface)?, ON).await?;
            // Where IPv6 is switched off there is nothing to forward.
            if SysctlKey::forwarding_v6(interface)?.exists() {
                self.forward_v6(net, interface, is_served).await?;
            }
        } else if self.links.iter().any(|name| name == interface) && is_on(&SysctlKey::forwarding_v6(ALL)?) {
            listen_on(net, interface).await?;
        }
        Ok(())
    }

    async fn forward_v6(
        &mut self,
        net: &mut NetConfig,
        interface: &str,
        is_served: bool,
    ) -> Result<(), NetConfigError> {
        let single = SysctlKey::force_forwarding(interface)?.exists();
        if !single && !std::mem::replace(&mut self.told, true) {
            let feature = Feature::ForceForwarding;
            tracing::warn!(%feature, "the kernel lacks a feature: ipv6 is forwarded by all interfaces");
        }
        if is_served || !single {
            for other in SysctlKey::ipv6_interfaces() {
                if !self.served.contains(&other) || self.links.contains(&other) {
                    listen_on(net, &other).await?;
                }
            }
        }
        for key in routing_v6(interface, is_served, single)? {
            set(net, key, ON).await?;
        }
        Ok(())
    }

    /// Step 3. They cannot be overruled, as what one table drops is dropped.
    pub async fn warn_of_drops(&self, rtnl: &Rtnl) {
        if self.tun.is_empty() {
            return;
        }
        match rtnl.forward_drops(&self.tun).await {
            Ok(drops) => {
                for chain in drops {
                    tracing::warn!(%chain, tun = self.tun, "forwarded packets are dropped unless it accepts those of the tun");
                }
            }
            Err(error) => tracing::debug!(%error, "nftables of others not looked at"),
        }
    }
}

/// What makes an interface forward IPv6: all do where a single one cannot. Only towards the networks behind it is the
/// host a router, which its neighbours there are told.
fn routing_v6(interface: &str, is_served: bool, single: bool) -> Result<Vec<SysctlKey>, SysctlError> {
    let mut keys = Vec::new();
    if is_served {
        keys.push(SysctlKey::forwarding_v6(interface)?);
    }
    keys.push(if single { SysctlKey::force_forwarding(interface)? } else { SysctlKey::forwarding_v6(ALL)? });
    Ok(keys)
}

/// Lets an interface go on hearing of routers when the host becomes one.
async fn listen_on(net: &mut NetConfig, interface: &str) -> Result<(), NetConfigError> {
    let key = SysctlKey::accept_ra(interface)?;
    let stands_for_others = matches!(interface, "all" | "default");
    match key.read() {
        Ok(value) if value == LISTEN && !stands_for_others => set(net, key, LISTEN_AS_ROUTER).await,
        Err(error) if !error.is_gone() => Err(error.into()),
        _ => Ok(()),
    }
}

fn is_on(key: &SysctlKey) -> bool {
    key.read().is_ok_and(|value| value == ON)
}

async fn set(net: &mut NetConfig, key: SysctlKey, value: &str) -> Result<(), NetConfigError> {
    net.apply(Change::Sysctl { key, value: value.to_owned() }).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(sections: &str, allowed: &str) -> Vec<String> {
        let key = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n\
             {sections}\n[[peer]]\nname = \"home\"\npublic_key = \"{key}\"\nallowed_ips = [{allowed}]\n"
        );
        let config = Config::parse(&text, "test.toml").expect("a right configuration");
        let chains = table(&config).expect("it can be written").map_or_else(Vec::new, |table| table.chains);
        chains.into_iter().flat_map(|chain| chain.rules).collect()
    }

    #[test]
    fn only_inner_networks_are_translated_and_reached_from_the_world_by_answers_alone() {
        let clamped = [
            "iifname \"hawser0\" tcp flags syn tcp option maxseg size set rt mtu",
            "oifname \"hawser0\" tcp flags syn tcp option maxseg size set rt mtu",
        ];
        let home = "\"192.168.8.0/24\", \"192.168.8.7/32\", \"10.77.0.2/32\"";
        assert_eq!(rules("", home), [""; 0]);
        assert_eq!(rules("[gateway]\nserve = [\"lan0\"]", home), clamped);
        let behind = rules("[gateway]\nserve = [\"lan0\"]\nmasquerade = true", home);
        assert_eq!(behind[..2], clamped);
        assert_eq!(behind[2..], ["iifname \"lan0\" oifname \"hawser0\" masquerade"]);
        let nets = "{ 10.77.0.2/32, 192.168.8.0/24 }";
        let guard = |ip: &str, nets: &str| {
            format!("iifname \"eth0\" oifname \"hawser0\" {ip} daddr {nets} ct state new,invalid ct status ! dnat drop")
        };
        let leave = |ip: &str, nets: &str| format!("iifname \"hawser0\" oifname \"eth0\" {ip} saddr {nets} masquerade");
        let nat = "[nat]\nmasquerade = \"eth0\"";
        let want = [guard("ip", nets), leave("ip", nets)];
        assert_eq!(rules(nat, home), [&clamped.map(str::to_owned)[..], &want].concat());
        // An address that a client has for its own is reached, and not translated.
        let taken =
            rules(&format!("{nat}\n[takeover]\naddress = \"198.51.100.7\""), "\"10.77.0.2/32\", \"198.51.100.7/32\"");
        assert_eq!(taken[2], "ip daddr 198.51.100.7 accept");
        assert_eq!(taken[4], "iifname \"hawser0\" ip saddr 198.51.100.7 accept");
        assert!(taken[3].ends_with("drop") && taken[5].ends_with("masquerade"), "{taken:?}");
        let led = rules(
            &format!(
                "{nat}\n[[forward]]\nport = 8080\nto = \"192.168.8.5:80\"\n[[forward]]\nport = \"60-70\"\nprotocols = [\"udp\"]\nto = \"fd08::5\""
            ),
            "\"192.168.8.0/24\", \"fd08::/64\"",
        );
        let way = "iifname \"eth0\" meta nfproto";
        let want = [
            format!("{way} ipv4 fib daddr type local tcp dport 8080 dnat ip to 192.168.8.5:80"),
            format!("{way} ipv6 fib daddr type local udp dport 60-70 dnat ip6 to fd08::5"),
        ];
        assert_eq!(led[led.len() - 2..], want);
        let both = rules(nat, "\"10.77.0.2/32\", \"fd08::/64\"");
        assert_eq!(
            both[3..],
            [guard("ip6", "{ fd08::/64 }"), leave("ip", "{ 10.77.0.2/32 }"), leave("ip6", "{ fd08::/64 }")]
        );
    }

    #[test]
    fn one_interface_forwards_alone_where_the_kernel_can_and_is_a_router_only_for_the_network_behind_it() {
        let said = |is_served, single| -> Vec<String> {
            let keys = routing_v6("x", is_served, single).expect("an interface's name");
            keys.iter().map(ToString::to_string).collect()
        };
        let (router, alone, all) =
            ("net/ipv6/conf/x/forwarding", "net/ipv6/conf/x/force_forwarding", "net/ipv6/conf/all/forwarding");
        assert_eq!(said(true, true), [router, alone]);
        assert_eq!(said(false, true), [alone]);
        assert_eq!(said(true, false), [router, all]);
        assert_eq!(said(false, false), [all]);
    }
}
