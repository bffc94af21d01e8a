//! Step 2, of a link that the system knows and that has no path: what passes by it to an endpoint.
//!
//! Asked at once, of all such links: a datagram of UDP that a closed port answers by ICMP, an initiation that the portal of that
//! public key answers, a connection of TCP to the same port, an echo request, and a page by HTTP, in whose place a captive portal
//! gives its own.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use hawser_portal::api::Status;
use hawser_portal::config::{PublicKey, Transport};
use hawser_portal::probe::Probe;
use socket2::{Protocol, Type};

use super::by_link::ByLink;
use super::finding::Finding;
use super::links::OneLink;
use crate::cmd::ping;

/// How long anything may take to answer: three times what a satellite needs.
const PATIENCE: Duration = Duration::from_secs(2);
const HTTP: u16 = 80;
/// Bytes of a page that are read: its headers.
const PAGE_MAX: u64 = 4096;
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
    ping: bool,
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
        let ping = scope.spawn(|| by.icmp(endpoint.ip()).is_ok_and(|socket| ping::answers_by(socket, PATIENCE)));
        let captive = scope.spawn(|| captive(by, endpoint.ip()).unwrap_or(None));
        Passes {
            udp_refused: udp_refused.join().unwrap_or(false),
            portal: portal.join().unwrap_or(false),
            tcp: tcp.join().unwrap_or(Tcp::Silent),
            ping: ping.join().unwrap_or(false),
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
        let cure =
            format!("log in there by {}: curl --interface {} http://{host}/ shows it", link.interface, link.interface);
        return Some(Finding::fault("captive-portal", name, text, cure));
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
        (Tcp::Refused | Tcp::Silent, _) if by_tcp && (passes.ping || passes.tcp == Tcp::Refused) => {
            let text = format!("link {name}: {host} answers, and takes no TCP connection at port {}", endpoint.port());
            let cure = "on the server, in [portal]: transports = [\"udp\", \"tcp\"], and let the port in";
            Some(Finding::fault("tcp-closed", name, text, cure))
        }
        (Tcp::Silent, false) if !passes.portal => {
            let text = format!(
                "link {name}: nothing passes to {host} by {}, neither UDP, nor TCP, nor a ping",
                link.interface
            );
            let cure = format!("is the provider's line up? traceroute -i {} {host}", link.interface);
            Some(Finding::fault("nothing-passes", name, text, cure))
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

fn connect(by: &ByLink, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = by.socket(to, Type::STREAM, Protocol::TCP)?;
    socket.connect_timeout(&to.into(), PATIENCE)?;
    Ok(socket.into())
}

fn tcp(by: &ByLink, endpoint: SocketAddr) -> Tcp {
    match connect(by, endpoint) {
        Ok(_) => Tcp::Open,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Tcp::Refused,
        Err(_) => Tcp::Silent,
    }
}

/// Where HTTP at `host` leads to, if that is another host, or asks for a login (RFC 6585 section 6).
fn captive(by: &ByLink, host: IpAddr) -> io::Result<Option<String>> {
    let mut stream = connect(by, SocketAddr::new(host, HTTP))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let mut page = Vec::new();
    let read = stream.take(PAGE_MAX).read_to_end(&mut page);
    if page.is_empty() {
        read?;
    }
    Ok(leads_elsewhere(&String::from_utf8_lossy(&page), host))
}

fn leads_elsewhere(page: &str, host: IpAddr) -> Option<String> {
    let status = page.split(' ').nth(1)?;
    if status == "511" {
        return Some("it asks for a login".to_owned());
    }
    let header = |line: &&str| line.to_ascii_lowercase().starts_with("location:");
    let location = page.lines().find(header)?.split_once(':')?.1.trim();
    let target = location.split("//").nth(1)?.split('/').next()?;
    (status.starts_with('3') && !target.contains(&host.to_string())).then(|| location.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captive_portal_is_told_from_a_web_server_that_goes_on_by_https() {
        let host = "198.51.100.7".parse().expect("an address");
        let table = [
            (
                "HTTP/1.1 302 Found\r\nLocation: http://login.hotel.example/?u=1\r\n\r\n",
                Some("http://login.hotel.example/?u=1"),
            ),
            ("HTTP/1.1 301 Moved\r\nlocation: https://198.51.100.7/\r\n\r\n", None),
            ("HTTP/1.1 511 Network Authentication Required\r\n\r\n", Some("it asks for a login")),
            ("HTTP/1.1 200 OK\r\n\r\nhello", None),
            ("SSH-2.0-OpenSSH\r\n", None),
            ("", None),
        ];
        for (page, expect) in table {
            assert_eq!(leads_elsewhere(page, host).as_deref(), expect, "{page:?}");
        }
    }
}
