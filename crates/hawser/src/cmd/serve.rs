//! `hawser serve`: from nothing to a portal that peers call, and a token for the first.
//!
//! 1. A key and a configuration, where there are none: it listens, and its peers reach the world by this host.
//! 2. It is started, or reads its configuration again. 3. What a firewall must let in is said. 4. A token is printed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use clap::Args;
use hawser_net::netcfg::Rtnl;
use hawser_portal::config::{self, DEFAULT_FILE, DEFAULT_PORT, PEERS_FOLDER, PrivateKey};
use hawser_portal::pairing::{make_folder, write_private};
use ipnet::{IpNet, Ipv4Net};

use super::pairing::home::Home;
use super::pairing::invite::{TokenOptions, invite};
use super::pairing::service::{Service, is_running};
use super::world::{Way, ways};
use crate::failure::Failure;

/// Inner networks that are tried, `10.N.0.0/24` from here on: nobody's default, as far as is known.
const FIRST_NETWORK: u8 = 77;
const NETWORK_LENGTH: u8 = 24;
/// Unique local addresses (RFC 4193 section 3.1).
const ULA: u8 = 0xfd;

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
}

impl Serve {
    /// Does all that.
    pub fn run(self) -> Result<(), Failure> {
        let home = Home::of(&self.config);
        if self.config.exists() {
            eprintln!("{}: is there, and stays as it is", self.config.display());
        } else {
            write(&home, self.port)?;
        }
        let (config, _) = config::load(&home.config)?;
        let mut service = Service::of(&home);
        if !is_running(&home) {
            service.start(&home)?;
            if let Some(hint) = service.keep() {
                eprintln!("hint: {hint}");
            }
        }
        let ports: Vec<String> = config.portal.listen.iter().map(|address| address.port().to_string()).collect();
        let transports: Vec<String> = config.portal.transports.iter().map(ToString::to_string).collect();
        let mut ports = ports;
        ports.dedup();
        eprintln!(
            "the portal runs; a firewall here or at the provider must let {} port {} in",
            transports.join(" and "),
            ports.join(" and ")
        );
        invite(&home, &self.name, &self.token)
    }
}

/// Step 1.
fn write(home: &Home, port: u16) -> Result<(), Failure> {
    let ways = ways()?;
    let world = ways.iter().find(|way| way.address.is_ipv4()).or(ways.first());
    make_folder(&home.folder).map_err(Failure::failed)?;
    make_folder(&home.folder.join(PEERS_FOLDER)).map_err(Failure::failed)?;
    if !home.key.exists() {
        let key = PrivateKey::generate().map_err(|error| Failure::failed(format!("make private key: {error}")))?;
        write_private(&home.key, &key.to_base64()).map_err(Failure::failed)?;
    }
    let addresses: Vec<String> = inner_networks(&ways)?.iter().map(|net| format!("\"{net}\"")).collect();
    let mut text = format!(
        "# Written by `hawser serve`; may be edited (docs/configuration.md). Peers are in {PEERS_FOLDER}/.\n{}\
         listen = [\"0.0.0.0:{port}\", \"[::]:{port}\"]\n\n[tun]\naddresses = [{}]\n",
        home.portal_section(),
        addresses.join(", ")
    );
    match world {
        Some(way) => text += &format!("\n[nat]\nmasquerade = \"{}\"\n", way.interface),
        None => eprintln!("hint: this host has no route into the world: its peers reach it alone"),
    }
    write_private(&home.config, &text).map_err(Failure::failed)?;
    eprintln!("{}: written", home.config.display());
    Ok(())
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

fn known_addresses() -> Result<Vec<IpAddr>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async { Rtnl::open().map_err(Failure::failed)?.all_addresses().await.map_err(Failure::failed) })
}
