//! A file from the client's host to the server's, and how long it took: by the same programs whatever is between.
//!
//! 1. The receiver starts and listens, then the sender; both are this executable's `scion blast`.
//! 2. By streams of TCP, which `hawser shim run` makes MPTCP; or by quinn over one SCION path.
//! 3. What arrived must be what was sent, by its hash.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_scion::{EndpointAddr, IsdAs, Path as ScionPath};
use hawser_wire::Namespace;

use super::ShimPair;
use crate::cleanup::Folder;
use crate::error::LabError;
use crate::localnet::Host;
use crate::scion_bench::figures::Count;
use crate::scion_bench::worker::{MemoryFile, OWN, Worker};
use crate::text::hex;

/// The slowest that a file may be sent, in bytes a second: 1 Mbit/s.
const SLOWEST: u64 = 125_000;
/// The server's port of TCP; and of quinn at either end, in the range that routers send to and not the shims' own.
pub(crate) const TCP_PORT: u16 = 5001;
const QUIC_PORT: u16 = 31_400;
/// What makes a program's TCP sockets MPTCP.
const UPGRADE: [&str; 2] = ["shim", "run"];

/// Through the shims, from client to server: by MPTCP.
pub(crate) fn through_shims(program: &Path, pair: &ShimPair, bytes: u64) -> Result<Count, LabError> {
    let ends = [&pair.client, &pair.server].map(|shim| &shim.host.namespace);
    by_tcp(program, ends, pair.server.address().into(), true, bytes)
}

/// By TCP to an address of the server, or by MPTCP.
pub(crate) fn by_tcp(
    program: &Path,
    [client, server]: [&Namespace; 2],
    address: IpAddr,
    is_mptcp: bool,
    bytes: u64,
) -> Result<Count, LabError> {
    // Streams know no ISD-AS: whichever stands there is passed over.
    let end = EndpointAddr { isd_as: IsdAs::default(), host: SocketAddr::new(address, TCP_PORT) };
    let mut sending = order("send-stream", end);
    sending.push(format!("--remote={end}"));
    let ends = [(client, sending), (server, order("receive-stream", end))];
    together(program, if is_mptcp { &UPGRADE } else { &[] }, ends, bytes)
}

/// By quinn over the best of the paths that are known: the shortest, which is listed first.
pub(crate) fn by_quinn(
    program: &Path,
    [client, server]: [&Host; 2],
    known: &[ScionPath],
    bytes: u64,
) -> Result<Count, LabError> {
    let none = || LabError::refused("measure quinn", "there is no path".to_owned());
    let path = known.first().ok_or_else(none)?;
    let [local, remote] = [client, server].map(|host| host.endpoint(QUIC_PORT));
    let (mut sending, receiving) = (order("send-file", local), order("receive-file", remote));
    sending.extend([format!("--remote={remote}"), format!("--mtu={}", path.mtu)]);
    sending.push(format!("--path={}", hex(path.dataplane.as_bytes())));
    sending.extend(path.next_hop.map(|router| format!("--next-hop={router}")));
    together(program, &[], [(&client.namespace, sending), (&server.namespace, receiving)], bytes)
}

/// What an end is told of itself.
fn order(task: &str, local: EndpointAddr) -> Vec<String> {
    vec![task.to_owned(), format!("--local={local}")]
}

/// Steps 1 and 3: the sender and the receiver, each where it is and what it is told, after the words `before` it.
fn together(
    program: &Path,
    before: &[&str],
    [sender, receiver]: [(&Namespace, Vec<String>); 2],
    bytes: u64,
) -> Result<Count, LabError> {
    let (file, arrived) = (MemoryFile::random(bytes)?, MemoryFile::empty(bytes)?);
    let folder = Folder::new()?;
    let run = program.to_string_lossy();
    let before = before.iter().copied().chain((!before.is_empty()).then_some(&*run)).chain(OWN).map(str::to_owned);
    let start = |name, (namespace, told): (&Namespace, Vec<String>), file: &MemoryFile| {
        let files = [format!("--file={}", file.path().display()), format!("--size={bytes}")];
        let words: Vec<String> = before.clone().chain(told).chain(files).collect();
        Worker::start(name, namespace, program, &words, &folder)
    };
    let taker = start("receiver", receiver, &arrived)?;
    let sent = start("sender", sender, &file)?.finish(Duration::from_secs(bytes / SLOWEST))?;
    taker.finish(Duration::ZERO)?;
    arrived.check(&file)?;
    Ok(sent)
}
