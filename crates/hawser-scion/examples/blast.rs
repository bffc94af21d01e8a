//! How many packets a second one connection carries inside one AS, over a veth pair between two namespaces:
//! `cargo run --release -p hawser-scion --example blast -- [OPTION VALUE]…` (needs root).
//!
//! | option | what | default |
//! | --- | --- | --- |
//! | --seconds | how long to send | 3 |
//! | --payload | bytes of each payload | 1200 |
//! | --trains | `on`: UDP GSO and GRO; `off`: sendmmsg and recvmmsg | on |
//! | --verify | `on`: checksums of what is received are verified | on |
//! | --family | `4` or `6` | 4 |
//! | --pace | Mbit/s from the SCION header on; 0 for as fast as it goes | 0 |
//! | --form | `batches`, `packets` (one call each) or `threads` (one call each, with threads and queues) | batches |

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hawser_scion::EndpointAddr;
use hawser_scion::conn::threaded::{QueueOpts, ThreadedConn};
use hawser_scion::conn::{ConnOpts, Pace, PathTable, ScionConn, Stats};
use hawser_wire::{End, Namespace, veth};
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn Error + Send + Sync>;

/// MTU of the veth pair, in bytes.
const VETH_MTU: u32 = 1500;
/// Ports of both ends; any will do.
const PORTS: [u16; 2] = [31_000, 31_001];
/// How long the receiver waits for a packet: longer than any that is under way takes.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long the first packet may take.
const LONGEST_MEETING: Duration = Duration::from_secs(10);

/// What was asked for. Plain data.
#[derive(Debug, Clone)]
struct Asked {
    seconds: f64,
    payload: usize,
    trains: bool,
    verify: bool,
    family: u8,
    pace: u64,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Batches,
    Packets,
    Threads,
}

/// What one end did. Plain data.
struct Done {
    packets: u64,
    stats: Stats,
    time: Duration,
    cpu: Duration,
}

fn main() -> Result<(), Failure> {
    let asked = Asked::read(std::env::args().skip(1))?;
    let (near, far) = (Namespace::new("blast")?, Namespace::new("blast")?);
    let nets = if asked.family == 6 { ["fd00::1/64", "fd00::2/64"] } else { ["10.9.0.1/24", "10.9.0.2/24"] };
    veth(&End::new(&near, "near", &nets[..1]), &End::new(&far, "far", &nets[1..]), VETH_MTU)?;
    let hosts = if asked.family == 6 { ["fd00::1", "fd00::2"] } else { ["10.9.0.1", "10.9.0.2"] };
    let [from, to] = [0, 1].map(|at| SocketAddr::new(hosts[at].parse().expect("an address"), PORTS[at]));
    let sending = near.run(|| open(&asked, from, to))??;
    let receiving = far.run(|| open(&asked, to, from))??;
    meet(&sending, &receiving)?;
    let over = Arc::new(AtomicBool::new(false));
    let receiver = {
        let (asked, over) = (asked.clone(), Arc::clone(&over));
        far.spawn_thread("receiver", move || receive(receiving, &asked, &over))?
    };
    let sender = near.spawn_thread("sender", {
        let asked = asked.clone();
        move || send(sending, &asked)
    })?;
    let sent = sender.join().expect("no panic")?;
    over.store(true, Ordering::Relaxed);
    let received = receiver.join().expect("no panic")?;
    report(&asked, &sent, &received);
    Ok(())
}

fn open(asked: &Asked, local: SocketAddr, remote: SocketAddr) -> Result<ScionConn, Failure> {
    let isd_as = "1-ff00:0:110".parse()?;
    let mut opts = ConnOpts::new(EndpointAddr::new(isd_as, local));
    (opts.trains, opts.verify) = (asked.trains, asked.verify);
    opts.pace = (asked.pace > 0).then(|| Pace::bits_per_second(asked.pace * 1_000_000));
    Ok(ScionConn::open(opts, EndpointAddr::new(isd_as, remote), Arc::new(PathTable::default()))?)
}

/// Waits until packets arrive: a new veth pair carries nothing for up to a second.
fn meet(sending: &ScionConn, receiving: &ScionConn) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        sending.send(&[])?;
        // The receiver takes what is there until nothing more comes, so that none of it is counted later.
        let mut met = false;
        while receiving.recv_batch(Some(PATIENCE), |_| met = true)? > 0 {}
        if met {
            return Ok(());
        }
        if began.elapsed() > LONGEST_MEETING {
            return Err("no packet arrives".into());
        }
    }
}

fn send(conn: ScionConn, asked: &Asked) -> Result<Done, Failure> {
    let before = conn.stats().sent_packets;
    let (began, time) = (Instant::now(), Duration::from_secs_f64(asked.seconds));
    let payload = vec![0x5c; asked.payload];
    let (cpu, stats);
    match asked.form {
        Form::Batches | Form::Packets => {
            while began.elapsed() < time {
                if asked.form == Form::Packets {
                    conn.send(&payload)?;
                } else {
                    let _ = conn.send_batch(|batch| while batch.copy(&payload).is_ok() {})?;
                }
            }
            (cpu, stats) = (clock(ClockId::ThreadCPUTime), conn.stats());
        }
        Form::Threads => {
            let threaded = ThreadedConn::new(conn, QueueOpts::default())?;
            while began.elapsed() < time {
                threaded.send(&payload)?;
            }
            (cpu, stats) = (clock(ClockId::ThreadCPUTime), threaded.get_ref().stats());
        }
    }
    Ok(Done { packets: stats.sent_packets - before, stats, time: began.elapsed(), cpu })
}

fn receive(conn: ScionConn, asked: &Asked, over: &AtomicBool) -> Result<Done, Failure> {
    let before = conn.stats().received_packets;
    let mut payload = vec![0; asked.payload];
    let (mut began, mut ended, mut wrong) = (None, Instant::now(), 0_u64);
    let mut got = |taken: usize| {
        let now = Instant::now();
        began.get_or_insert(now);
        ended = if taken > 0 { now } else { ended };
        taken == 0 && over.load(Ordering::Relaxed)
    };
    let (cpu, stats);
    match asked.form {
        Form::Batches => {
            let each = |wrong: &mut u64, bytes: &[u8]| *wrong += u64::from(bytes.len() != asked.payload);
            while !got(conn.recv_batch(Some(PATIENCE), |datagram| each(&mut wrong, datagram.payload))?) {}
            (cpu, stats) = (clock(ClockId::ThreadCPUTime), conn.stats());
        }
        Form::Packets => {
            while !got(usize::from(conn.recv(&mut payload, Some(PATIENCE)).is_ok())) {}
            (cpu, stats) = (clock(ClockId::ThreadCPUTime), conn.stats());
        }
        Form::Threads => {
            let threaded = ThreadedConn::new(conn, QueueOpts::default())?;
            while !got(usize::from(threaded.recv(&mut payload, Some(PATIENCE)).is_ok())) {}
            let stats_then = threaded.get_ref().stats();
            let dropped = threaded.dropped();
            (cpu, stats) = (
                clock(ClockId::ThreadCPUTime),
                Stats { received_packets: stats_then.received_packets - dropped, ..stats_then },
            );
        }
    }
    if wrong > 0 {
        return Err(format!("{wrong} payloads have another length").into());
    }
    let time = began.map_or(Duration::ZERO, |began| ended.saturating_duration_since(began));
    Ok(Done { packets: stats.received_packets - before, stats, time, cpu })
}

fn report(asked: &Asked, sent: &Done, received: &Done) {
    let kpps = |packets: u64, time: Duration| packets as f64 / time.as_secs_f64() / 1e3;
    let (out, come) = (sent.packets, received.packets);
    let rate = kpps(come, received.time);
    println!(
        "{:?} trains {} verify {} IPv{} payload {}: sent {:.0} kpps, received {rate:.0} kpps ({:.2} Gbit/s), loss {:.3} %, \
         µs of CPU a packet: sender {:.3}, receiver {:.3}",
        asked.form,
        asked.trains,
        asked.verify,
        asked.family,
        asked.payload,
        kpps(out, sent.time),
        rate * asked.payload as f64 * 8.0 / 1e6,
        100.0 * (out - come) as f64 / out as f64,
        sent.cpu.as_secs_f64() * 1e6 / out as f64,
        received.cpu.as_secs_f64() * 1e6 / come as f64,
    );
    println!("receiver: {:?}", received.stats);
}

fn clock(id: ClockId) -> Duration {
    clock_gettime(id).try_into().unwrap_or_default()
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Asked, Failure> {
        let form = Form::Batches;
        let mut asked = Asked { seconds: 3.0, payload: 1200, trains: true, verify: true, family: 4, pace: 0, form };
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            match (option.as_str(), value.as_str()) {
                ("--seconds", value) => asked.seconds = value.parse()?,
                ("--payload", value) => asked.payload = value.parse()?,
                ("--trains", "on" | "off") => asked.trains = value == "on",
                ("--verify", "on" | "off") => asked.verify = value == "on",
                ("--family", "4" | "6") => asked.family = value.parse()?,
                ("--pace", value) => asked.pace = value.parse()?,
                ("--form", "batches") => asked.form = Form::Batches,
                ("--form", "packets") => asked.form = Form::Packets,
                ("--form", "threads") => asked.form = Form::Threads,
                _ => return Err(format!("{option} {value}: see the top of examples/blast.rs").into()),
            }
        }
        Ok(asked)
    }
}
