//! A listener in a process without descriptors. Alone in its process, whose limit it lowers.

mod support;

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use hawser_net::link::tcp::{TcpLink, TcpOpts};
use hawser_net::link::{Link, RecvBatch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::Namespace;
use support::links::address;

fn is_ready(link: &TcpLink) -> bool {
    let mut watched = [PollFd::new(link, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("poll") > 0
}

fn limit(soft: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum }).expect("a lower limit");
}

#[test]
fn a_listener_without_descriptors_rests_and_goes_on() {
    let host = Namespace::new();
    let opts = TcpOpts {
        local: address("127.0.0.1:4920"),
        interface: None,
        mark: None,
        listens: true,
        congestion: None,
        tls: false,
        tls_name: None,
        sizes: 1..=1480,
    };
    let mut link = host.run(|| TcpLink::bind(opts)).expect("a link");
    let before = getrlimit(Resource::Nofile).current.expect("a limit");
    let waiting: Vec<TcpStream> =
        host.run(|| (0..20).map(|_| TcpStream::connect("127.0.0.1:4920").expect("a connection")).collect());
    // The next descriptor is the first beyond the limit, whatever is open below: all of those are taken.
    let next = waiting[0].as_fd().try_clone_to_owned().expect("a descriptor");
    limit(u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&next)).expect("a number"));
    drop(next);
    let (start, mut batch, mut woken) = (Instant::now(), RecvBatch::new(), 0);
    while start.elapsed() < Duration::from_millis(500) {
        link.on_timer();
        if is_ready(&link) {
            woken += 1;
            link.recv(&mut batch).expect("it goes on");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    assert!(woken <= 3, "woken {woken} times for connections that cannot be taken");
    assert_eq!(link.remotes().count(), 0);
    limit(before);
    while link.remotes().count() < waiting.len() {
        assert!(start.elapsed() < Duration::from_secs(5), "{} were taken", link.remotes().count());
        link.on_timer();
        link.recv(&mut batch).expect("receive");
        std::thread::sleep(Duration::from_millis(5));
    }
}
