//! A token for one more peer: made, kept, printed.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};

use clap::Args;
use hawser_config::{Config, DEFAULT_PORT, PeerName, Transport};
use hawser_portal::api::{Client, ClientError};
use hawser_portal::keys::{self, Keys};
use hawser_portal::pairing::{self, Endpoint, Host, Invitation, Invitations, Token, peer_file};
use ipnet::IpNet;
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;

use super::home::{Home, now};
use super::members::{self, Known};
use crate::cmd::output::print;
use crate::cmd::world::ways;
use crate::failure::Failure;

/// Minutes that a token may be used, unless said otherwise.
const MINUTES: u32 = 60;
/// Longest of these: a month.
const MINUTES_MAX: i64 = 31 * 24 * 60;

/// What may be said of a token
#[derive(Debug, Args)]
pub struct TokenOptions {
    /// Where the other side reaches this one: an address or name, with a port if it is not the one listened on; may be
    /// repeated
    #[arg(long = "endpoint", value_name = "HOST[:PORT]")]
    endpoints: Vec<String>,
    /// Of a hub without etcd: another member, as its `hawser serve --hub` prints it; may be repeated
    #[arg(long = "member", value_name = "NAME=KEY@HOST[:PORT]")]
    members: Vec<String>,
    /// For how many minutes the token may be used
    #[arg(long, value_name = "MINUTES", default_value_t = MINUTES, value_parser = clap::value_parser!(u32).range(1..=MINUTES_MAX))]
    expires: u32,
    /// Print the token's QR code also where standard output is no terminal
    #[arg(long)]
    qr: bool,
}

/// Makes a token for the peer `name`, keeps it, has a running portal know it, and prints it.
pub fn invite(home: &Home, name: &str, options: &TokenOptions) -> Result<(), Failure> {
    let name = PeerName::parse(name).map_err(|error| Failure::wrong(format!("name the peer {name:?}: {error}")))?;
    let (config, keys) = keys::load(&home.config)?;
    refuse_taken(home, &config, &name)?;
    let known = members::known(home, &config, &keys.private.public(), &name, &options.members)?;
    if known.names.iter().any(|other| other == name.as_str()) {
        let failure = Failure::wrong(format!("make token: the hub has a peer \"{name}\" already"));
        return Err(failure.hint(format!("take another name, or: hawser hub revoke {name}")));
    }
    let members = known.turn.of;
    let token = make(home, &config, &keys, name, known, options)?;
    let runs = match Client::reload(&home.socket) {
        Ok(()) => true,
        Err(ClientError::NotRunning { .. }) => false,
        Err(error) => return Err(Failure::failed(error)),
    };
    show(&token, members, options)?;
    let telling = token.hub.as_ref().and_then(|hub| members::telling(hub, &token.name, "KEY", &token.addresses));
    if let Some(telling) = telling {
        eprintln!("hint: once it has joined (KEY: {}), {telling}", home.command("peer list"));
    }
    if !runs {
        eprintln!("hint: the portal does not run: {}", home.command("serve"));
    }
    Ok(())
}

fn refuse_taken(home: &Home, config: &Config, name: &PeerName) -> Result<(), Failure> {
    if config.peers.iter().any(|peer| peer.name == *name) {
        let failure = Failure::wrong(format!("make token: there is a peer \"{name}\" already"));
        let instead = if peer_file(&home.folder, name).exists() {
            format!("take another name, or: {}", home.command(&format!("peer remove {name}")))
        } else {
            "take another name, or take the peer out of the configuration".to_owned()
        };
        return Err(failure.hint(instead));
    }
    let file = peer_file(&home.folder, name);
    if file.exists() {
        let failure = Failure::wrong(format!("make token: another peer is in {}", file.display()));
        return Err(failure.hint("take another name, or give that file its peer's"));
    }
    Ok(())
}

fn make(
    home: &Home,
    config: &Config,
    keys: &Keys,
    name: PeerName,
    known: Known,
    options: &TokenOptions,
) -> Result<Token, Failure> {
    if config.portal.listen.is_empty() {
        let failure = Failure::wrong("make token: the portal does not listen, and nobody could use it");
        return Err(failure.hint("add to [portal]: listen = [\"0.0.0.0:4920\"]"));
    }
    let promised = keys.invitations.list.iter().filter(|other| other.name != name).flat_map(|other| &other.allowed_ips);
    let others: Vec<IpNet> = promised.copied().chain(known.networks).collect();
    let addresses = pairing::inner_addresses(config, &others, known.turn).map_err(Failure::failed)?;
    let allowed_ips = addresses.iter().map(|net| IpNet::from(net.addr())).collect();
    let expires = now().saturating_add(options.expires.saturating_mul(60));
    let [udp, tcp] = [Transport::Udp, Transport::Tcp].map(|one| config.portal.transports.contains(&one));
    let endpoints = endpoints(&config.portal.listen, udp, tcp, options)?;
    let invitation = Invitation::new(name, expires, allowed_ips).map_err(Failure::failed)?;
    let token = Token {
        public_key: keys.private.public(),
        secret: invitation.secret.clone(),
        expires,
        name: invitation.name.clone(),
        addresses,
        gateways: config.tun.addresses.iter().map(IpNet::addr).collect(),
        name_servers: config.tun.dns.servers.clone(),
        endpoints,
        hub: known.hub,
    };
    if !token.is_readable() {
        return Err(Failure::failed("make token: it is too long").hint("name fewer or shorter endpoints"));
    }
    invitation.write(&home.folder).map_err(|error| {
        let hint = format!("take one back: {}", home.command("peer remove NAME"));
        Failure::hinted(matches!(error, pairing::InvitationError::TooMany).then_some(hint), error)
    })?;
    Ok(token)
}

/// Those that were named, else this host's addresses by which it reaches the world.
pub fn endpoints(
    listen: &[SocketAddr],
    udp: bool,
    tcp: bool,
    options: &TokenOptions,
) -> Result<Vec<Endpoint>, Failure> {
    let wrong = |text: &str| Failure::wrong(format!("read endpoint {text:?}: expected HOST or HOST:PORT"));
    let port_of = |is_v4: bool| {
        let own = |address: &&SocketAddr| address.is_ipv4() == is_v4;
        listen.iter().find(own).map(SocketAddr::port)
    };
    let any_port = listen.first().map_or(DEFAULT_PORT, SocketAddr::port);
    if !options.endpoints.is_empty() {
        let one = |text: &String| {
            let (host, port) = split(text, any_port).ok_or_else(|| wrong(text))?;
            Ok(Endpoint { host, port, udp, tcp })
        };
        return options.endpoints.iter().map(one).collect();
    }
    let own = ways()?.into_iter().filter_map(|way| {
        let port = port_of(way.address.is_ipv4())?;
        Some(Endpoint { host: Host::Address(way.address), port, udp, tcp })
    });
    let own: Vec<Endpoint> = own.collect();
    if own.is_empty() {
        let failure =
            Failure::failed("make token: this host has no route into the world, and no address to be reached at");
        return Err(failure.hint("say where it is reached: --endpoint HOST"));
    }
    for endpoint in &own {
        if let Host::Address(IpAddr::V4(address)) = endpoint.host
            && address.is_private()
        {
            eprintln!(
                "hint: {address} is a private address: who is elsewhere needs --endpoint HOST, and the port let in there"
            );
        }
    }
    Ok(own)
}

/// A host, and the port after it or this one.
pub fn split(text: &str, port: u16) -> Option<(Host, u16)> {
    if let Some(host) = Host::parse(text) {
        return Some((host, port));
    }
    let (host, port) = text.rsplit_once(':')?;
    Some((Host::parse(host)?, port.parse().ok().filter(|port| *port != 0)?))
}

/// The token alone on standard output where a program reads it; `members`: how many its hub has.
fn show(token: &Token, members: usize, options: &TokenOptions) -> Result<(), Failure> {
    let is_terminal = io::stdout().is_terminal();
    if is_terminal || options.qr {
        match QrCode::new(token.to_string()) {
            Ok(code) => print(&format!("{}\n", code.render::<Dense1x2>().build()))?,
            Err(error) => eprintln!("hint: no QR code: {error}"),
        }
    }
    let at: Vec<String> = token.endpoints.iter().map(ToString::to_string).collect();
    eprintln!("for \"{}\", good once and for {} minutes, at {}:", token.name, options.expires, at.join(", "));
    if let Some(hub) = &token.hub {
        let others: Vec<&str> = hub.others().iter().map(|member| member.name.as_str()).collect();
        let named = others.len() + 1;
        let some = if named < members { format!("{named} of {members} ") } else { String::new() };
        let (own, others) = (hub.name(), others.join(", "));
        if hub.is_shared() {
            eprintln!("{some}members of the hub: {own}, {others}; which is active follows from the peer's key");
        } else {
            eprintln!("members of the hub: {own} (active), {others}");
        }
    }
    print(&format!("sudo hawser join {token}\n"))
}

/// Takes a token back; whether there was one.
pub fn withdraw(home: &Home, name: &PeerName) -> Result<bool, Failure> {
    Invitations::remove(&home.folder, name).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_port_or_takes_that_of_the_portal() {
        let table = [
            ("198.51.100.7", Some("198.51.100.7:1")),
            ("198.51.100.7:443", Some("198.51.100.7:443")),
            ("[2001:db8::7]:443", Some("[2001:db8::7]:443")),
            ("2001:db8::7", Some("[2001:db8::7]:1")),
            ("hub.example", Some("hub.example:1")),
            ("hub.example:443", Some("hub.example:443")),
            ("hub.example:0", None),
            ("hub.example:https", None),
            ("no host", None),
            ("", None),
        ];
        for (text, expect) in table {
            let found = split(text, 1).map(|(host, port)| format!("{host}:{port}"));
            assert_eq!(found.as_deref(), expect, "{text:?}");
        }
    }
}
