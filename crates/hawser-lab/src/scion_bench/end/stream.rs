//! A file over streams of TCP, as they go through a tunnel: one piece of it for each connection.
//!
//! 1. The receiver listens on a port for each connection, and knows by it which piece comes.
//! 2. The sender connects, sends its piece, ends its side, and waits until the receiver ends the other: it has all of
//!    it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use hawser_wire::traffic::{Congestion, Reliable, Stack};
use socket2::Socket;

use super::file::{CHUNK, Piece, open};
use super::{Begin, Count, LabError, Order, failed, ready};
use crate::localnet::at_once;

/// What the streams are, whatever the kernel's defaults are.
const STREAM: Reliable = Reliable { stack: Stack::Tcp, congestion: Congestion::Cubic };
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn send(order: &Order) -> Result<Count, LabError> {
    let file = open(order, File::options().read(true))?;
    let size = file.metadata().map_err(|error| failed("look at the file", error))?.len();
    ready();
    together(order, |number| {
        let piece = Piece::of(size, number, order.connections);
        let stream = STREAM.connect(order.remote(number)?.host, PATIENCE).map_err(|e| failed("connect", e))?;
        send_piece(stream, piece, &file)
    })
}

fn send_piece(mut stream: Socket, piece: Piece, file: &File) -> Result<u64, LabError> {
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    while done < piece.bytes {
        let some = &mut chunk[..usize::try_from(piece.bytes - done).unwrap_or(CHUNK).min(CHUNK)];
        file.read_exact_at(some, piece.offset + done).map_err(|error| failed("read the file", error))?;
        stream.write_all(some).map_err(|error| failed("send", error))?;
        done += some.len() as u64;
    }
    stream.shutdown(std::net::Shutdown::Write).map_err(|error| failed("end the stream", error))?;
    match stream.read(&mut chunk) {
        Ok(0) => Ok(done),
        Ok(_) => Err(failed("wait for the receiver", "it sent something")),
        Err(error) => Err(failed("wait for the receiver", error)),
    }
}

pub(super) fn receive(order: &Order) -> Result<Count, LabError> {
    let listeners = listen(order)?;
    ready();
    take(order, &listeners)
}

fn listen(order: &Order) -> Result<Vec<Socket>, LabError> {
    let one = |number| STREAM.listen(order.local(number).host).map_err(|error| failed("listen", error));
    (0..order.connections).map(one).collect()
}

fn take(order: &Order, listeners: &[Socket]) -> Result<Count, LabError> {
    let file = open(order, File::options().write(true))?;
    together(order, |number| {
        let (stream, _) = listeners[usize::from(number)].accept().map_err(|error| failed("accept", error))?;
        receive_piece(stream, Piece::of(order.size, number, order.connections), &file)
    })
}

fn receive_piece(mut stream: Socket, piece: Piece, file: &File) -> Result<u64, LabError> {
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    loop {
        match stream.read(&mut chunk).map_err(|error| failed("receive", error))? {
            0 if done == piece.bytes => return Ok(done),
            0 => return Err(failed("receive", format!("{done} bytes of {}", piece.bytes))),
            some if some as u64 > piece.bytes - done => return Err(failed("receive", "more than the piece")),
            some => {
                let written = file.write_all_at(&chunk[..some], piece.offset + done);
                written.map_err(|error| failed("write the file", error))?;
                done += some as u64;
            }
        }
    }
}

/// What all connections carried. Segments are the kernel's: nobody counts packets.
fn together(order: &Order, carry: impl Fn(u16) -> Result<u64, LabError> + Sync) -> Result<Count, LabError> {
    let begin = Begin::now()?;
    let bytes: Result<Vec<u64>, LabError> = at_once(0..order.connections, carry);
    begin.count(Instant::now(), 0, bytes?.iter().sum())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;
    use std::thread;

    use super::super::tests::order;
    use super::*;
    use crate::scion_bench::worker::MemoryFile;

    #[test]
    fn a_file_arrives_in_pieces_as_it_was_sent() {
        const BYTES: u64 = 3_000_001;
        // Two ports in a row, free a moment ago.
        let port = loop {
            let first = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = first.local_addr().expect("its address").port();
            if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
                break port;
            }
        };
        let (sent, arrived) = (MemoryFile::random(BYTES), MemoryFile::empty(BYTES));
        let (sent, arrived) = (sent.expect("memory"), arrived.expect("memory"));
        let end = format!("1-ff00:0:110,127.0.0.1:{port}");
        let of = |file: &Path, more: &str| {
            let file = format!("--file={}", file.display());
            order(&[&format!("--local={end}"), "--connections=2", &file, more]).expect("it is right")
        };
        let receiving = of(&arrived.path(), &format!("--size={BYTES}"));
        let sending = of(&sent.path(), &format!("--remote={end}"));
        let listeners = listen(&receiving).expect("listens");
        let [given, taken] = thread::scope(|scope| {
            let taker = scope.spawn(|| take(&receiving, &listeners));
            [send(&sending).expect("sends"), taker.join().expect("no panic").expect("receives")]
        });
        assert_eq!((given.bytes, taken.bytes), (BYTES, BYTES));
        arrived.check(&sent).expect("what arrived is what was sent");
    }
}
