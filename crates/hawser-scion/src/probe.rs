//! Whether paths work: the last router on each is asked to answer (scmp.rst, "Traceroute Request").
//!
//! 1. Paths whose first routers are reached from the same address of this host share a socket, in the dispatched ports.
//! 2. A traceroute request goes along each, and alerts the router at which the path enters its last AS.
//! 3. Answers, and errors, are told apart by the request's number. What does not come in time did not come.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::addr::{EndpointAddr, IsdAs};
use crate::conn::PortRange;
use crate::packet::{DataplaneView, FlowId, Packet, Quote, Quoted, ScmpView, Template, Traceroute, Upper, parse};
use crate::path::{Fingerprint, Path};

/// How long answers are waited for (reference implementation, private/app/path, filterUnhealthy).
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The largest datagram (RFC 768).
const LARGEST: usize = u16::MAX as usize;

/// What came of a probe. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The last router answered.
    Alive {
        /// After so long.
        round_trip: Duration,
    },
    /// Nobody answered.
    TimedOut,
    /// A router on the way sent an error, or the request could not be sent.
    Refused {
        /// What it says.
        says: String,
    },
}

/// Tries paths, from one AS. Holds nothing open; may be used from any thread.
#[derive(Debug, Clone, Copy)]
pub struct Prober {
    local: IsdAs,
    ports: PortRange,
    patience: Duration,
}

/// A request under way. Plain data.
struct Request<'p> {
    path: &'p Path,
    template: Template,
    next_hop: SocketAddr,
    sent: Instant,
    outcome: Outcome,
}

impl Prober {
    /// For the paths of an AS, whose routers send to these ports; none if they are 0 to 0.
    pub fn new(local: IsdAs, ports: PortRange) -> Prober {
        Prober { local, ports, patience: PATIENCE }
    }

    /// The same, with another patience.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Prober {
        Prober { patience, ..self }
    }

    /// What comes of a probe of each path. Paths inside the AS have no router, and are left out. Blocks.
    ///
    /// # Errors
    /// If there is no socket to ask from.
    pub fn probe(&self, paths: &[Path]) -> io::Result<BTreeMap<Fingerprint, Outcome>> {
        let mut by_host = BTreeMap::<IpAddr, Vec<(&Path, SocketAddr)>>::new();
        for path in paths {
            if let Some(next_hop) = path.next_hop {
                by_host.entry(host_towards(next_hop)?).or_default().push((path, next_hop));
            }
        }
        thread::scope(|scope| {
            let probes: Vec<_> =
                by_host.into_iter().map(|(host, paths)| scope.spawn(move || self.probe_from(host, &paths))).collect();
            let mut outcomes = BTreeMap::new();
            for probe in probes {
                let ended = probe.join().map_err(|_| io::Error::other("probe paths: its thread panicked"))?;
                outcomes.extend(ended?);
            }
            Ok(outcomes)
        })
    }

    /// Steps 2 and 3, for the paths that begin at one address.
    fn probe_from(&self, host: IpAddr, paths: &[(&Path, SocketAddr)]) -> io::Result<Vec<(Fingerprint, Outcome)>> {
        let socket = self.bind(host)?;
        let local = EndpointAddr::new(self.local, socket.local_addr()?);
        let mut requests: Vec<Request<'_>> =
            paths.iter().filter_map(|(path, next_hop)| Request::new(local, path, *next_hop)).collect();
        for (seq, request) in (0..).zip(&mut requests) {
            request.send(&socket, local.host.port(), seq);
        }
        let deadline = Instant::now() + self.patience;
        let mut buffer = vec![0; LARGEST];
        while requests.iter().any(|request| request.outcome == Outcome::TimedOut) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            let len = match socket.recv(&mut buffer) {
                Ok(len) => len,
                Err(error) if is_transient(&error) => continue,
                Err(error) => return Err(error),
            };
            let Ok(packet) = parse(&buffer[..len]) else { continue };
            let Some((id, seq, outcome)) = read(&packet) else { continue };
            let asked = requests.get_mut(usize::from(seq)).filter(|_| id == local.host.port());
            if let Some(request) = asked.filter(|request| request.outcome == Outcome::TimedOut) {
                request.outcome = outcome.unwrap_or_else(|| Outcome::Alive { round_trip: request.sent.elapsed() });
            }
        }
        Ok(requests.into_iter().map(|request| (request.path.interfaces.clone(), request.outcome)).collect())
    }

    /// Binds to a free port that routers send to.
    fn bind(&self, host: IpAddr) -> io::Result<UdpSocket> {
        if self.ports.last == 0 {
            return UdpSocket::bind((host, 0));
        }
        let mut bound = Err(io::ErrorKind::AddrInUse.into());
        for port in (self.ports.first..=self.ports.last).rev() {
            bound = UdpSocket::bind((host, port));
            match &bound {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                _ => break,
            }
        }
        bound
    }
}

impl<'p> Request<'p> {
    fn new(local: EndpointAddr, path: &'p Path, next_hop: SocketAddr) -> Option<Request<'p>> {
        let alerting = DataplaneView::of(&path.dataplane).ok()?.alerting_last()?;
        // The router answers for its AS: no host is meant.
        let nobody = match local.host {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let destination = EndpointAddr::new(path.destination, SocketAddr::new(nobody, 0));
        let template = Template::new(local, destination, &alerting, FlowId::default()).ok()?;
        Some(Request { path, template, next_hop, sent: Instant::now(), outcome: Outcome::TimedOut })
    }

    fn send(&mut self, socket: &UdpSocket, id: u16, seq: u16) {
        let mut packet = Vec::new();
        let question = Traceroute { id, seq, ..Traceroute::default() };
        self.template.write_scmp(&ScmpView::TracerouteRequest(question), &mut packet);
        self.sent = Instant::now();
        if let Err(error) = socket.send_to(&packet, self.next_hop) {
            self.outcome = Outcome::Refused { says: format!("send to {}: {error}", self.next_hop) };
        }
    }
}

/// Whose question a packet is about: id and number, and what it says if it is no answer.
fn read(packet: &Packet<'_>) -> Option<(u16, u16, Option<Outcome>)> {
    let Upper::Scmp(message) = packet.upper() else { return None };
    if let ScmpView::TracerouteReply(answer) = message {
        return Some((answer.id, answer.seq, None));
    }
    let Quoted::Scmp(ScmpView::TracerouteRequest(question)) = Quote::read(message.quoted()?).ok()?.carried else {
        return None;
    };
    let (kind, code) = message.kind_and_code();
    let (isd_as, _) = packet.source();
    let says = match message {
        ScmpView::ExternalInterfaceDown { isd_as, interface, .. } => format!("{isd_as}#{interface} is down"),
        ScmpView::InternalConnectivityDown { isd_as, ingress, egress, .. } => {
            format!("the way from {ingress} to {egress} in {isd_as} is down")
        }
        _ => format!("SCMP error {kind}, code {code}, from {isd_as}"),
    };
    Some((question.id, question.seq, Some(Outcome::Refused { says })))
}

/// This host's address on the way there, as its routes say.
///
/// # Errors
/// If there is no way.
pub fn host_towards(next_hop: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if next_hop.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(next_hop)?;
    Ok(socket.local_addr()?.ip())
}

/// Whether there may be something to receive later. A router that is down refuses by ICMP.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        WouldBlock | TimedOut | Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

impl Outcome {
    /// As `scion showpaths` calls it.
    pub const fn status(&self) -> &'static str {
        match self {
            Outcome::Alive { .. } => "alive",
            Outcome::TimedOut => "timeout",
            Outcome::Refused { .. } => "scmp",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Alive { .. } => f.write_str("alive"),
            Outcome::TimedOut => f.write_str("no answer"),
            Outcome::Refused { says } => f.write_str(says),
        }
    }
}
