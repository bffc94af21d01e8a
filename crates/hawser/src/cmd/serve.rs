//! `hawser serve`: from nothing to a portal that peers call, and a token for the first.
//!
//! 1. A key and a configuration, where there are none: it listens, and its peers reach the world by this host.
//! 2. It is started, or reads its configuration again; where that fails, or the system forwards nothing, step 1 is
//!    undone.
//! 3. What a firewall must let in is said. 4. A token is printed; a member of a hub prints none (`hub`).

mod hub;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use hawser_config::{Config, DEFAULT_FILE, DEFAULT_PORT, PEERS_FOLDER, PrivateKey, PublicKey};
use hawser_net::netcfg::{Rtnl, has_ipv6};
use hawser_portal::keys;
use ipnet::{IpNet, Ipv4Net};

use super::doctor::{self, NO_FORWARDING};
use super::pairing::home::Home;
use super::pairing::invite::{TokenOptions, endpoints, invite};
use super::pairing::service::{Service, is_running};
use super::pairing::written::Written;
use super::world::{Way, ways};
use crate::failure::Failure;
use hub::HubOptions;

/// Inner networks that are tried, `10.N.0.0/24` from here on: nobody's default, as far as is known.
const FIRST_NETWORK: u8 = 77;
const NETWORK_LENGTH: u8 = 24;
/// Unique local addresses (RFC 4193 section 3.1).
const ULA: u8 = 0xfd;

/// A portal makes interfaces forward right after it began to answer.
const FORWARDS_WITHIN: Duration = Duration::from_secs(5);
/// etcd answers within a connection with TLS, a list and a round of its lease.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(50);

/// Make this host a portal that others join, and print a token for the first
#[derive(Debug, Args)]
pub struct Serve {
    /// The configuration, which is written where it is not there
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// What the first peer is called
    #[arg(long, value_name = "NAME", default_value = "home")]
    name: String,
    /// The UDP port that is listened on
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    token: TokenOptions,
    #[command(flatten)]
    hub: HubOptions,
}

impl Serve {
    /// Does all that.
    pub fn run(self) -> Result<(), Failure> {
        let home = Home::of(&self.config);
        let is_new = !self.config.exists();
        if is_new && is_running(&home) {
            let failure = Failure::wrong(format!("serve: another portal answers at {}", home.socket.display()));
            return Err(failure.hint("end that one, or have this one in a folder of its own: -c DIR/hawser.toml"));
        }
        let (mut written, mut service) = (Written::default(), Service::of(&home));
        let written_now = if is_new {
            self.write(&mut written, &home)
        } else {
            eprintln!("{}: is there, and stays as it is", self.config.display());
            Ok(())
        };
        let started = written_now.and_then(|()| start(&home, &mut service)).and_then(|(config, own)| {
            self.hub.wait_for_etcd(&home, &config)?;
            Ok((config, own))
        });
        let (config, own) = match started {
            Ok(started) => started,
            Err(failure) if is_new => return Err(undo(&home, written, &mut service, failure)),
            Err(failure) => return Err(failure),
        };
        let ports: Vec<String> = config.portal.listen.iter().map(|address| address.port().to_string()).collect();
        let transports: Vec<String> = config.portal.transports.iter().map(ToString::to_string).collect();
        let mut ports = ports;
        ports.dedup();
        eprintln!(
            "the portal runs; a firewall here or at the provider must let {} port {} in",
            transports.join(" and "),
            ports.join(" and ")
        );
        if self.hub.is_member() {
            return hub::tell(&home, &config, &own, &self.token);
        }
        invite(&home, &self.name, &self.token)
    }

    /// Step 1.
    fn write(&self, written: &mut Written, home: &Home) -> Result<(), Failure> {
        let ways = ways()?;
        let world = ways.iter().find(|way| way.address.is_ipv4()).or(ways.first());
        let listen = everywhere(self.port, has_ipv6());
        let listens: Vec<String> = listen.iter().map(|address| format!("\"{address}\"")).collect();
        let addresses: Vec<String> = inner_networks(&ways)?.iter().map(|net| format!("\"{net}\"")).collect();
        let mut text = format!(
            "# Written by `hawser serve`; may be edited (docs/configuration.md). Peers are in {PEERS_FOLDER}/.\n{}\
             listen = [{}]\n\n[tun]\naddresses = [{}]\n",
            home.portal_section(),
            listens.join(", "),
            addresses.join(", ")
        );
        match world {
            _ if self.hub.is_member() => text += &self.hub.section(&endpoints(&listen, true, false, &self.token)?)?,
            Some(way) => text += &format!("\n[nat]\nmasquerade = \"{}\"\n", way.interface),
            None => eprintln!("hint: this host has no route into the world: its peers reach it alone"),
        }
        written.folder(&home.folder)?;
        written.folder(&home.folder.join(PEERS_FOLDER))?;
        if !home.key.exists() {
            let key = PrivateKey::generate().map_err(|error| Failure::failed(format!("make private key: {error}")))?;
            written.file(&home.key, &key.to_base64())?;
        }
        written.file(&home.config, &text)?;
        eprintln!("{}: written", home.config.display());
        Ok(())
    }
}

/// All addresses of this host, in the IP versions that the kernel has: a portal that cannot listen does not start.
fn everywhere(port: u16, has_ipv6: bool) -> Vec<SocketAddr> {
    let v6 = has_ipv6.then_some(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED)].into_iter().chain(v6).map(|address| SocketAddr::new(address, port)).collect()
}

/// Inner addresses of this portal: an IPv4 network that this host does not know yet, and one of IPv6 where the world is
/// reached by that: peers would lose theirs otherwise.
fn inner_networks(ways: &[Way]) -> Result<Vec<IpNet>, Failure> {
    let known = known_addresses()?;
    let free = |net: &Ipv4Net| !known.iter().any(|address| matches!(address, IpAddr::V4(one) if net.contains(one)));
    let candidates = (FIRST_NETWORK..=u8::MAX).map(|n| Ipv4Addr::new(10, n, 0, 1));
    let mut candidates = candidates.filter_map(|address| Ipv4Net::new(address, NETWORK_LENGTH).ok());
    let v4 = candidates.find(free).ok_or_else(|| Failure::failed("find an inner network: all are in use here"))?;
    let mut networks = vec![IpNet::V4(v4)];
    if ways.iter().any(|way| way.address.is_ipv6()) {
        let key = PrivateKey::generate().map_err(|error| Failure::failed(format!("draw a network: {error}")))?;
        let mut octets = [0; 16];
        octets[..6].copy_from_slice(&key.public().as_bytes()[..6]);
        (octets[0], octets[15]) = (ULA, 1);
        networks.extend(IpNet::new(Ipv6Addr::from(octets).into(), 64));
    }
    Ok(networks)
}

/// Step 2.
fn start(home: &Home, service: &mut Service) -> Result<(Config, PublicKey), Failure> {
    let (config, keys) = keys::load(&home.config)?;
    if !is_running(home) {
        service.start(home)?;
    }
    refuse_without_nat(&config)?;
    if let Some(hint) = service.keep() {
        eprintln!("hint: {hint}");
    }
    Ok((config, keys.private.public()))
}

/// Whoever joins would reach this host alone, and undo it. What a firewall may drop is told, as a rule of it may let it
/// through.
fn refuse_without_nat(config: &Config) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let found = doctor::examine_forwarding(config)?;
        let Some(off) = found.iter().find(|found| found.id == NO_FORWARDING) else {
            eprint!("{}", doctor::render(&found));
            return Ok(());
        };
        if began.elapsed() > FORWARDS_WITHIN {
            let failure = Failure::failed(format!("serve: no NAT for peers is allowed here: {}", off.text));
            return Err(failure.hint(format!(
                "{}; in a container whoever starts it must allow that: --sysctl net.ipv4.ip_forward=1",
                off.cure
            )));
        }
        sleep(GLANCE);
    }
}

fn undo(home: &Home, written: Written, service: &mut Service, failure: Failure) -> Failure {
    match service.stop(home).map(drop).and(written.undo(&home.state)) {
        Ok(()) => {
            eprintln!("undone: the portal has ended, and what was written is gone");
            failure
        }
        Err(left) => {
            eprint!("not all could be undone: {left}");
            failure
        }
    }
}

fn known_addresses() -> Result<Vec<IpAddr>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async { Rtnl::open().map_err(Failure::failed)?.all_addresses().await.map_err(Failure::failed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_in_the_ip_versions_that_the_kernel_has() {
        let said = |has_ipv6| everywhere(4920, has_ipv6).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said(true), ["0.0.0.0:4920", "[::]:4920"]);
        assert_eq!(said(false), ["0.0.0.0:4920"]);
    }
}
