//! Endpoints that are names, and the addresses that they have.
//!
//! 1. [`Names::follow`]: these are wanted. 2. [`Names::ask_due`]: those that are due are asked for, beside everything
//!    else (`ask`).
//! 3. [`Names::next`], [`Names::take`]: what was answered. 4. [`Names::look_at`]: who stopped answering is asked for
//!    again; what no path leads to any more is let go. 5. [`Names::fill`]: the peers with all addresses that are known.

mod ask;
mod name;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use hawser_config::{HostName, NamedEndpoint, Peer};
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::session::SessionSnapshot;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::api::NameStatus;
pub use ask::Ways;
use ask::{Answer, ask};
use name::Name;

/// What became of a question. Owned data.
#[derive(Debug)]
pub struct Heard {
    name: HostName,
    answer: Result<Answer, String>,
}

/// All names. None at first; the control thread owns it.
#[derive(Debug)]
pub struct Names {
    names: BTreeMap<HostName, Name>,
    heard: UnboundedReceiver<Heard>,
    ear: UnboundedSender<Heard>,
}

impl Names {
    pub fn new(peers: &[Peer], now: Instant) -> Self {
        let (ear, heard) = unbounded_channel();
        let mut names = Self { names: BTreeMap::new(), heard, ear };
        names.follow(peers, now);
        names
    }

    /// Step 1.
    pub fn follow(&mut self, peers: &[Peer], now: Instant) {
        let wanted: BTreeSet<&HostName> = peers.iter().flat_map(|peer| &peer.names).map(|named| &named.name).collect();
        self.names.retain(|name, _| wanted.contains(name));
        for name in wanted {
            self.names.entry(name.clone()).or_insert_with(|| Name::new(now));
        }
    }

    /// Step 2.
    pub fn ask_due(&mut self, now: Instant, ways: impl Fn() -> Ways) {
        for (name, state) in self.names.iter_mut().filter(|(_, state)| state.is_due(now)) {
            state.on_asked(now);
            let (name, ways, ear) = (name.clone(), ways(), self.ear.clone());
            tokio::spawn(async move {
                let answer = ask(&name, ways).await;
                // Who ends meanwhile does not want to know.
                let _ = ear.send(Heard { name, answer });
            });
        }
    }

    /// Step 3.
    pub async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            // Not while this has an ear itself.
            None => std::future::pending().await,
        }
    }

    /// Step 3: tells the log; whether a name has other addresses now.
    pub fn take(&mut self, heard: Heard, now: Instant) -> bool {
        let Heard { name, answer } = heard;
        let Some(state) = self.names.get_mut(&name) else { return false };
        match &answer {
            Ok(answer) if state.is_news(answer) => {
                tracing::info!(%name, addresses = ?answer.addresses, ttl_s = answer.ttl.as_secs(), "name resolved");
            }
            Err(error) if state.error() != Some(error) => {
                tracing::warn!(%name, %error, "name not resolved, it is asked for again");
            }
            _ => {}
        }
        state.on_answer(now, answer)
    }

    /// Step 4, for one peer; whether a name has other addresses now.
    pub fn look_at(&mut self, peer: &Peer, session: Option<&SessionSnapshot>) -> bool {
        let paths = || session.iter().flat_map(|session| &session.paths);
        let carries = |state| matches!(state, HealthState::Active | HealthState::Suspect);
        let used: BTreeSet<IpAddr> = paths().filter(|path| carries(path.state)).map(|path| path.remote.ip()).collect();
        let silent = used.is_empty() || paths().any(|path| path.state == HealthState::Down(DownReason::Timeout));
        let mut changed = false;
        for named in &peer.names {
            let Some(state) = self.names.get_mut(&named.name) else { continue };
            if silent {
                state.on_silence()
            } else {
                state.on_word()
            }
            changed |= state.let_go(|address| !used.contains(address));
        }
        changed
    }

    /// Step 5.
    pub fn fill(&self, peers: &[Peer]) -> Vec<Peer> {
        peers.iter().map(|peer| self.fill_one(peer)).collect()
    }

    fn fill_one(&self, peer: &Peer) -> Peer {
        let mut all: Vec<(u8, SocketAddr)> = peer.ranks.iter().copied().zip(peer.endpoints.iter().copied()).collect();
        for NamedEndpoint { name, port, rank } in &peer.names {
            let addresses = self.names.get(name).into_iter().flat_map(Name::addresses);
            all.extend(addresses.map(|address| (*rank, SocketAddr::new(address, *port))));
        }
        all.sort_by_key(|(rank, _)| *rank);
        let mut seen = BTreeSet::new();
        all.retain(|(_, endpoint)| seen.insert(*endpoint));
        let (ranks, endpoints) = all.into_iter().unzip();
        Peer { endpoints, ranks, ..peer.clone() }
    }

    /// How a peer's names stand.
    pub fn status(&self, peer: &Peer) -> Vec<NameStatus> {
        let one = |named: &NamedEndpoint| {
            let state = self.names.get(&named.name);
            NameStatus {
                endpoint: named.to_string(),
                addresses: state.into_iter().flat_map(Name::addresses).collect(),
                error: state.and_then(Name::error).cloned(),
            }
        };
        peer.names.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use hawser_config::Config;

    fn peers(endpoints: &str) -> Vec<Peer> {
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.2/24\"]\n[[link]]\nname = \"a\"\n\
             interface = \"eth0\"\n[[peer]]\nname = \"hub\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
             endpoints = [{endpoints}]\nallowed_ips = [\"10.77.0.1/32\"]\n"
        );
        Config::parse(&text, "test.toml").expect("a right configuration").peers
    }

    fn answer(name: &str, addresses: &[&str]) -> Heard {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        let answer = Ok(Answer { addresses, ttl: Duration::from_secs(60) });
        Heard { name: HostName::parse(name).expect("a name"), answer }
    }

    #[test]
    fn addresses_stand_where_their_name_stood_and_all_of_a_name_are_as_good() {
        let peers = peers("\"a.example:1\", \"192.0.2.9:2\", \"b.example:3\"");
        let mut names = Names::new(&peers, Instant::now());
        let shown = |names: &Names| {
            let peer = &names.fill(&peers)[0];
            peer.endpoints.iter().zip(&peer.ranks).map(|(at, rank)| format!("{at} {rank}")).collect::<Vec<_>>()
        };
        assert_eq!(shown(&names), ["192.0.2.9:2 1"], "what is known at the start");
        assert!(names.take(answer("b.example", &["192.0.2.7"]), Instant::now()));
        assert!(names.take(answer("a.example", &["192.0.2.1", "2001:db8::1"]), Instant::now()));
        assert_eq!(shown(&names), ["192.0.2.1:1 0", "[2001:db8::1]:1 0", "192.0.2.9:2 1", "192.0.2.7:3 2"]);
        assert!(!names.take(answer("a.example", &["192.0.2.1", "2001:db8::1"]), Instant::now()), "no news");
        assert!(!names.take(answer("c.example", &["192.0.2.1"]), Instant::now()), "nobody asked for it");
    }

    #[test]
    fn an_address_of_before_goes_once_no_path_leads_there() {
        let peers = peers("\"a.example:1\"");
        let mut names = Names::new(&peers, Instant::now());
        names.take(answer("a.example", &["192.0.2.1"]), Instant::now());
        assert!(names.take(answer("a.example", &["192.0.2.2"]), Instant::now()));
        assert_eq!(names.fill(&peers)[0].endpoints.len(), 2, "it may still carry");
        assert!(names.look_at(&peers[0], None), "it does not");
        assert_eq!(names.fill(&peers)[0].endpoints, ["192.0.2.2:1".parse().expect("an endpoint")]);
        assert_eq!(names.status(&peers[0])[0].endpoint, "a.example:1");
    }
}
