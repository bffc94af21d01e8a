//! Step 2, of a link that the system knows and that has no path: what passes by it to an endpoint.
//!
//! Asked at once, of all such links: a datagram of UDP that a closed port answers by ICMP, an initiation that the
//! portal of that public key answers, a connection of TCP to the same port, an echo request, and a page by HTTP, in
//! whose place a captive portal gives its own.

use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use hawser_config::{PublicKey, Transport};
use hawser_portal::api::Status;
use hawser_portal::probe::Probe;

use super::by_link::ByLink;
use super::captive;
use super::finding::Finding;
use super::links::OneLink;
use crate::cmd::ping;

/// How long anything may take to answer: three times what a satellite needs.
const PATIENCE: Duration = Duration::from_secs(2);
/// Repeated, for a closed port's answer is bounded in rate, and may be lost.
const ASKED: u32 = 3;

/// How a connection of TCP went. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tcp {
    Open,
    Refused,
    Silent,
}

/// What passes. Plain data.
#[derive(Debug)]
struct Passes {
    udp_refused: bool,
    /// The portal there answers a stranger.
    portal: bool,
    tcp: Tcp,
    /// None where this process may not ask.
    ping: Option<bool>,
    /// Where a page in the endpoint's place leads.
    captive: Option<String>,
}

/// What is wrong on the ways; a portal has been trying.
pub fn look(links: &[OneLink], status: &Status) -> Vec<Finding> {
    // What is known of a peer that answers explains its links: they are back soon, or wait for what mends it.
    let explained = status.peers.iter().any(|peer| peer.refused.is_some() || peer.handshake_age_s.is_some());
    thread::scope(|scope| {
        let look = |link| move || one(link, explained);
        let asked: Vec<_> = links.iter().map(|link| scope.spawn(look(link))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok().flatten()).collect()
    })
}

fn one(link: &OneLink, explained: bool) -> Option<Finding> {
    let (&endpoint, key) = (link.endpoints.first()?, link.keys.first()?);
    let passes = ask(&link.by, endpoint, key);
    judge(link, endpoint, &passes).filter(|found| !(explained && passes.portal && found.id == "no-handshake"))
}

fn ask(by: &ByLink, endpoint: SocketAddr, key: &PublicKey) -> Passes {
    thread::scope(|scope| {
        let udp_refused = scope.spawn(|| udp_refused(by, endpoint).unwrap_or(false));
        let portal = scope.spawn(|| portal_answers(by, endpoint, key).unwrap_or(false));
        let tcp = scope.spawn(|| tcp(by, endpoint));
        let ping = scope.spawn(|| match by.icmp(endpoint.ip()) {
            Ok(socket) => Some(ping::answers_by(socket, PATIENCE)),
            Err(error) => (error.kind() != io::ErrorKind::PermissionDenied).then_some(false),
        });
        let captive = scope.spawn(|| captive::login_page(by, endpoint.ip()).unwrap_or(None));
        Passes {
            udp_refused: udp_refused.join().unwrap_or(false),
            portal: portal.join().unwrap_or(false),
            tcp: tcp.join().unwrap_or(Tcp::Silent),
            ping: ping.join().unwrap_or(None),
            captive: captive.join().unwrap_or(None),
        }
    })
}

fn judge(link: &OneLink, endpoint: SocketAddr, passes: &Passes) -> Option<Finding> {
    let (name, host) = (&link.name, endpoint.ip());
    let by_udp = matches!(link.transport, Transport::Udp | Transport::Auto);
    let by_tcp = link.transport == Transport::Tcp;
    if let Some(location) = &passes.captive {
        let text = format!("link {name}: a captive portal answers in the place of {host}: {location}");
        return Some(Finding::fault("captive-portal", name, text, captive::cure(link.interface.as_str(), host)));
    }
    if by_udp && passes.udp_refused {
        let text = format!("link {name}: nothing listens at {endpoint} (udp): the host says so");
        let cure = "on the server: sudo systemctl start hawser; does [portal] listen name that port?";
        return Some(Finding::fault("port-closed", name, text, cure));
    }
    match (passes.tcp, passes.ping) {
        (Tcp::Open, _) if by_udp && !passes.portal => {
            let text = format!("link {name}: TCP to {endpoint} passes, and UDP does not");
            let cure = format!("in [[link]] \"{name}\": transport = \"tcp\"; or let UDP {} through", endpoint.port());
            Some(Finding::fault("udp-blocked", name, text, cure))
        }
        (Tcp::Refused | Tcp::Silent, _) if by_tcp && (passes.ping == Some(true) || passes.tcp == Tcp::Refused) => {
            let text = format!("link {name}: {host} answers, and takes no TCP connection at port {}", endpoint.port());
            let cure = "on the server, in [portal]: transports = [\"udp\", \"tcp\"], and let the port in";
            Some(Finding::fault("tcp-closed", name, text, cure))
        }
        (Tcp::Silent, Some(false)) if !passes.portal => {
            let text = format!(
                "link {name}: nothing passes to {host} by {}, neither UDP, nor TCP, nor a ping",
                link.interface
            );
            let cure = format!("is the provider's line up? traceroute -i {} {host}", link.interface);
            Some(Finding::fault("nothing-passes", name, text, cure))
        }
        (Tcp::Silent, None) if !passes.portal => {
            let text = format!("link {name}: nothing came back from {endpoint}, and a ping may not be sent from here");
            Some(Finding::fault("no-handshake", name, text, "it is looked at further by: sudo hawser doctor"))
        }
        _ => {
            let text = format!("link {name}: {host} answers, and no handshake with {endpoint} succeeds");
            let cure = format!(
                "let port {} in on the server (its provider's firewall, too); is the peer's public_key the server's? there: \
                 sudo hawser peer list",
                endpoint.port()
            );
            Some(Finding::fault("no-handshake", name, text, cure))
        }
    }
}

/// Whether the host says that nobody listens there.
fn udp_refused(by: &ByLink, endpoint: SocketAddr) -> io::Result<bool> {
    let socket = by.udp(endpoint)?;
    socket.set_read_timeout(Some(PATIENCE / ASKED))?;
    for _ in 0..ASKED {
        let heard = socket.send(&[0]).and_then(|_| (&socket).read(&mut [0; 64]));
        if heard.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn portal_answers(by: &ByLink, endpoint: SocketAddr, key: &PublicKey) -> io::Result<bool> {
    Ok(Probe::by(by.udp(endpoint)?, key)?.ask(PATIENCE).is_some())
}

fn tcp(by: &ByLink, endpoint: SocketAddr) -> Tcp {
    match by.tcp(endpoint, PATIENCE) {
        Ok(_) => Tcp::Open,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Tcp::Refused,
        Err(_) => Tcp::Silent,
    }
}
