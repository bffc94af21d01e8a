//! Hundreds of TCP connections on which people say something now and then, as mail, chat and terminals do: the home
//! asks on each once a second, and the server answers with the same.
//!
//! 1. `Conversations::start` connects all at once, a thread each at both ends. 2. Each asks in its turn, and waits for the
//!    answer before it asks again. 3. `finish` says how long answers took, and which connections ended.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use hawser_lab::hub::SERVER;
use hawser_wire::{Moment, Namespace};

/// From one question to the next, and its bytes: a line of text with its TLS record.
const ASKS_EVERY: Duration = Duration::from_secs(1);
const QUESTION: usize = 100;
/// Whoever is not answered by then is not any more: where a connection shares its bucket of a fair queue with a stream, a
/// question may be lost several times, and each time its retransmission timeout doubles (RFC 6298, section 5.5).
const PATIENCE: Duration = Duration::from_secs(10);

/// All of them under way. One owner.
pub struct Conversations(Vec<JoinHandle<io::Result<Duration>>>);

/// What came of them. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The longest that an answer took.
    pub longest: Duration,
    /// Connections that broke, or on which an answer did not come.
    pub died: usize,
}

impl Conversations {
    /// Connects this many at once; they begin to speak at `start`, in turn, and end at `end`.
    pub fn start(home: &Namespace, server: &Namespace, count: usize, start: Moment, end: Moment) -> Self {
        let free = SocketAddr::new(SERVER.into(), 0);
        let listener = server.run(|| TcpListener::bind(free)).expect("the namespace").expect("a port is free");
        let at = listener.local_addr().expect("its address");
        // Ends with the listener's last connection.
        std::thread::spawn(move || {
            (0..count).try_for_each(|_| listener.accept().map(|(one, _)| drop(std::thread::spawn(|| answer(one)))))
        });
        let asking = |number| {
            let turn = start + ASKS_EVERY.mul_f64(number as f64 / count as f64);
            home.spawn_thread("conversation", move || ask(at, turn, end)).expect("a thread")
        };
        Self((0..count).map(asking).collect())
    }

    /// Waits for the end.
    pub fn finish(self) -> Outcome {
        let all = self.0.into_iter().map(|one| one.join().expect("no panic"));
        all.fold(Outcome::default(), |sum, one| match one {
            Ok(longest) => Outcome { longest: sum.longest.max(longest), ..sum },
            Err(_) => Outcome { died: sum.died + 1, ..sum },
        })
    }
}

/// The home's end: the longest that an answer took.
fn ask(at: SocketAddr, first: Moment, end: Moment) -> io::Result<Duration> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut due, mut longest) = (first, Duration::ZERO);
    while due < end {
        due.sleep_until();
        let asked = Moment::now();
        stream.write_all(&[b'?'; QUESTION])?;
        stream.read_exact(&mut [0; QUESTION])?;
        longest = longest.max(Moment::now() - asked);
        due = (due + ASKS_EVERY).max(Moment::now());
    }
    Ok(longest)
}

/// The server's end, until the other one closes.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut question = [0; QUESTION];
    loop {
        stream.read_exact(&mut question)?;
        stream.write_all(&question)?;
    }
}
