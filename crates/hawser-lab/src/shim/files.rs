//! A file from the client's host to the server's, and how long it took: by the same programs whatever is between.
//!
//! 1. The receiver starts and listens, then the sender; both are this executable's `scion blast`.
//! 2. By streams of TCP, which `hawser shim run` makes MPTCP; or by quinn over one SCION path.
//! 3. What arrived must be what was sent, by its hash.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_scion::select::listed;
use hawser_scion::{EndpointAddr, Path as ScionPath};
use hawser_wire::Namespace;

use super::pair::ShimPair;
use crate::cleanup::Folder;
use crate::error::LabError;
use crate::localnet::Host;
use crate::scion_bench::figures::Count;
use crate::scion_bench::memory::MemoryFile;
use crate::scion_bench::worker::Worker;
use crate::text::hex;

/// How long an end may take to start, and to tell what it counted.
const PATIENCE: Duration = Duration::from_secs(15);
/// The slowest that a file may be sent, in bytes a second: 1 Mbit/s.
const SLOWEST: u64 = 125_000;
/// What a file's bytes come from.
const SEED: u64 = 1;
/// The server's port of TCP; and of quinn at either end, in the range that routers send to and not the shims' own.
pub(crate) const TCP_PORT: u16 = 5001;
const QUIC_PORT: u16 = 31_400;
/// What makes a program's TCP sockets MPTCP.
const UPGRADE: [&str; 2] = ["shim", "run"];
/// This executable's command for the ends.
const END: [&str; 2] = ["scion", "blast"];

/// One end: where it is, and what it is told to do.
type End<'a> = (&'a Namespace, Vec<String>);

/// Through the shims, from client to server: by MPTCP.
pub(crate) fn through_shims(pair: &ShimPair, bytes: u64) -> Result<Count, LabError> {
    let (client, server) = (pair.client.namespace(), pair.server.namespace());
    by_tcp(&pair.client.program, [client, server], pair.server.address().into(), true, bytes)
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
    let end = EndpointAddr { isd_as: hawser_scion::IsdAs::default(), host: SocketAddr::new(address, TCP_PORT) };
    let local = format!("--local={end}");
    let sender = (client, vec!["send-stream".to_owned(), local.clone(), format!("--remote={end}")]);
    let receiver = (server, vec!["receive-stream".to_owned(), local]);
    let before: &[&str] = if is_mptcp { &UPGRADE } else { &[] };
    together(program, before, &sender, &receiver, bytes)
}

/// By quinn over the best of the paths that are known: the shortest.
pub(crate) fn by_quinn(
    program: &Path,
    [client, server]: [&Host; 2],
    known: &[ScionPath],
    bytes: u64,
) -> Result<Count, LabError> {
    let best = listed(known).first().map(|&index| &known[index]);
    let path = best.ok_or_else(|| LabError::NoFigure { figure: "quinn", reason: "there is no path".to_owned() })?;
    let end = |host: &Host| EndpointAddr::new(host.isd_as, SocketAddr::new(host.address, QUIC_PORT));
    let (local, remote) = (end(client), end(server));
    let mut words = vec!["send-file".to_owned(), format!("--local={local}"), format!("--remote={remote}")];
    words.extend([format!("--mtu={}", path.mtu), format!("--path={}", hex(path.dataplane.as_bytes()))]);
    words.extend(path.next_hop.map(|router| format!("--next-hop={router}")));
    let receiver = (&server.namespace, vec!["receive-file".to_owned(), format!("--local={remote}")]);
    together(program, &[], &(&client.namespace, words), &receiver, bytes)
}

/// Steps 1 and 3.
fn together(
    program: &Path,
    before: &[&str],
    sender: &End<'_>,
    receiver: &End<'_>,
    bytes: u64,
) -> Result<Count, LabError> {
    let (file, arrived) = (MemoryFile::random(bytes, SEED)?, MemoryFile::empty(bytes)?);
    let folder = Folder::new()?;
    let start = |name, (namespace, told): &End<'_>, file: &MemoryFile| {
        let mut words: Vec<String> = before.iter().map(|&word| word.to_owned()).collect();
        if !before.is_empty() {
            words.push(program.to_string_lossy().into_owned());
        }
        words.extend(END.map(str::to_owned));
        words.extend_from_slice(told);
        words.extend([format!("--file={}", file.path().display()), format!("--size={bytes}")]);
        Worker::start(name, namespace, program, &words, &folder)
    };
    let mut taker = start("receiver", receiver, &arrived)?;
    taker.wait_ready(PATIENCE)?;
    let mut giver = start("sender", sender, &file)?;
    giver.wait_ready(PATIENCE)?;
    let time = PATIENCE + Duration::from_secs(bytes / SLOWEST);
    let sent = giver.finish(time)?;
    taker.finish(PATIENCE)?;
    arrived.check(&file)?;
    Ok(sent)
}
