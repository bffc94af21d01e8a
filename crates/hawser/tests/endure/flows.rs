//! Flows that go on for hours, and what their receivers hear of them.
//!
//! 1. [`Udp`] sends numbered datagrams at a steady rate; [`Tcp`] a stream of numbered words at a bounded one.
//! 2. Whoever receives notes when it heard something ([`Heard`]), and looks at each word.
//! 3. [`Udp::lost`] says what of a span of time never came; [`Heard::longest`] the longest silence within one.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use hawser_wire::{Moment, Namespace};
use rustix::net::sockopt;

use crate::lab::ms;

/// From one datagram, or portion of a stream, to the next.
const PACE: Duration = Duration::from_millis(10);
/// Bytes of a datagram: of a game or a call.
const DATAGRAM: usize = 200;
/// A silence that is worth a note.
const SILENCE: Duration = Duration::from_millis(40);
/// How often a receiver looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);
/// The streams' congestion control: what a namespace of this kernel's has by default, and the hardest for a portal,
/// whose sender gives what a fault held up at once.
const CONGESTION: &str = "bbr";
/// What a stream that was held up may make up for.
const ARREARS: Duration = Duration::from_millis(100);

/// What a receiver heard. Nothing at first; shared by its thread and whoever asks.
#[derive(Debug)]
pub struct Heard {
    last: Moment,
    silences: Vec<(Moment, Moment)>,
    pub bytes: u64,
    /// What ended the flow before its time, or came that nobody had sent.
    pub wrong: Option<String>,
}

impl Heard {
    pub fn new() -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { last: Moment::now(), silences: Vec::new(), bytes: 0, wrong: None }))
    }

    pub fn hear(&mut self, bytes: usize) {
        let now = Moment::now();
        if now - self.last > SILENCE {
            self.silences.push((self.last, now));
        }
        (self.last, self.bytes) = (now, self.bytes + bytes as u64);
    }

    pub fn last(&self) -> Moment {
        self.last
    }

    /// How long after a moment something came; nothing where no silence worth a note holds it, none where it lasts.
    pub fn back(&self, moment: Moment) -> Option<Duration> {
        let mut within = self.silences.iter().rev().take_while(|(_, end)| *end > moment);
        let held = within.find(|(begin, _)| *begin <= moment).map(|(_, end)| *end - moment);
        held.or((self.last > moment).then_some(Duration::ZERO))
    }

    /// The longest silence, of those worth a note, that lies at least by its end or beginning between two moments.
    pub fn longest(&self, from: Moment, to: Moment) -> Duration {
        let open = (self.last, to);
        let within = self.silences.iter().rev().take_while(|(_, end)| *end > from).chain([&open]);
        within.filter(|(begin, _)| *begin < to).map(|(begin, end)| *end - *begin).max().unwrap_or_default()
    }
}

/// Locks what only whole values are written to.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread of a flow panics")
}

/// Numbered datagrams, one way. Ends when it drops.
pub struct Udp {
    pub heard: Arc<Mutex<Heard>>,
    sent: Arc<Mutex<Vec<Sent>>>,
    got: Arc<Mutex<Vec<u8>>>,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A datagram that was sent, or that the sender's own kernel refused: the tunnel's interface was not there.
struct Sent {
    at: Moment,
    refused: bool,
}

/// What became of the datagrams of a span of time.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Lost {
    pub sent: usize,
    pub refused: usize,
    pub lost: usize,
    pub twice: usize,
}

impl Udp {
    pub fn start(from: &Namespace, to: &Namespace, destination: SocketAddr) -> Self {
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let bind = |namespace: &Namespace, at: SocketAddr| {
            let socket = namespace.run(|| UdpSocket::bind(at)).expect("the namespace can be entered");
            let socket = socket.expect("the port is free");
            socket.set_read_timeout(Some(GLANCE)).expect("an option");
            socket
        };
        let (outbound, inbound) = (bind(from, any), bind(to, SocketAddr::from(([0, 0, 0, 0], destination.port()))));
        let (heard, end) = (Heard::new(), Arc::new(AtomicBool::new(false)));
        let (sent, got) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let sending = {
            let (sent, end) = (Arc::clone(&sent), Arc::clone(&end));
            std::thread::spawn(move || send(&outbound, destination, &sent, &end))
        };
        let receiving = {
            let (heard, got, end) = (Arc::clone(&heard), Arc::clone(&got), Arc::clone(&end));
            std::thread::spawn(move || receive(&inbound, &heard, &got, &end))
        };
        Self { heard, sent, got, end, threads: vec![sending, receiving] }
    }

    /// What became of what was sent between two moments.
    pub fn lost(&self, from: Moment, to: Moment) -> Lost {
        let (sent, got) = (lock(&self.sent), lock(&self.got));
        let first = sent.partition_point(|sent| sent.at < from);
        let of_span = sent.iter().enumerate().skip(first).take_while(|(_, sent)| sent.at < to);
        of_span.fold(Lost::default(), |mut lost, (number, sent)| {
            let times = got.get(number).copied().unwrap_or(0);
            lost.sent += 1;
            lost.refused += usize::from(sent.refused);
            lost.lost += usize::from(times == 0 && !sent.refused);
            lost.twice += usize::from(times > 1);
            lost
        })
    }
}

impl Drop for Udp {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("it runs to its end"));
    }
}

fn send(socket: &UdpSocket, to: SocketAddr, sent: &Mutex<Vec<Sent>>, end: &AtomicBool) {
    let (mut datagram, mut due) = ([0; DATAGRAM], Moment::now());
    while !end.load(Ordering::Relaxed) {
        due.sleep_until();
        let mut sent = lock(sent);
        datagram[..8].copy_from_slice(&(sent.len() as u64).to_be_bytes());
        let refused = socket.send_to(&datagram, to).is_err();
        sent.push(Sent { at: Moment::now(), refused });
        due = due + PACE;
    }
}

fn receive(socket: &UdpSocket, heard: &Mutex<Heard>, got: &Mutex<Vec<u8>>, end: &AtomicBool) {
    let mut datagram = [0; DATAGRAM + 1];
    while !end.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut datagram) else { continue };
        lock(heard).hear(length);
        let number = u64::from_be_bytes(datagram[..8].try_into().expect("eight bytes"));
        let (mut got, number) = (lock(got), number as usize);
        if got.len() <= number {
            got.resize(number + 1, 0);
        }
        got[number] = got[number].saturating_add(1);
        if length != DATAGRAM {
            lock(heard).wrong = Some(format!("a datagram of {length} bytes"));
        }
    }
}

/// A stream of numbered words at a bounded rate, one way. Ends when it drops.
pub struct Tcp {
    pub heard: Arc<Mutex<Heard>>,
    end: Arc<AtomicBool>,
    streams: [TcpStream; 2],
    threads: Vec<JoinHandle<()>>,
}

impl Tcp {
    pub fn start(from: &Namespace, to: &Namespace, destination: SocketAddr, mbps: u64) -> Self {
        let listener = to.run(|| TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], destination.port()))));
        let listener = listener.expect("the namespace can be entered").expect("the port is free");
        let near = from.run(|| TcpStream::connect(destination)).expect("the namespace can be entered");
        let (near, (far, _)) = (near.expect("it connects"), listener.accept().expect("it accepts"));
        sockopt::set_tcp_congestion(&near, CONGESTION).expect("the kernel has it");
        Self::between(near, far, mbps)
    }

    /// The same between two ends that are connected; both may be one, whose peer sends back what it hears.
    pub fn between(near: TcpStream, far: TcpStream, mbps: u64) -> Self {
        let streams = [&near, &far].map(|stream| stream.try_clone().expect("a descriptor"));
        let (heard, end) = (Heard::new(), Arc::new(AtomicBool::new(false)));
        let portion = (mbps * 1_000_000 / 8) as usize * PACE.as_millis() as usize / 1_000 / 8 * 8;
        let writing = {
            let (heard, end) = (Arc::clone(&heard), Arc::clone(&end));
            std::thread::spawn(move || note(&heard, &end, write(near, portion, &end)))
        };
        let reading = {
            let (heard, end) = (Arc::clone(&heard), Arc::clone(&end));
            std::thread::spawn(move || note(&heard, &end, read(far, &heard)))
        };
        Self { heard, end, streams, threads: vec![writing, reading] }
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            // Fails where the flow has ended already, which `wrong` says.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.threads.drain(..).for_each(|thread| thread.join().expect("it runs to its end"));
    }
}

/// Notes what ended a flow that was not told to end.
fn note(heard: &Mutex<Heard>, end: &AtomicBool, ended: io::Result<()>) {
    if !end.load(Ordering::Relaxed) {
        lock(heard).wrong = Some(ended.err().map_or("the stream ended".into(), |error| error.to_string()));
    }
}

fn write(mut stream: TcpStream, portion: usize, end: &AtomicBool) -> io::Result<()> {
    let (mut word, mut due) = (0_u64, Moment::now());
    while !end.load(Ordering::Relaxed) {
        due.sleep_until();
        let words = word..word + (portion / 8) as u64;
        word = words.end;
        stream.write_all(&words.flat_map(u64::to_be_bytes).collect::<Vec<u8>>())?;
        due = (due + PACE).max(Moment::now() - ARREARS);
    }
    Ok(())
}

fn read(mut stream: TcpStream, heard: &Mutex<Heard>) -> io::Result<()> {
    let (mut bytes, mut held, mut word) = (vec![0; 1 << 16], 0, 0_u64);
    loop {
        let length = stream.read(&mut bytes[held..])?;
        if length == 0 {
            return Ok(());
        }
        lock(heard).hear(length);
        held += length;
        let whole = held / 8 * 8;
        for eight in bytes[..whole].chunks_exact(8) {
            if eight != word.to_be_bytes() {
                return Err(io::Error::other(format!("word {word} is not what was sent")));
            }
            word += 1;
        }
        bytes.copy_within(whole..held, 0);
        held -= whole;
    }
}

/// A flow of each kind each way, by name.
pub struct Flows {
    pub udp: [Udp; 2],
    pub tcp: [Tcp; 2],
}

impl Flows {
    pub const NAMES: [&str; 4] = ["udp up", "udp down", "tcp up", "tcp down"];

    pub fn heard(&self) -> [MutexGuard<'_, Heard>; 4] {
        [&self.udp[0].heard, &self.udp[1].heard, &self.tcp[0].heard, &self.tcp[1].heard].map(|heard| lock(heard))
    }

    /// Waits until every flow has been heard after a moment: how long after it that was; none where it is not in time.
    pub fn back_after(&self, moment: Moment, limit: Duration) -> [Option<Duration>; 4] {
        let (late, mut back) = (Moment::now() + limit, [None; 4]);
        loop {
            for (back, heard) in back.iter_mut().zip(self.heard()) {
                *back = back.or(heard.back(moment));
            }
            if back.iter().all(Option::is_some) || Moment::now() > late {
                return back;
            }
            std::thread::sleep(ms(5));
        }
    }
}
