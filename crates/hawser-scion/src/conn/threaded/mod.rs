//! A connection with a sending and a receiving thread of its own, for callers that have one packet at a time.
//!
//! ```text
//!   callers ──► queue of batches ──► sending thread ──► kernel ──► receiving thread ──► queue ──► callers
//!               full: they wait,                                                        full: the newest
//!               or are told so                                                          is dropped and counted
//! ```
//!
//! 1. [`ThreadedConn::send`] seals a packet into the batch being filled (`outgoing.rs`).
//! 2. The sending thread takes what is there, one packet or several trains: the faster they come, the larger the
//!    batches.
//! 3. The receiving thread copies payloads out of the kernel's batches (`incoming.rs`); [`ThreadedConn::recv`] takes
//!    them.
//! 4. Dropping the connection sends what waits, for [`LAST_WORDS`] at most, and ends both threads.

mod incoming;
mod outgoing;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::incoming::Incoming;
use self::outgoing::Outgoing;
use super::connection::{ScionConn, Sender};
use super::error::{OpenError, RecvError, SendError};
use super::send::Wait;

/// How often a thread that waits for the socket looks whether it should end.
const LOOK_UP: Duration = Duration::from_millis(250);

/// How long the sending thread tries to send what waits when the connection is dropped.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

/// How much waits at most. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOpts {
    /// Batches that wait to be sent, of up to 256 KiB and 256 packets each; at least two.
    pub send_batches: usize,
    /// Bytes of payloads that wait to be received.
    pub receive_bytes: usize,
    /// Packets that wait to be received.
    pub receive_packets: usize,
}

impl Default for QueueOpts {
    /// Some milliseconds at 10 Gbit/s.
    fn default() -> QueueOpts {
        QueueOpts { send_batches: 4, receive_bytes: 8 << 20, receive_packets: 8192 }
    }
}

/// A connection between two queues. Begins with both empty. For several threads: each call takes a lock for one packet.
#[derive(Debug)]
pub struct ThreadedConn {
    conn: Arc<ScionConn>,
    outgoing: Arc<Outgoing>,
    incoming: Arc<Incoming>,
    threads: Vec<JoinHandle<()>>,
}

impl ThreadedConn {
    /// Gives a connection its threads and queues.
    ///
    /// # Errors
    /// [`OpenError`] when a thread cannot start.
    pub fn new(conn: ScionConn, queues: QueueOpts) -> Result<ThreadedConn, OpenError> {
        let conn = Arc::new(conn);
        let outgoing = Arc::new(Outgoing::new(queues.send_batches, conn.port.opts.pace));
        let incoming = Arc::new(Incoming::new(queues.receive_bytes, queues.receive_packets));
        let sender = conn.sender()?;
        let mut threaded = ThreadedConn { conn, outgoing, incoming, threads: Vec::new() };
        let outgoing = Arc::clone(&threaded.outgoing);
        threaded.start("scion-send", move || send_all(&outgoing, sender))?;
        let (conn, incoming) = (Arc::clone(&threaded.conn), Arc::clone(&threaded.incoming));
        threaded.start("scion-receive", move || receive_all(&conn, &incoming))?;
        Ok(threaded)
    }

    fn start(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work).map_err(OpenError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }

    /// The connection: its addresses, path, events and counts.
    pub fn get_ref(&self) -> &ScionConn {
        &self.conn
    }

    /// Queues one packet; waits while the queue is full.
    ///
    /// # Errors
    /// [`SendError`]; also what the sending thread could not send since it was told last.
    pub fn send(&self, payload: &[u8]) -> Result<(), SendError> {
        self.outgoing.push(&self.conn.port, &self.conn.flow, payload, true)
    }

    /// Queues one packet.
    ///
    /// # Errors
    /// [`SendError::Full`] when the queue is; else as [`ThreadedConn::send`].
    pub fn try_send(&self, payload: &[u8]) -> Result<(), SendError> {
        self.outgoing.push(&self.conn.port, &self.conn.flow, payload, false)
    }

    /// Takes one packet's payload, and returns its length; waits for `timeout`, or for ever.
    ///
    /// # Errors
    /// [`RecvError`]; the receiving thread's own error when it had to end.
    pub fn recv(&self, payload: &mut [u8], timeout: Option<Duration>) -> Result<usize, RecvError> {
        self.incoming.pop(payload, timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Packets dropped as nobody took them in time.
    pub fn dropped(&self) -> u64 {
        self.incoming.dropped()
    }
}

impl Drop for ThreadedConn {
    fn drop(&mut self) {
        self.outgoing.end();
        self.incoming.end(None);
        for thread in self.threads.drain(..) {
            // A panic there was told on standard error when it happened.
            let _ = thread.join();
        }
    }
}

/// Step 2.
fn send_all(outgoing: &Outgoing, mut sender: Sender) {
    let Sender { port, flow, half } = &mut sender;
    while let Some(mut batch) = outgoing.take() {
        let mut gone = Ok(false);
        while !batch.is_empty() && !outgoing.is_over() {
            gone = half.send_sealed(port, flow.destination, &mut batch, Wait::for_time(Some(LOOK_UP)));
            if matches!(gone, Err(SendError::Socket(_))) {
                break;
            }
            if let Err(error) = std::mem::replace(&mut gone, Ok(true)) {
                outgoing.tell(error);
            }
        }
        let ends = match gone {
            Err(error) => {
                outgoing.tell(error);
                true
            }
            Ok(_) => false,
        };
        outgoing.give_back(batch);
        if ends {
            return outgoing.end();
        }
    }
}

/// Step 3.
fn receive_all(conn: &ScionConn, incoming: &Incoming) {
    while !incoming.ends() {
        let received = conn.recv_batch(Some(LOOK_UP), |datagram| incoming.push(datagram.payload));
        if let Err(error) = received {
            return incoming.end(Some(error));
        }
    }
}
