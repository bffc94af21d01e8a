//! A file over the bulk protocol: one session, however many connections others are given.
//!
//! 1. The receiver takes it into a folder in memory, where it gets its name when its digest is right; then, when nobody
//!    counts any more, it becomes the file that is asked for. 2. The sender counts from the first initiation to the
//!    receiver's result.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_scion::bulk::{Law, ReceiveOrder, Received, SendOrder, Trust, Verdict, receive, send};
use hawser_scion::conn::Paths as _;

use super::file::KEY;
use super::{Begin, Count, LabError, Order, failed, ready};

/// A file system in memory. Source: shm_overview(7).
const MEMORY: &str = "/dev/shm";
/// How long nothing may get on.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn send_file(order: &Order) -> Result<Count, LabError> {
    let file = order.file.clone().ok_or_else(|| failed("read the order", "a file needs --file"))?;
    let remote = order.remote(0)?;
    let paths = order.paths()?.paths(remote.isd_as).map_err(|error| failed("find a way", error))?;
    let plan = SendOrder {
        files: vec![file],
        destination: remote,
        local: order.local(0),
        dispatched: order.opts(0).dispatched,
        mtu: order.mtu,
        paths,
        law: Law::Fill,
        ceiling: None,
        trust: Trust::secret(KEY),
        patience: PATIENCE,
    };
    ready();
    let begin = Begin::now()?;
    let sent = send(&plan, || None, |_| ControlFlow::Continue(())).map_err(|error| failed("send the file", error))?;
    let end = Instant::now();
    match sent.files.first() {
        Some((_, Verdict::Good, _)) => {}
        Some((_, verdict, _)) => return Err(failed("send the file", *verdict)),
        None => return Err(failed("send the file", "there is none")),
    }
    let packets = sent.progress.paths.iter().map(|path| path.counts.sent).sum();
    begin.count(end, packets, sent.progress.bytes)
}

pub(super) fn receive_file(order: &Order) -> Result<Count, LabError> {
    let asked = order.file.clone().ok_or_else(|| failed("read the order", "a file needs --file"))?;
    let folder = tempfile::tempdir_in(MEMORY).map_err(|error| failed("make a folder in memory", error))?;
    let plan = ReceiveOrder {
        local: order.local(0),
        dispatched: order.opts(0).dispatched,
        folder: folder.path().to_owned(),
        force: false,
        trust: Trust::secret(KEY),
    };
    let mut begin: Option<Begin> = None;
    let mut came = Err(failed("receive the file", "nothing came"));
    let received = receive(&plan, |what| {
        match what {
            Some(Received::Listening(..)) => ready(),
            Some(Received::Offer(..)) => begin = Begin::now().ok(),
            Some(Received::File(_, info, Ok(_), _)) => {
                let count = begin.map_or(Ok(Count::default()), |begin| begin.count(Instant::now(), 0, info.size));
                came = count.map(|count| (info.name.to_string(), count));
            }
            Some(Received::File(_, _, Err(error), _)) => came = Err(failed("receive the file", error.to_string())),
            Some(Received::Gone(..)) => return ControlFlow::Break(()),
            Some(Received::Taken(..) | Received::Progress(..)) | None => {}
        }
        ControlFlow::Continue(())
    });
    received.map_err(|error| failed("receive the file", error))?;
    let (name, count) = came?;
    copy(&folder.path().join(name), &asked).map_err(|error| failed("copy the file", error))?;
    Ok(count)
}

fn copy(from: &Path, into: &Path) -> io::Result<u64> {
    io::copy(&mut File::open(from)?, &mut File::options().write(true).open(into)?)
}
