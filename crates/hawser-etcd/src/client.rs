//! Asks one server of etcd.
//!
//! 1. [`Client::connect`] reads the files of TLS anew, so that a certificate may be replaced while the member runs.
//! 2. [`Client::list`] reads all keys of a hub, as of one revision. 3. [`Client::watch`] follows them.
//! 4. [`Client::register`] writes the member with a lease, [`Client::keep_alive`] renews that. 5. [`Client::commit`]
//!    writes where nothing changed meanwhile.
//!
//! A call has [`CALL_TIMEOUT`]. Reads are linearizable, so that an answer shows that etcd has a quorum.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::{Stream, stream};
use hawser_config::PublicKey;
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::keys::{Key, MemberName, Prefix};
use crate::namesake::Namesake;
use crate::proto::{
    Call, Compare, CompareTarget, DeleteRangeRequest, EventType, KeyValue, LeaseGrantRequest, LeaseKeepAliveRequest,
    LeaseRevokeRequest, Operation, PutRequest, RangeRequest, RequestOp, RequestUnion, TargetUnion, TxnRequest,
    WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use crate::state::{Change, Entry, History, Revision, Watched};

/// A server that is there answers within some round trips, or while etcd elects, which takes its election timeout (one
/// second by default) and more.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// A connection with TLS takes two round trips before it carries anything (RFC 8446).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// A connection that is silent is asked (HTTP/2 PING), and given up without an answer.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// Keys that are read at once: an answer stays below what a message may have (4 MiB, tonic's default).
const PAGE: i64 = 1_000;
/// The id of answers that are about no single watch: those to requests for progress.
const NO_WATCH: i64 = -1;
/// A server without a leader refuses such a call, and ends such a watch (etcd, `WithRequireLeader`): else a server that
/// is cut off from the others would tell nothing, and look well.
const REQUIRE_LEADER: &str = "hasleader";

/// How etcd is reached. Plain data.
#[derive(Clone, Debug)]
pub struct Access {
    /// The addresses of its servers.
    pub urls: Vec<String>,
    /// By what the member shows who it is.
    pub tls: Option<TlsFiles>,
}

/// Files of TLS, in PEM. Plain data.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Who vouches for etcd.
    pub ca: PathBuf,
    /// The member's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Why something was not done. Owned data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {reason}")]
pub struct Fault {
    /// What was tried.
    pub operation: String,
    /// In the words of etcd, or of the system.
    pub reason: String,
    /// etcd takes no more: its disk is full, or its quota is used up.
    pub full: bool,
}

impl Fault {
    pub fn new(operation: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        // It is logged, and printed at terminals.
        let reason = reason.to_string().chars().filter(|char| !char.is_control()).collect();
        Self { operation: operation.into(), reason, full: false }
    }

    fn of(operation: &str, status: &Status) -> Self {
        let reason = if status.message().is_empty() { status.code().description() } else { status.message() };
        Self { full: status.code() == Code::ResourceExhausted, ..Self::new(operation, reason) }
    }
}

/// A lease of etcd's. A plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseId(i64);

/// What came of writing a member. Owned data.
#[derive(Debug)]
pub enum Registered {
    /// It is there, with this lease.
    As(LeaseId),
    /// Another portal has its name.
    Taken(Namesake),
}

/// All keys of a hub at one revision. Owned data.
#[derive(Debug)]
pub struct Listed {
    pub cluster: u64,
    pub revision: Revision,
    pub entries: Vec<Entry>,
}

/// Holds where a key is as it was. Owned data.
#[derive(Clone, Debug)]
pub enum If {
    /// It is not there.
    Absent(Key),
    /// It changed last at this revision.
    Unchanged(Key, Revision),
}

/// What is written. Owned data.
#[derive(Clone, Debug)]
pub enum Write {
    /// A value below a key.
    Put(Key, Vec<u8>),
    /// No value any more.
    Delete(Key),
}

/// A connection to one server. For several tasks; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    prefix: Prefix,
    channel: Channel,
}

/// A watch: what etcd tells, and where it is asked for progress.
pub struct Watch {
    answers: Streaming<WatchResponse>,
    requests: mpsc::Sender<WatchRequest>,
}

impl Client {
    /// Step 1.
    pub async fn connect(url: &str, tls: Option<&TlsFiles>, prefix: Prefix) -> Result<Self, Fault> {
        let operation = format!("connect to {url}");
        let failed = |error: tonic::transport::Error| Fault::new(operation.clone(), root(&error));
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(failed)?;
        let mut endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true);
        if let Some(tls) = tls.filter(|_| url.starts_with("https://")) {
            endpoint = endpoint.tls_config(read(tls)?).map_err(failed)?;
        }
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, endpoint.connect()).await;
        let channel = connected.map_err(|_| Fault::new(operation.clone(), "no answer"))?.map_err(failed)?;
        Ok(Self { prefix, channel })
    }

    /// Step 2.
    pub async fn list(&self) -> Result<Listed, Fault> {
        let mut listed = Listed { cluster: 0, revision: Revision(0), entries: Vec::new() };
        let mut key = self.prefix.begin().to_vec();
        loop {
            let revision = listed.revision.0;
            let request = RangeRequest { key, range_end: self.prefix.end(), limit: PAGE, revision };
            let answer = self.ask("list members and peers", request).await?;
            let header = answer.header.unwrap_or_default();
            if listed.revision == Revision(0) {
                (listed.cluster, listed.revision) = (header.cluster_id, Revision(header.revision));
            }
            listed.entries.extend(answer.kvs.into_iter().map(entry));
            let Some(last) = listed.entries.last().filter(|_| answer.more) else { return Ok(listed) };
            // The first key after it.
            key = [&last.key[..], &[0]].concat();
        }
    }

    /// The cluster, its revision at this moment, which only a quorum knows, and of which history that is; none where
    /// etcd has no mark.
    pub async fn now(&self) -> Result<(u64, Revision, Option<History>), Fault> {
        let key = self.prefix.full(&Key::History);
        let request = RangeRequest { key, range_end: Vec::new(), limit: 1, revision: 0 };
        let answer = self.ask("read", request).await?;
        let history = answer.kvs.first().map(|kv| History::read(&kv.value));
        let header = answer.header.unwrap_or_default();
        Ok((header.cluster_id, Revision(header.revision), history))
    }

    /// Step 3.
    pub async fn watch(&self, from: Revision) -> Result<Watch, Fault> {
        let (requests, mut inbox) = mpsc::channel(4);
        let create = RequestUnion::Create(WatchCreateRequest {
            key: self.prefix.begin().to_vec(),
            range_end: self.prefix.end(),
            start_revision: from.0,
            progress_notify: true,
        });
        // The channel is empty: there is room.
        let _ = requests.try_send(WatchRequest { request_union: Some(create) });
        let outgoing = stream::poll_fn(move |context| inbox.poll_recv(context));
        let answers = within("watch members and peers", converse(self.channel.clone(), outgoing)).await?;
        Ok(Watch { answers, requests })
    }

    /// Step 4: these with a lease of their own, unless another portal than the one with this key has the name.
    pub async fn register(
        &self,
        name: &MemberName,
        own: &PublicKey,
        lease: Duration,
        writes: Vec<Write>,
    ) -> Result<Registered, Fault> {
        const OPERATION: &str = "write member";
        let at = Key::Member(name.clone());
        let request = RangeRequest { key: self.prefix.full(&at), range_end: Vec::new(), limit: 1, revision: 0 };
        let there = self.ask("read member", request).await?.kvs.into_iter().next();
        if let Some(namesake) = Namesake::of(name, own, there.as_ref().map(|kv| &kv.value[..])) {
            return Ok(Registered::Taken(namesake));
        }
        let hold = there.map_or(If::Absent(at.clone()), |kv| If::Unchanged(at, Revision(kv.mod_revision)));
        let ttl = i64::try_from(lease.as_secs()).unwrap_or(i64::MAX);
        let lease = LeaseId(self.ask("take a lease", LeaseGrantRequest { ttl }).await?.id);
        if self.write(OPERATION, vec![hold], writes, Some(lease)).await? {
            return Ok(Registered::As(lease));
        }
        // It ends by itself, too.
        let _ = self.leave(lease).await;
        Err(Fault::new(OPERATION, "another portal did so at this moment"))
    }

    /// Step 4: for how long the lease lasts from now; zero for one that is over.
    pub async fn keep_alive(&self, LeaseId(id): LeaseId) -> Result<Duration, Fault> {
        let answered = async {
            let mut answers = converse(self.channel.clone(), stream::iter([LeaseKeepAliveRequest { id }])).await?;
            answers.message().await?.ok_or_else(|| Status::unavailable("no answer"))
        };
        let ttl = within("renew lease", answered).await?.ttl;
        Ok(Duration::from_secs(u64::try_from(ttl).unwrap_or(0)))
    }

    /// The member goes: what it wrote with its lease goes with it.
    pub async fn leave(&self, LeaseId(id): LeaseId) -> Result<(), Fault> {
        self.ask("give up lease", LeaseRevokeRequest { id }).await.map(drop)
    }

    /// Step 5: all of it or nothing; whether it was done.
    pub async fn commit(&self, operation: &str, holds: Vec<If>, writes: Vec<Write>) -> Result<bool, Fault> {
        self.write(operation, holds, writes, None).await
    }

    /// The same below the member's lease.
    pub async fn put_leased(&self, operation: &str, lease: LeaseId, writes: Vec<Write>) -> Result<(), Fault> {
        self.write(operation, Vec::new(), writes, Some(lease)).await.map(drop)
    }

    async fn write(
        &self,
        operation: &str,
        holds: Vec<If>,
        writes: Vec<Write>,
        lease: Option<LeaseId>,
    ) -> Result<bool, Fault> {
        let compare = holds.iter().map(|hold| {
            let (key, target, is) = match hold {
                If::Absent(key) => (key, CompareTarget::Create, TargetUnion::CreateRevision(0)),
                If::Unchanged(key, at) => (key, CompareTarget::Mod, TargetUnion::ModRevision(at.0)),
            };
            Compare { target: target.into(), key: self.prefix.full(key), target_union: Some(is) }
        });
        let write = |write| {
            let request = match write {
                Write::Put(key, value) => Operation::Put(PutRequest {
                    key: self.prefix.full(&key),
                    value,
                    lease: lease.map_or(0, |LeaseId(id)| id),
                }),
                Write::Delete(key) => Operation::DeleteRange(DeleteRangeRequest { key: self.prefix.full(&key) }),
            };
            RequestOp { request: Some(request) }
        };
        let request = TxnRequest { compare: compare.collect(), success: writes.into_iter().map(write).collect() };
        Ok(self.ask(operation, request).await?.succeeded)
    }

    /// A call with one answer.
    async fn ask<C: Call>(&self, operation: &str, asked: C) -> Result<C::Answer, Fault> {
        let answered = async {
            let answer =
                ready(self.channel.clone()).await?.unary(requiring_leader(asked), method::<C>(), codec::<C>()).await;
            Ok(answer?.into_inner())
        };
        within(operation, answered).await
    }
}

impl Watch {
    /// What etcd tells next.
    pub async fn next(&mut self) -> Result<Watched, Fault> {
        const OPERATION: &str = "watch members and peers";
        let answer = self.answers.message().await.map_err(|status| Fault::of(OPERATION, &status))?;
        answer.map(watched).ok_or_else(|| Fault::new(OPERATION, "etcd ended it"))
    }

    /// Has etcd say something, so that silence is no riddle.
    pub fn ask(&self) {
        // A full channel has such a request already.
        let progress = RequestUnion::Progress(WatchProgressRequest {});
        let _ = self.requests.try_send(WatchRequest { request_union: Some(progress) });
    }
}

fn read(files: &TlsFiles) -> Result<ClientTlsConfig, Fault> {
    let read =
        |path: &PathBuf| std::fs::read(path).map_err(|error| Fault::new(format!("read {}", path.display()), error));
    let identity = Identity::from_pem(read(&files.certificate)?, read(&files.key)?);
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&files.ca)?)).identity(identity))
}

/// A call that asks and is answered for as long as it lasts.
async fn converse<C: Call>(
    channel: Channel,
    asked: impl Stream<Item = C> + Send + 'static,
) -> Result<Streaming<C::Answer>, Status> {
    let answers = ready(channel).await?.streaming(requiring_leader(asked), method::<C>(), codec::<C>()).await;
    Ok(answers?.into_inner())
}

async fn ready(channel: Channel) -> Result<Grpc<Channel>, Status> {
    let mut calls = Grpc::new(channel);
    calls.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
    Ok(calls)
}

fn method<C: Call>() -> PathAndQuery {
    PathAndQuery::from_static(C::METHOD)
}

fn codec<C: Call>() -> ProstCodec<C, C::Answer> {
    ProstCodec::default()
}

async fn within<A>(operation: &str, answered: impl Future<Output = Result<A, Status>>) -> Result<A, Fault> {
    match tokio::time::timeout(CALL_TIMEOUT, answered).await {
        Ok(answered) => answered.map_err(|status| Fault::of(operation, &status)),
        Err(_) => Err(Fault::new(operation, format!("no answer within {} s", CALL_TIMEOUT.as_secs()))),
    }
}

fn requiring_leader<M>(message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(REQUIRE_LEADER, MetadataValue::from_static("true"));
    request
}

fn entry(kv: KeyValue) -> Entry {
    let KeyValue { key, create_revision, mod_revision, value } = kv;
    Entry { key, value, created: Revision(create_revision), modified: Revision(mod_revision) }
}

fn watched(answer: WatchResponse) -> Watched {
    let revision = answer.header.map(|header| Revision(header.revision));
    // What is answered to a request for progress may overtake changes (etcd before 3.4.25), and one that was made tells
    // of the present where the watch begins in the past.
    let is_sure = answer.watch_id != NO_WATCH && !answer.created && !answer.canceled;
    let changes = answer.events.into_iter().filter_map(|event| {
        let is_put = event.r#type() == EventType::Put;
        let entry = entry(event.kv?);
        Some(match is_put {
            true => Change::Put(entry),
            false => Change::Deleted { key: entry.key, modified: entry.modified },
        })
    });
    let changes: Vec<Change> = changes.collect();
    Watched {
        complete: revision.filter(|_| is_sure && changes.is_empty()),
        canceled: answer.canceled.then(|| answer.cancel_reason.clone()),
        compacted: (answer.compact_revision > 0).then_some(Revision(answer.compact_revision)),
        answered: answer.watch_id == NO_WATCH && !answer.canceled,
        changes,
    }
}

/// The deepest cause: what the system said.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
