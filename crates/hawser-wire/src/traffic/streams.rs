//! Many TCP transfers at once, by one thread at either end: threads of their own would crowd out what is measured.
//!
//! 1. All connections are made, one after the other.
//! 2. The sender writes to whichever takes bytes until time is up, then resets all.
//! 3. The receiver logs what all of them get in one timeline, and what each got in all.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;

use super::ready::Ready;
use super::tcp::TcpTransfer;
use super::timeline::Timeline;
use crate::clock::Moment;
use crate::error::WireError;

/// Bytes a write or read moves at most: some for everyone in turn.
const CHUNK: usize = 64 << 10;
/// How often a thread that waits looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Transfers to be made, all alike. Plain data.
#[derive(Clone, Debug)]
pub struct TcpStreams {
    /// Each of them.
    pub each: TcpTransfer,
    /// How many.
    pub count: usize,
}

/// What the receiver got. Plain data.
#[derive(Clone, Debug)]
pub struct StreamsReport {
    /// From all.
    pub timeline: Timeline,
    /// Bytes from each.
    pub bytes: Vec<u64>,
}

/// Transfers under way; they end by themselves. One owner.
#[derive(Debug)]
pub struct RunningStreams {
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<io::Result<StreamsReport>>,
}

impl TcpStreams {
    /// Step 1: returns when all connections stand.
    ///
    /// # Errors
    /// Where one of them cannot be had.
    pub fn start(&self) -> Result<RunningStreams, WireError> {
        let each = &self.each;
        let starting =
            |error| WireError::system(format!("start {} streams to {}", self.count, each.destination), error);
        let listener = each.to.run(|| each.listen())?.map_err(starting)?;
        let connect_all = || (0..self.count).map(|_| each.connect_to(&listener)).collect::<io::Result<Vec<_>>>();
        let pairs = each.from.run(connect_all)?.map_err(starting)?;
        let (outbound, inbound): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let over = Arc::new(AtomicBool::new(false));
        let receiver = {
            let over = Arc::clone(&over);
            each.to.spawn_thread("streams-receive", move || receive(inbound, &over))?
        };
        let end = Moment::now() + each.duration;
        let sender = each.from.spawn_thread("streams-send", move || {
            let sent = send(&outbound, end);
            over.store(true, Ordering::Release);
            sent
        })?;
        Ok(RunningStreams { sender, receiver })
    }
}

impl RunningStreams {
    /// Waits for the end.
    ///
    /// # Errors
    /// Where a connection broke before time was up.
    ///
    /// # Panics
    /// Where one of its threads did.
    pub fn finish(self) -> Result<StreamsReport, WireError> {
        let sent = self.sender.join().expect("the sender of the streams runs to its end");
        let got = self.receiver.join().expect("the receiver of the streams runs to its end");
        sent.and(got).map_err(|error| WireError::system("transfer by many streams", error))
    }
}

/// Step 2.
fn send(streams: &[TcpStream], end: Moment) -> io::Result<()> {
    let mut ready = Ready::new()?;
    for (number, stream) in (0..).zip(streams) {
        stream.set_nonblocking(true)?;
        // With no time to linger, closing resets: what is still on the way is of no use.
        SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
        ready.watch_write(stream, number)?;
    }
    let chunk = vec![0; CHUNK];
    while Moment::now() < end {
        for number in ready.wait(GLANCE)? {
            let mut stream = &streams[index(number)];
            no_wait(stream.write(&chunk))?;
        }
    }
    Ok(())
}

/// Step 3.
fn receive(streams: Vec<TcpStream>, over: &AtomicBool) -> io::Result<StreamsReport> {
    let mut ready = Ready::new()?;
    for (number, stream) in (0..).zip(&streams) {
        stream.set_nonblocking(true)?;
        ready.watch_read(stream, number)?;
    }
    let mut report = StreamsReport { timeline: Timeline::new(Moment::now()), bytes: vec![0; streams.len()] };
    let mut chunk = vec![0; CHUNK];
    while !over.load(Ordering::Acquire) {
        for number in ready.wait(GLANCE)? {
            let mut stream = &streams[index(number)];
            let got = match no_wait(stream.read(&mut chunk)) {
                Ok(Some(0)) | Err(_) if over.load(Ordering::Acquire) => break,
                Ok(Some(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                other => other?.unwrap_or(0) as u64,
            };
            report.timeline.add(Moment::now(), got);
            report.bytes[index(number)] += got;
        }
    }
    Ok(report)
}

/// None where a call would only have waited.
fn no_wait(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a stream's number is an index")
}
