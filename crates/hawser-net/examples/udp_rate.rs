//! How many 1452-byte datagrams a second of CPU time sends and receives over loopback, in trains
//! and one by one: `cargo run --release -p hawser-net --example udp_rate`. Takes two such seconds.

use std::error::Error;
use std::time::Duration;

use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Ecn, Link, RecvBatch, Route, SendBatch};
use rustix::time::{ClockId, clock_gettime};

/// What is left of 1500 bytes beside IPv6 and UDP headers (RFC 8200, RFC 768), in bytes.
const DATAGRAM_BYTES: usize = 1452;

/// CPU time for which each way of sending is measured: the machine may have other work.
const TIME: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    println!("sending      datagrams/s   Gbit/s   CPU µs/datagram (send and receive)");
    for (name, segmentation) in [("in trains", true), ("one by one", false)] {
        let (received, elapsed) = measure(segmentation)?;
        let rate = received as f64 / elapsed.as_secs_f64();
        let gigabits = rate * DATAGRAM_BYTES as f64 * 8.0 / 1e9;
        println!("{name:<12} {rate:>11.0} {gigabits:>8.2} {:>8.3}", 1e6 / rate);
    }
    Ok(())
}

/// CPU time the process has used.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    Ok(clock_gettime(ClockId::ProcessCPUTime).try_into()?)
}

/// Sends batch after batch and receives each before the next.
fn measure(segmentation: bool) -> Result<(u64, Duration), Box<dyn Error>> {
    let mut opts = UdpOpts::new("[::1]:0".parse()?);
    opts.segmentation = segmentation;
    let mut sender = UdpLink::bind(opts.clone())?;
    let mut receiver = UdpLink::bind(opts)?;
    let route = Route { remote: receiver.local_addr(), source: None, ecn: Ecn::Ect0 };
    let (mut sending, mut receiving) = (SendBatch::new(), RecvBatch::new());
    let start = cpu_time()?;
    let mut received = 0;
    while cpu_time()? - start < TIME {
        while sending.push(route, DATAGRAM_BYTES, |room| room.len()).is_ok() {}
        while !sending.is_empty() {
            let _ = sender.send(&mut sending)?;
            while receiver.recv(&mut receiving)? > 0 {
                received += receiving.runs().map(|run| run.singles().len() as u64).sum::<u64>();
            }
        }
    }
    Ok((received, cpu_time()? - start))
}
