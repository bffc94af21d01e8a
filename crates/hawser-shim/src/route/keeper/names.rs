//! What names mean: their addresses by the system's resolver, their SCION end by TXT records.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use hawser_scion::EndpointAddr;
use hickory_resolver::TokioResolver;
use hickory_resolver::proto::rr::RData;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::config::{HostName, Route, To, end_in_txt};

/// A name that takes longer is asked for again the next time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who is asked. Cheap to clone.
#[derive(Clone)]
pub(super) struct Resolver {
    /// Gives a name's addresses, and may take its time.
    pub(super) hosts: Arc<Hosts>,
    /// For TXT records; none where nobody is there to be asked.
    pub(super) txt: Option<Txt>,
}

/// The addresses of a name.
type Hosts = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Who is asked for TXT records. Cheap to clone.
#[derive(Clone)]
pub(super) struct Txt(Arc<TokioResolver>);

/// What is known of names, and what is being asked. Knows none at first; for one task.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<HostName, Known>,
    asked: BTreeSet<HostName>,
    asking: JoinSet<(HostName, Answer)>,
}

/// What is known of a name. Nothing at first; plain data.
#[derive(Debug, Default)]
struct Known {
    addresses: Vec<IpAddr>,
    end: Option<EndpointAddr>,
    wants_end: bool,
    /// What was told of it last, so that nothing is told twice.
    told: Option<String>,
}

/// What was found out; why not, where it was not.
type Answer = Result<(Vec<IpAddr>, Option<EndpointAddr>), String>;

impl Resolver {
    /// What the system uses; for TXT records only where they are wanted.
    pub(super) fn system(dns: bool) -> Resolver {
        let hosts = |name: &str| (name, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect());
        Resolver { hosts: Arc::new(hosts), txt: if dns { Txt::system() } else { None } }
    }

    /// A name's addresses, in order, and its end if it is wanted.
    async fn look_up(self, name: &HostName, wants_end: bool) -> Answer {
        let end = match self.txt.filter(|_| wants_end) {
            Some(txt) => Some(txt.end(name).await?),
            None => None,
        };
        let (hosts, text) = (self.hosts, name.to_string());
        let found = tokio::task::spawn_blocking(move || hosts(&text)).await;
        let found = found.map_err(|e| format!("look up {name}: {e}"))?.map_err(|e| format!("look up {name}: {e}"))?;
        let found: BTreeSet<IpAddr> =
            found.into_iter().filter(|ip| !ip.is_unspecified() && !ip.is_loopback()).collect();
        if found.is_empty() {
            return Err(format!("look up {name}: it has no address that another host could have"));
        }
        Ok((found.into_iter().collect(), end))
    }
}

impl Txt {
    /// The name servers that the system uses; none where it says nothing of them, which is told.
    fn system() -> Option<Txt> {
        let resolver = TokioResolver::builder_tokio().and_then(|builder| builder.build());
        resolver
            .inspect_err(
                |error| tracing::error!(%error, "read the system's name servers: names without `scion` lead nowhere"),
            )
            .ok()
            .map(|resolver| Txt(Arc::new(resolver)))
    }

    /// Particular name servers.
    #[cfg(test)]
    pub(super) fn at(servers: hickory_resolver::config::ResolverConfig) -> Option<Txt> {
        let provider = hickory_resolver::net::runtime::TokioRuntimeProvider::default();
        let resolver = TokioResolver::builder_with_config(servers, provider).build();
        resolver.ok().map(|resolver| Txt(Arc::new(resolver)))
    }

    /// The end that a name's records say.
    async fn end(&self, name: &HostName) -> Result<EndpointAddr, String> {
        let error = |reason: &dyn std::fmt::Display| format!("look up txt records of {name}: {reason}");
        // The dot keeps the domains of resolv.conf away.
        let lookup = self.0.txt_lookup(format!("{name}.")).await.map_err(|e| error(&e))?;
        let texts = lookup.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(txt) => Some(txt.txt_data.concat()),
            _ => None,
        });
        let mut ends = texts.filter_map(|text| end_in_txt(&String::from_utf8_lossy(&text)));
        let first = ends.next().ok_or_else(|| error(&"none begins with scion="))?;
        first.map_err(|e| error(&e))
    }
}

impl Names {
    /// The addresses of a name, as far as is known.
    pub(super) fn addresses(&self, name: &HostName) -> &[IpAddr] {
        self.known.get(name).map_or(&[], |known| &known.addresses)
    }

    /// What its TXT records say, as far as is known.
    pub(super) fn end(&self, name: &HostName) -> Option<EndpointAddr> {
        self.known.get(name)?.end
    }

    /// These routes' names are wanted from now on, and no others. New ones are asked for at once.
    pub(super) fn want<'r>(&mut self, routes: impl Iterator<Item = &'r Route>, resolver: &Resolver) {
        let mut wanted = BTreeMap::<&HostName, bool>::new();
        for route in routes {
            if let Some(To::Name(name, _)) = &route.to {
                *wanted.entry(name).or_default() |= route.scion.is_none();
            }
        }
        self.known.retain(|name, _| wanted.contains_key(name));
        for (name, wants_end) in wanted {
            let known = self.known.entry(name.clone()).or_default();
            let is_new = known.addresses.is_empty() || (wants_end && known.end.is_none());
            known.wants_end = wants_end;
            if is_new {
                self.ask(name.clone(), wants_end, resolver);
            }
        }
    }

    /// Asks for all of them; those that are being asked for are waited for.
    pub(super) fn ask_again(&mut self, resolver: &Resolver) {
        let all: Vec<_> = self.known.iter().map(|(name, known)| (name.clone(), known.wants_end)).collect();
        for (name, wants_end) in all {
            self.ask(name, wants_end, resolver);
        }
    }

    fn ask(&mut self, name: HostName, wants_end: bool, resolver: &Resolver) {
        if !self.asked.insert(name.clone()) {
            return;
        }
        let resolver = resolver.clone();
        self.asking.spawn(async move {
            let late = || Err(format!("look up {name}: no answer within {} s", PATIENCE.as_secs()));
            let answer = timeout(PATIENCE, resolver.look_up(&name, wants_end)).await.unwrap_or_else(|_| late());
            (name, answer)
        });
    }

    /// Waits until something was found out; for ever, where nothing is asked.
    pub(super) async fn answered(&mut self) {
        loop {
            let answer = match self.asking.join_next().await {
                Some(Ok(answer)) => answer,
                // A panic of the task was told by the task.
                Some(Err(_)) => continue,
                None => std::future::pending().await,
            };
            let (name, answer) = answer;
            self.asked.remove(&name);
            if let Some(known) = self.known.get_mut(&name) {
                known.learn(answer);
                return;
            }
        }
    }
}

impl Known {
    /// What was not found stays as it was.
    fn learn(&mut self, answer: Answer) {
        let told = match answer {
            Ok((addresses, end)) => {
                self.addresses = addresses;
                self.end = end;
                None
            }
            Err(reason) => Some(reason),
        };
        if let Some(reason) = told.as_ref().filter(|reason| self.told.as_ref() != Some(reason)) {
            tracing::warn!("{reason}");
        }
        self.told = told;
    }
}
