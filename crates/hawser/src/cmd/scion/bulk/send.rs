//! `hawser scion send`: files to `hawser scion receive`, over several paths at once.
//!
//! 1. The daemon is asked for paths, of which the policy and a criterion choose; inside one's own AS none are needed.
//! 2. The files are sent; a terminal shows how far it is. 3. What became of each is printed.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use hawser_config::{PrivateKey, amount_arg};
use hawser_scion::bulk::{
    Law, PathState, Progress, Rate, SendError, SendOrder, Sent, SourceError, Trust, Verdict, send,
};
use hawser_scion::conn::PortRange;
use hawser_scion::daemon::DaemonAddr;
use hawser_scion::select::{AclEntry, Criterion, Policy, Sequence, choose};
use hawser_scion::service::{PathService, ServiceOpts, Subscription};
use hawser_scion::{EndpointAddr, Path};
use serde::Serialize;

use super::super::super::output::print;
use super::super::super::table::{bytes, duration};
use super::super::ask::{Asked, ask, policy};
use super::{Meter, TrustArgs, ended_by_user, mbps, mean};
use crate::failure::Failure;

/// Where a token may be, so that other users do not see it on the command line.
const TOKEN: &str = "HAWSER_TOKEN";
/// Milliseconds in a second.
const MILLI: f64 = 1000.0;

/// Send files to `hawser scion receive`, over several paths at once
#[derive(Debug, Args)]
pub struct Send {
    /// The files
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// The receiver, such as 1-ff00:0:120,10.120.0.10:31000
    #[arg(value_name = "ISD-AS,HOST:PORT", required = true)]
    destination: EndpointAddr,
    #[command(flatten)]
    trust: TrustArgs,
    /// The token that the receiver printed [default: $HAWSER_TOKEN]
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["secret", "key", "peer"])]
    token: Option<String>,
    /// Use this many paths
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    paths: u16,
    /// What makes paths the best: mtu, length, latency, bandwidth or sharability
    #[arg(long, value_name = "WHAT", default_value_t = Criterion::Sharability)]
    select: Criterion,
    /// Only paths with these hops, such as "0* 1-ff00:0:110 0*"
    #[arg(long, value_name = "HOPS")]
    sequence: Option<Sequence>,
    /// Only paths that an access list allows: its entries in order, such as --acl "- 1-ff00:0:110#2" --acl +
    #[arg(long, value_name = "ENTRY", allow_hyphen_values = true)]
    acl: Vec<AclEntry>,
    /// Take no more of a link than one TCP flow would: CUBIC on each path, and only paths that share no interface
    #[arg(long)]
    fair: bool,
    /// Never send faster than this in all, in bit/s, as in 500M
    #[arg(long, value_name = "RATE", value_parser = amount_arg)]
    rate: Option<u64>,
    /// Give up when nothing gets on for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// This end, where no daemon is to be asked inside the AS
    #[arg(long, value_name = "ISD-AS,HOST:PORT")]
    local: Option<EndpointAddr>,
    /// The SCION daemon [default: $SCION_DAEMON, or 127.0.0.1:30255]
    #[arg(long, value_name = "ADDR")]
    daemon: Option<DaemonAddr>,
    /// Print one JSON object at the end, and no progress
    #[arg(long)]
    json: bool,
}

/// What is known of the way.
struct Ways {
    local: EndpointAddr,
    dispatched: Option<PortRange>,
    mtu: Option<u16>,
    paths: Vec<Path>,
    /// Tells of renewed paths; the service lives as long.
    renewals: Option<(PathService, Subscription)>,
}

impl Send {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        let trust = self.trust()?;
        let Ways { local, dispatched, mtu, paths, mut renewals } = self.ways()?;
        let order = SendOrder {
            files: self.files.clone(),
            destination: self.destination,
            local,
            dispatched,
            mtu,
            paths,
            law: if self.fair { Law::Fair } else { Law::Fill },
            ceiling: self.rate.map(Rate::from_bits),
            trust,
            patience: Duration::from_secs(self.timeout),
        };
        let ended = ended_by_user()?;
        let mut meter = Meter::new(self.json);
        let renew = || {
            let (service, subscription) = renewals.as_mut()?;
            let changed = !subscription.fetch().is_empty();
            changed.then(|| hawser_scion::conn::Paths::paths(service, self.destination.isd_as).ok()).flatten()
        };
        let sent = send(&order, renew, |progress| {
            let rate = meter.rate(progress.arrived);
            meter.show(&line(progress, rate));
            if ended.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        meter.clear();
        self.tell(&sent.map_err(|error| self.failed(error))?)
    }

    fn trust(&self) -> Result<Trust, Failure> {
        if let Some(trust) = self.trust.read()? {
            return Ok(trust);
        }
        let token = self.token.clone().or_else(|| std::env::var(TOKEN).ok());
        let Some(token) = token else {
            return Err(Failure::wrong("send: nothing proves who the receiver is")
                .hint("give the token that it printed (--token), or --secret FILE, or --key FILE --peer KEY"));
        };
        let secret = PrivateKey::parse(&token).map_err(|error| Failure::wrong(format!("read token: {error}")))?;
        Ok(Trust::secret(*secret.as_bytes()))
    }

    /// Step 1.
    fn ways(&self) -> Result<Ways, Failure> {
        if let Some(local) = self.local.filter(|local| local.isd_as == self.destination.isd_as) {
            return Ok(Ways { local, dispatched: None, mtu: None, paths: Vec::new(), renewals: None });
        }
        let policy = policy(&self.acl, self.sequence.as_ref())?;
        if self.select == Criterion::Health {
            return Err(
                Failure::wrong("choose by health: nothing is measured before a transfer").hint("--select latency")
            );
        }
        let Asked { address, local, ports, lookup } = ask(self.daemon.as_ref(), self.destination.isd_as)?;
        let dispatched = Some(ports).filter(|range| range.last > 0);
        let host = |towards| {
            hawser_scion::probe::host_towards(towards)
                .map_err(|error| Failure::failed(format!("find the way to {towards}: {error}")))
        };
        let own = |host| EndpointAddr::new(local.isd_as, std::net::SocketAddr::new(host, 0));
        if local.isd_as == self.destination.isd_as {
            let local_end = self.local.map_or_else(|| host(self.destination.host).map(own), Ok)?;
            let mtu = Some(local.mtu);
            return Ok(Ways { local: local_end, dispatched, mtu, paths: Vec::new(), renewals: None });
        }
        let paths = self.chosen(lookup.paths, &policy)?;
        let first = paths.first().and_then(|path| path.next_hop).unwrap_or(self.destination.host);
        let local_end = own(host(first)?);
        // Without the service paths hold until they expire.
        let service = PathService::start(address, ServiceOpts { policy, select: self.select }).ok();
        let renewals = service.and_then(|service| {
            let subscription = service.subscribe(self.destination.isd_as)?;
            Some((service, subscription))
        });
        Ok(Ways { local: local_end, dispatched, mtu: None, paths, renewals })
    }

    fn chosen(&self, found: Vec<Path>, policy: &Policy) -> Result<Vec<Path>, Failure> {
        let known = found.len();
        let admitted: Vec<Path> = found.into_iter().filter(|path| policy.admits(path)).collect();
        let chosen = choose(&admitted, self.select, self.paths.into(), &Default::default());
        let mut paths: Vec<Path> = chosen.into_iter().map(|index| admitted[index].clone()).collect();
        if self.fair {
            keep_disjoint(&mut paths);
        }
        if !paths.is_empty() {
            return Ok(paths);
        }
        let failure = Failure::failed(format!("find a path to {}: there is none", self.destination.isd_as));
        Err(match known {
            0 => failure
                .hint(format!("see what the daemon knows: hawser scion paths {} --refresh", self.destination.isd_as)),
            _ => failure.hint(format!("the daemon knows {known}: --sequence and --acl leave them all out")),
        })
    }

    fn failed(&self, error: SendError) -> Failure {
        let hint = match &error {
            SendError::NoAnswer { unreachable: true, .. } => {
                Some(format!("nobody listens there; start it: hawser scion receive --listen {} --into DIR", self.destination))
            }
            SendError::NoAnswer { .. } => {
                Some("the receiver answers only who has its secret or key; see whether paths work: hawser scion paths --probe".to_owned())
            }
            SendError::Busy { .. } => Some("end the other one, or wait until it is done".to_owned()),
            SendError::Stalled { .. } | SendError::Stopped { .. } | SendError::Interrupted => {
                Some("the same command goes on where it stopped".to_owned())
            }
            SendError::Source(SourceError::NotAFile { .. }) => Some("send files alone, or an archive of a folder".to_owned()),
            SendError::Source(SourceError::SameName { .. }) => {
                Some("all files come into one folder: rename one, or send an archive".to_owned())
            }
            _ => None,
        };
        Failure::hinted(hint, error)
    }

    /// Step 3.
    fn tell(&self, sent: &Sent) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string_pretty(&shown(sent)).map_err(Failure::failed)?;
            print(&format!("{text}\n"))?;
        } else {
            for (info, verdict, _) in &sent.files {
                match verdict {
                    Verdict::Good => print(&format!("{} sent, {}\n", info.name, bytes(info.size)))?,
                    verdict => eprintln!("error: send {}: {verdict}", info.name),
                }
            }
            if sent.progress.bytes > 0 {
                print(&summary(&sent.progress))?;
            }
        }
        let failed = sent.files.iter().filter(|(_, verdict, _)| *verdict != Verdict::Good);
        let failed: Vec<Verdict> = failed.map(|(_, verdict, _)| *verdict).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let failure = Failure::failed(format!("send: {} of {} files were not taken", failed.len(), sent.files.len()));
        Err(match failed.contains(&Verdict::Exists) {
            true => failure.hint("at the receiver: hawser scion receive --force"),
            false => failure,
        })
    }
}

/// One TCP flow would be on each link alone.
fn keep_disjoint(paths: &mut Vec<Path>) {
    let mut used = Vec::new();
    paths.retain(|path| {
        let interfaces = path.interfaces.interfaces();
        let apart = interfaces.iter().all(|interface| !used.contains(interface));
        if apart {
            used.extend_from_slice(interfaces);
        }
        apart
    });
}

/// Step 2: how far it is.
fn line(progress: &Progress, rate: f64) -> String {
    if progress.bytes == 0 {
        return "calling".to_owned();
    }
    let active = progress.paths.iter().filter(|path| path.state == PathState::Active).count();
    let left = progress.bytes - progress.arrived.min(progress.bytes);
    let remaining = if rate > 0.0 { format!(", {} left", duration(left as f64 * 8.0 / rate)) } else { String::new() };
    format!(
        "{:3} %  {} of {}, {}, {active} of {} paths{remaining}",
        progress.arrived.saturating_mul(100) / progress.bytes,
        bytes(progress.arrived),
        bytes(progress.bytes),
        mbps(rate),
        progress.paths.len(),
    )
}

fn summary(progress: &Progress) -> String {
    let sent = progress.arrived - progress.resumed.min(progress.arrived);
    let rate = mbps(mean(sent, progress.elapsed));
    let resumed =
        if progress.resumed > 0 { format!(", {} were there", bytes(progress.resumed)) } else { String::new() };
    let time = progress.elapsed.as_secs_f64();
    let paths = progress.paths.len();
    format!("{} in {time:.2} s, {rate}, {paths} path{}{resumed}\n", bytes(sent), if paths == 1 { "" } else { "s" })
}

#[derive(Serialize)]
struct Shown {
    bytes: u64,
    resumed_bytes: u64,
    seconds: f64,
    mbps: f64,
    files: Vec<ShownFile>,
    paths: Vec<ShownPath>,
}

#[derive(Serialize)]
struct ShownFile {
    name: String,
    bytes: u64,
    /// `null` where it has arrived.
    error: Option<String>,
    digest: Option<String>,
}

#[derive(Serialize)]
struct ShownPath {
    path: String,
    state: &'static str,
    rtt_ms: f64,
    sent_bytes: u64,
    datagrams: u64,
    lost: u64,
    copies: u64,
}

fn shown(sent: &Sent) -> Shown {
    let Sent { files, progress } = sent;
    let carried = progress.arrived - progress.resumed.min(progress.arrived);
    Shown {
        bytes: progress.bytes,
        resumed_bytes: progress.resumed,
        seconds: progress.elapsed.as_secs_f64(),
        mbps: mean(carried, progress.elapsed) / super::MEGA,
        files: files
            .iter()
            .map(|(info, verdict, digest)| ShownFile {
                name: info.name.to_string(),
                bytes: info.size,
                error: (*verdict != Verdict::Good).then(|| verdict.to_string()),
                digest: digest.map(|digest| digest.to_string()),
            })
            .collect(),
        paths: progress
            .paths
            .iter()
            .map(|path| ShownPath {
                path: path.path.to_string(),
                state: state(path.state),
                rtt_ms: path.round_trip.as_secs_f64() * MILLI,
                sent_bytes: path.counts.sent_bytes,
                datagrams: path.counts.sent,
                lost: path.counts.lost,
                copies: path.counts.copies,
            })
            .collect(),
    }
}

fn state(state: PathState) -> &'static str {
    match state {
        PathState::Untried => "untried",
        PathState::Active => "active",
        PathState::Suspect => "suspect",
        PathState::Down => "down",
        PathState::Closed => "closed",
    }
}

#[cfg(test)]
mod tests {
    use hawser_scion::{Fingerprint, InterfaceId, PathInterface};

    use super::*;

    fn path(interfaces: &[(&str, u16)]) -> Path {
        let interface =
            |(isd_as, id): &(&str, u16)| PathInterface { isd_as: isd_as.parse().expect("an AS"), id: InterfaceId(*id) };
        Path {
            source: "1-1".parse().expect("an AS"),
            destination: "1-2".parse().expect("an AS"),
            dataplane: hawser_scion::Dataplane::Empty,
            next_hop: None,
            mtu: 1472,
            interfaces: Fingerprint::new(interfaces.iter().map(interface)),
            latency: Vec::new(),
            bandwidth: Vec::new(),
            expiry: std::time::SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn fair_paths_share_no_interface() {
        let all = [path(&[("1-1", 1), ("1-2", 1)]), path(&[("1-1", 1), ("1-2", 2)]), path(&[("1-1", 2), ("1-2", 2)])];
        let mut paths = all.to_vec();
        keep_disjoint(&mut paths);
        assert_eq!(paths, [all[0].clone(), all[2].clone()]);
    }

    #[test]
    fn progress_is_one_line() {
        let mut progress = Progress::default();
        assert_eq!(line(&progress, 0.0), "calling");
        (progress.bytes, progress.arrived) = (4 << 20, 1 << 20);
        assert_eq!(
            line(&progress, 8.0 * 1024.0 * 1024.0),
            " 25 %  1.0 MiB of 4.0 MiB, 8.4 Mbit/s, 0 of 0 paths, 3 s left"
        );
    }
}
