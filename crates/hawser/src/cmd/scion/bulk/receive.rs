//! `hawser scion receive`: takes files of `hawser scion send`, until it is ended or, with `--once`, one transfer is
//! done.
//!
//! 1. Where it listens, and whom it trusts: without a secret and keys a token is made, and told with the command that
//!    uses it.
//! 2. Files are taken; a terminal shows how far it is. 3. What happens is printed, as text or as JSON, a line each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use hawser_config::{PrivateKey, PublicKey};
use hawser_scion::EndpointAddr;
use hawser_scion::bulk::{ReceiveError, ReceiveOrder, Received, SessionId, Trust, receive};
use hawser_scion::conn::PortRange;
use hawser_scion::daemon::DaemonAddr;
use serde_json::json;

use super::super::super::output::print;
use super::super::super::table::bytes;
use super::super::ask::ask_local;
use super::{Meter, TrustArgs, ended_by_user, mbps, mean};
use crate::failure::{Failure, with_causes};

/// An address that routes to the internet lead to: whoever has one has that address. Source: RFC 5737, TEST-NET-1.
const ELSEWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 9);

/// Take files of `hawser scion send` into a folder
#[derive(Debug, Args)]
pub struct Receive {
    /// Where to listen; port 0 takes a free one [default: the daemon's AS, and the address that the default route has]
    #[arg(long, value_name = "ISD-AS,HOST:PORT")]
    listen: Option<EndpointAddr>,
    /// The folder
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    #[command(flatten)]
    trust: TrustArgs,
    /// Replace files of the same name
    #[arg(long)]
    force: bool,
    /// End after one transfer; the exit status says whether every file arrived
    #[arg(long)]
    once: bool,
    /// The SCION daemon, where --listen is not given [default: $SCION_DAEMON, or 127.0.0.1:30255]
    #[arg(long, value_name = "ADDR")]
    daemon: Option<DaemonAddr>,
    /// Print a JSON object a line for everything that happens, and no progress
    #[arg(long)]
    json: bool,
}

/// What is shown. Nothing at first; the command owns it.
struct Show<'r> {
    order: &'r Receive,
    token: Option<String>,
    meter: Meter,
    /// Bytes of each session's offer.
    sizes: BTreeMap<SessionId, u64>,
    /// How the first transfer ended.
    ended: Option<bool>,
}

impl Receive {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        let (local, dispatched) = self.place()?;
        let (trust, token) = match self.trust.read()? {
            Some(trust) => (trust, None),
            None => {
                let made = PrivateKey::generate();
                let secret = made.map_err(|error| Failure::failed(format!("make a token: {error}")))?;
                (Trust::secret(*secret.as_bytes()), Some(secret.to_base64().to_string()))
            }
        };
        let order = ReceiveOrder { local, dispatched, folder: self.into.clone(), force: self.force, trust };
        let ended = ended_by_user()?;
        let meter = Meter::new(self.json);
        let mut show = Show { order: &self, token, meter, sizes: BTreeMap::new(), ended: None };
        let mut failure = None;
        let received = receive(&order, |what| {
            if let Some(Err(error)) = what.map(|what| show.tell(what)) {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            let done = ended.load(Ordering::Relaxed) || self.once && show.ended.is_some();
            if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        show.meter.clear();
        received.map_err(failed)?;
        match (failure, show.ended) {
            (Some(failure), _) => Err(failure),
            (None, Some(false)) if self.once => Err(Failure::failed("receive: not every file arrived")),
            (None, None) if self.once => Err(Failure::failed("receive: interrupted before anything arrived")),
            (None, _) => Ok(()),
        }
    }

    /// Step 1.
    fn place(&self) -> Result<(EndpointAddr, Option<PortRange>), Failure> {
        if let Some(listen) = self.listen {
            return Ok((listen, (listen.host.port() == 0).then_some(usual_ports())));
        }
        let (local, ports) = ask_local(self.daemon.as_ref())?;
        let host = hawser_scion::probe::host_towards(ELSEWHERE).map_err(|error| {
            Failure::failed(format!("find this host's address: {error}"))
                .hint(format!("name it: --listen {},ADDRESS:0", local.isd_as))
        })?;
        Ok((EndpointAddr::new(local.isd_as, SocketAddr::new(host, 0)), Some(ports).filter(|range| range.last > 0)))
    }
}

/// What routers send to directly, where nobody says otherwise.
fn usual_ports() -> PortRange {
    let ports = hawser_scion::link::DISPATCHED_PORTS;
    PortRange { first: *ports.start(), last: *ports.end() }
}

fn failed(error: ReceiveError) -> Failure {
    let hint = match &error {
        ReceiveError::Folder { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            Some(format!("make it: mkdir -p {}", path.display()))
        }
        _ => None,
    };
    Failure::hinted(hint, error)
}

impl Show<'_> {
    /// Steps 2 and 3.
    fn tell(&mut self, what: Received<'_>) -> Result<(), Failure> {
        if let Received::Gone(_, well) = what {
            self.ended = Some(self.ended.unwrap_or(true) && well);
        }
        if let Received::Offer(session, _, files) = &what {
            let size = files.iter().flatten().map(|file| file.size).sum();
            self.sizes.insert(*session, size);
        }
        if self.order.json {
            return self.json(&what).map_or(Ok(()), |object| print(&format!("{object}\n")));
        }
        if let Received::Progress(session, came) = what {
            let rate = self.meter.rate(came);
            let all = self.sizes.get(&session).copied().unwrap_or(0);
            self.meter.show(&format!("{} of {}, {}", bytes(came), bytes(all), mbps(rate)));
            return Ok(());
        }
        self.meter.clear();
        self.text(&what)
    }

    fn text(&self, what: &Received<'_>) -> Result<(), Failure> {
        match what {
            Received::Listening(local, findings) => {
                for finding in *findings {
                    eprintln!("warning: {finding}");
                }
                let trust = match &self.token {
                    Some(token) => format!("send with: hawser scion send FILE {local} --token {token}\n"),
                    None => String::new(),
                };
                print(&format!("listening on {local}\n{trust}"))
            }
            Received::Offer(_, peer, files) => {
                let peer = PublicKey::new(peer.0).map(|key| key.to_string()).unwrap_or_default();
                for (fault, _) in files.iter().filter_map(|file| file.as_ref().err()) {
                    eprintln!("error: {fault}");
                }
                print(&format!("{} offered by {peer}\n", plural(files.len(), "file")))
            }
            Received::Taken(_, taken) => {
                for error in taken.iter().filter_map(|taken| taken.as_ref().err()) {
                    eprintln!("error: take a file: {}", with_causes(error));
                }
                let there: u64 = taken.iter().flatten().sum();
                if there > 0 { print(&format!("resumed, {} were there\n", bytes(there))) } else { Ok(()) }
            }
            Received::File(_, info, Ok(_), time) => {
                let rate = mbps(mean(info.size, *time));
                print(&format!("{} received, {} in {:.2} s, {rate}\n", info.name, bytes(info.size), time.as_secs_f64()))
            }
            Received::File(_, info, Err(error), _) => {
                eprintln!("error: receive {}: {}", info.name, with_causes(error));
                Ok(())
            }
            Received::Gone(_, false) => {
                eprintln!("error: the transfer ended before every file arrived; what has come is kept");
                Ok(())
            }
            Received::Gone(_, true) | Received::Progress(..) => Ok(()),
        }
    }

    fn json(&self, what: &Received<'_>) -> Option<serde_json::Value> {
        Some(match what {
            Received::Listening(local, _) => {
                json!({ "event": "listening", "address": local.to_string(), "token": self.token })
            }
            Received::Offer(session, peer, files) => {
                let files = files.iter().map(|file| match file {
                    Ok(file) => json!({ "name": file.name.to_string(), "bytes": file.size }),
                    Err((fault, _)) => json!({ "error": fault.to_string() }),
                });
                let peer = PublicKey::new(peer.0).ok().map(|key| key.to_string());
                json!({ "event": "offer", "session": session.0, "peer": peer, "files": files.collect::<Vec<_>>() })
            }
            Received::Taken(session, taken) => {
                let taken = taken.iter().map(|taken| match taken {
                    Ok(there) => json!({ "resumed_bytes": there }),
                    Err(error) => json!({ "error": with_causes(error) }),
                });
                json!({ "event": "taken", "session": session.0, "files": taken.collect::<Vec<_>>() })
            }
            Received::Progress(..) => return None,
            Received::File(session, info, result, time) => {
                let (error, digest) = match result {
                    Ok(digest) => (None, Some(digest.to_string())),
                    Err(error) => (Some(with_causes(error)), None),
                };
                json!({
                    "event": "file", "session": session.0, "name": info.name.to_string(), "bytes": info.size,
                    "seconds": time.as_secs_f64(), "error": error, "digest": digest,
                })
            }
            Received::Gone(session, well) => json!({ "event": "end", "session": session.0, "complete": well }),
        })
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
