//! `hawser join TOKEN`: from a token to a bond, or back to where the host was.
//!
//! 1. The token is read, uplinks are found (`uplinks`), and our key is enrolled by them: until here nothing is changed.
//! 2. Key and configuration are written (`written`), and the portal is started.
//! 3. The tunnel has to carry something within 60 s (`proof`): the portal's inner address, and the internet where that
//!    answered before. 4. Else all of it is undone, as `netplan try` does, and why is said in a sentence.
//!
//! Whoever came in over an uplink may lose the terminal meanwhile: this goes on without it.

mod proof;
mod uplinks;
mod written;

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use hawser_config::{DEFAULT_FILE, InterfaceName, PrivateKey};
use hawser_net::netcfg::{Mark, Resolver};
use hawser_portal::pairing::{EnrolError, Hub, Token, TokenError, Uplink, enrol};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::proof::Proof;
use super::doctor;
use super::doctor::by_link::ByLink;
use super::pairing::home::Home;
use super::pairing::members;
use super::pairing::service::Service;
use super::pairing::written::Written;
use super::table::duration;
use crate::failure::Failure;

/// How long the other side may take to answer.
const ENROLS_WITHIN: Duration = Duration::from_secs(8);
/// Bytes that are read of a token: no token has as many.
const TOKEN_LIMIT: u64 = 8192;

/// Join the portal that printed a token, by every uplink of this host
#[derive(Debug, Args)]
pub struct Join {
    /// What `hawser serve` or `hawser peer add` printed; `-` reads it from standard input, where no other user sees it
    #[arg(value_name = "TOKEN")]
    token: String,
    /// The configuration that is written
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// An uplink to use, instead of all that are found; may be repeated
    #[arg(long = "link", value_name = "INTERFACE")]
    links: Vec<String>,
    /// An interface with a network behind this host that is to go by the tunnel; may be repeated
    #[arg(long, value_name = "INTERFACE")]
    serve: Vec<String>,
    /// Reach the other portal's inner network alone, and leave the internet where it is
    #[arg(long)]
    no_default_route: bool,
    /// What has to answer through the tunnel, if it does before, in the place of some public resolvers; may be repeated
    #[arg(long = "probe", value_name = "IP:PORT")]
    probes: Vec<SocketAddr>,
    /// Seconds that the tunnel has until all is undone
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=600))]
    within: u64,
}

impl Join {
    /// Joins, or undoes everything.
    pub fn run(self) -> Result<(), Failure> {
        let home = Home::of(&self.config);
        let token = read(&self.token)?;
        refuse_joined(&home)?;
        let endpoints = resolve(&token)?;
        let links = uplinks::find(&names(&self.links)?, &of_all_members(&token, &endpoints))?;
        let served = uplinks::served(&names(&self.serve)?, &links)?;
        let shown: Vec<&str> = links.iter().map(|link| link.interface.as_str()).collect();
        say(&format!("uplinks: {}", shown.join(", ")));
        let key = PrivateKey::generate().map_err(|error| Failure::failed(format!("make private key: {error}")))?;
        let answered = enrol(&token, &endpoints, &links, &key, ENROLS_WITHIN)
            .map_err(|error| unanswered(&token, &endpoints, &links, error))?;
        say(&format!("enrolled as \"{}\" at {answered}", token.name));
        let interrupted = go_on_without_a_terminal()?;
        let mut proof = Proof::before(&token, &self.probes, !self.no_default_route);
        let name_servers = if self.no_default_route { &[] } else { settable(&token.name_servers) };
        let public = key.public();
        let text =
            written::configuration(&home, &token, &public, &links, &served, !self.no_default_route, name_servers);
        let mut written = Written::default();
        let mut service = Service::of(&home);
        let tried = written::write(&mut written, &home, &key, &text).and_then(|()| service.start(&home));
        let limit = Duration::from_secs(self.within);
        match tried.and_then(|()| proof.wait(&home, limit, &interrupted)) {
            Ok(said) => {
                say(&said);
                service.keep().iter().for_each(|hint| say(&format!("hint: {hint}")));
                let telling = |hub| members::telling(hub, &token.name, &public.to_string(), &token.addresses);
                token.hub.as_ref().and_then(telling).iter().for_each(|telling| say(telling));
                Ok(())
            }
            Err(failure) => Err(undo(&home, written, &mut service, failure)),
        }
    }
}

fn names(texts: &[String]) -> Result<Vec<InterfaceName>, Failure> {
    let name = |text: &String| {
        InterfaceName::parse(text).map_err(|error| Failure::wrong(format!("read interface {text:?}: {error}")))
    };
    texts.iter().map(name).collect()
}

fn read(text: &str) -> Result<Token, Failure> {
    let mut typed = String::new();
    if text == "-" {
        let read = io::stdin().take(TOKEN_LIMIT).read_to_string(&mut typed);
        read.map_err(|error| Failure::wrong(format!("read token from standard input: {error}")))?;
    }
    let text = if text == "-" { typed.as_str() } else { text };
    let token: Token = text.parse().map_err(|error: TokenError| {
        let hint = error.hint();
        Failure::wrong(error).hint(hint)
    })?;
    if let Some(since) = token.expired(SystemTime::now()) {
        let ago = duration(since.as_secs_f64());
        let failure = Failure::wrong(format!("read token: it expired {ago} ago, by this host's clock"));
        return Err(failure.hint(format!("on the server: sudo hawser peer add {}", token.name)));
    }
    Ok(token)
}

fn refuse_joined(home: &Home) -> Result<(), Failure> {
    let there = [&home.config, &home.key].into_iter().find(|path| path.exists());
    let Some(path) = there else { return Ok(()) };
    let failure = Failure::wrong(format!("join: {} is there: this host has a portal already", path.display()));
    Err(failure.hint(if home.config.exists() {
        format!("to leave that one: {}", home.command("leave"))
    } else {
        // Something else made it, or a leaving was cut short.
        format!("it has no configuration; to keep the key elsewhere: sudo mv {0} {0}.old", path.display())
    }))
}

/// Addresses of the token's endpoints that are reached by UDP, in their order.
fn resolve(token: &Token) -> Result<Vec<SocketAddr>, Failure> {
    let (mut endpoints, mut unknown) = (Vec::new(), String::new());
    for endpoint in token.endpoints.iter().filter(|endpoint| endpoint.udp) {
        match endpoint.to_string().to_socket_addrs() {
            Ok(found) => endpoints.extend(found),
            Err(error) => drop(write!(unknown, "; {endpoint}: {error}")),
        }
    }
    if endpoints.is_empty() {
        let failure = Failure::failed(format!("find the server: no endpoint of the token has an address{unknown}"));
        return Err(failure.hint("has this host DNS? getent hosts NAME"));
    }
    endpoints.dedup();
    Ok(endpoints)
}

/// The same, and those of the other members of a hub, as far as they are known: each uplink leads to one at least.
fn of_all_members(token: &Token, endpoints: &[SocketAddr]) -> Vec<SocketAddr> {
    let others = token.hub.iter().flat_map(Hub::others).flat_map(|member| &member.endpoints);
    let found = others.filter_map(|endpoint| endpoint.to_string().to_socket_addrs().ok()).flatten();
    endpoints.iter().copied().chain(found).collect()
}

/// The name servers of who invites, where this host has somebody to set them with: a portal that cannot set them does
/// not start.
fn settable(servers: &[IpAddr]) -> &[IpAddr] {
    if servers.is_empty() {
        return &[];
    }
    match Resolver::here() {
        Ok(_) => servers,
        Err(error) => {
            let listed: Vec<String> = servers.iter().map(ToString::to_string).collect();
            say(&format!("hint: the server's name servers ({}) are left out: {error}", listed.join(", ")));
            &[]
        }
    }
}

/// Why nobody enrolled us, in a sentence, and what to do about it.
fn unanswered(token: &Token, endpoints: &[SocketAddr], links: &[Uplink], error: EnrolError) -> Failure {
    let name = &token.name;
    let behind = || before_a_login(endpoints, links);
    match error {
        EnrolError::Refused(_) | EnrolError::Silence(..) if let Some((interface, host, page)) = behind() => {
            let failure = format!("{error}: a captive portal answers in the place of {host} by {interface}: {page}");
            Failure::failed(failure).hint(format!("{}; then join again", doctor::captive::cure(&interface, host)))
        }
        EnrolError::Refused(_) => {
            Failure::failed(error).hint("does the server's portal run, and listen on that port? there: sudo hawser status")
        }
        EnrolError::Silence(..) => Failure::failed(format!(
            "{error}: the token was used or taken back, it is of another server than answers there, or that port is closed"
        ))
        .hint(format!(
            "on the server: sudo hawser peer list; if it names \"{name}\" with a token, let the port in; for a new token: \
             sudo hawser peer remove {name}; sudo hawser peer add {name}"
        )),
        error => Failure::failed(error),
    }
}

/// The first uplink on which a login page stands before the server, with that.
fn before_a_login(endpoints: &[SocketAddr], links: &[Uplink]) -> Option<(String, IpAddr, String)> {
    let host = endpoints.first()?.ip();
    let look = |link: &Uplink| {
        // No portal has set its mark yet.
        let by = ByLink { interface: link.interface.to_string(), mark: Mark(0) };
        let page = doctor::captive::login_page(&by, host).ok().flatten()?;
        Some((by.interface, host, page))
    };
    thread::scope(|scope| {
        let asked: Vec<_> = links.iter().map(|link| scope.spawn(move || look(link))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).next()
    })
}

/// Set once somebody wants an end. A terminal that is gone is no reason to leave things half done.
fn go_on_without_a_terminal() -> Result<Arc<AtomicBool>, Failure> {
    let (interrupted, hung_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flags = [(SIGINT, &interrupted), (SIGTERM, &interrupted), (SIGHUP, &hung_up)];
    for (signal, flag) in flags {
        let caught = signal_hook::flag::register(signal, Arc::clone(flag));
        caught.map_err(|error| Failure::failed(format!("catch signals: {error}")))?;
    }
    Ok(interrupted)
}

/// Whether somebody wants an end.
fn is_interrupted(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

/// Step 4.
fn undo(home: &Home, written: Written, service: &mut Service, failure: Failure) -> Failure {
    // The portal's findings first: it is about to end.
    print_findings(home);
    let stopped = service.stop(home).map(drop);
    let removed = written.undo(&home.state);
    match stopped.and(removed) {
        Ok(()) => {
            say("undone: addresses, routes, rules and files are as before");
            failure
        }
        Err(left) => {
            say("not all could be undone:");
            let _ = left.report();
            failure.hint(format!("to end it: {}", home.command("leave")))
        }
    }
}

/// What is wrong, as `hawser doctor` finds it while the portal still runs.
fn print_findings(home: &Home) {
    if let Some(text) = proof::paths(home) {
        say(&text);
    }
    match doctor::examine(&home.config) {
        Ok(findings) => say(doctor::render(&findings).trim_end()),
        Err(failure) => drop(failure.report()),
    }
}

/// Standard error may be closed by now.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Where the files are that `leave` removes.
pub(super) fn was_written_by_join(config: &Path) -> bool {
    written::is_ours(config)
}
