//! Whether the tunnel carries what it is for: the other portal's inner address, and the internet if that answered
//! before.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use hawser_portal::api::{Client, PathState, Status};
use hawser_portal::pairing::Token;

use super::{Home, is_interrupted};
use crate::cmd::ping;
use crate::failure::Failure;

/// Public resolvers (Cloudflare's, Quad9's, Google's), by TCP: a connection and nothing more.
const PROBES: [&str; 3] = ["1.1.1.1:443", "9.9.9.9:443", "8.8.8.8:443"];
/// How long one may take to answer: three times what a satellite needs.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(200);

/// What has to hold. Made before anything is changed.
#[derive(Debug)]
pub struct Proof {
    gateways: Vec<IpAddr>,
    /// What of the internet answered before; empty where none did, or none is to go by the tunnel.
    probes: Vec<SocketAddr>,
    internet_is_ours: bool,
}

/// How far it came. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Nothing,
    Session,
    Gateway,
    All,
}

impl Proof {
    /// Asks what answers now.
    pub fn before(token: &Token, named: &[SocketAddr], default_route: bool) -> Self {
        let usual = || PROBES.iter().map(|probe| probe.parse().expect("the constants are addresses")).collect();
        let mut probes: Vec<SocketAddr> = if named.is_empty() { usual() } else { named.to_vec() };
        if default_route {
            let answered = answering(&probes);
            probes.retain(|probe| answered.contains(probe));
        } else {
            probes.clear();
        }
        Self { gateways: token.gateways.clone(), probes, internet_is_ours: default_route }
    }

    /// Waits until all of it answers; says so in a sentence.
    ///
    /// # Errors
    /// What did not answer in time, or that somebody wants an end.
    pub fn wait(&mut self, home: &Home, limit: Duration, interrupted: &AtomicBool) -> Result<String, Failure> {
        let start = Instant::now();
        let mut reached = Reached::Nothing;
        while start.elapsed() < limit {
            if is_interrupted(interrupted) {
                return Err(Failure::failed("join: interrupted"));
            }
            reached = self.look(home);
            if reached == Reached::All {
                return Ok(self.success(home));
            }
            sleep(GLANCE);
        }
        let seconds = limit.as_secs();
        Err(match reached {
            Reached::Nothing => Failure::failed(format!("join: no session with the server within {seconds} s"))
                .hint("does UDP pass on every uplink, and has the server's clock or key changed? there: sudo hawser peer list"),
            Reached::Session => Failure::failed(format!(
                "join: there is a session, and the server's inner address did not answer a ping within {seconds} s"
            ))
            .hint("does a firewall on the server drop what comes in by hawser0?"),
            Reached::Gateway | Reached::All => Failure::failed(format!(
                "join: the server answers through the tunnel, and the internet, which answered before, did not within {seconds} s"
            ))
            .hint("on the server: [nat] masquerade names the interface to the internet; does a firewall there forward nothing?"),
        })
    }

    fn look(&self, home: &Home) -> Reached {
        let session = Client::status(&home.socket).is_ok_and(|status| !active(&status).is_empty());
        if !session {
            Reached::Nothing
        } else if !self.gateways.iter().any(|gateway| ping::answers(*gateway, ANSWERS_WITHIN)) {
            Reached::Session
        } else if !self.probes.is_empty() && answering(&self.probes).is_empty() {
            Reached::Gateway
        } else {
            Reached::All
        }
    }

    fn success(&self, home: &Home) -> String {
        let links = Client::status(&home.socket).map(|status| active(&status).join(", ")).unwrap_or_default();
        let what = match (self.internet_is_ours, self.probes.is_empty()) {
            (true, false) => "the internet answers through the tunnel",
            (true, true) => {
                "the server answers through the tunnel; the internet did not answer before, and was not asked"
            }
            (false, _) => "the server answers through the tunnel",
        };
        format!("joined: {what}; links that carry: {links}")
    }
}

/// The links of paths that carry data.
fn active(status: &Status) -> Vec<&str> {
    let paths = status.peers.iter().flat_map(|peer| &peer.paths);
    paths.filter(|path| path.state == PathState::Active).map(|path| path.name.as_str()).collect()
}

/// What the portal says of its paths, a line each; none where it does not answer.
pub fn paths(home: &Home) -> Option<String> {
    let status = Client::status(&home.socket).ok()?;
    let paths = status.peers.iter().flat_map(|peer| &peer.paths);
    let lines: Vec<String> = paths.map(|path| format!("link {}: {}", path.name, path.state)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Who of them takes a connection, or refuses it: both are answers.
fn answering(probes: &[SocketAddr]) -> Vec<SocketAddr> {
    let asks = probes.iter().map(|&probe| {
        thread::spawn(move || match TcpStream::connect_timeout(&probe, ANSWERS_WITHIN) {
            Ok(_) => Some(probe),
            Err(error) => (error.kind() == io::ErrorKind::ConnectionRefused).then_some(probe),
        })
    });
    let asks: Vec<_> = asks.collect();
    asks.into_iter().filter_map(|ask| ask.join().ok().flatten()).collect()
}
