//! Network namespaces for tests: each is a thread that owns it and runs what it is given.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod links;

use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{UnshareFlags, gettid};

type Job = Box<dyn FnOnce() + Send>;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A network namespace with its loopback up; it goes with this value and the sockets made in it.
pub struct Namespace {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    tid: i32,
}

impl Namespace {
    pub fn new() -> Namespace {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (ready, started) = mpsc::channel();
        let thread = thread::spawn(move || {
            // SAFETY: only this thread's network namespace changes; no file descriptors are unshared.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
                .expect("this test makes network namespaces: run it as root (CAP_SYS_ADMIN)");
            ready.send(gettid().as_raw_nonzero().get()).expect("the test waits");
            for job in queue {
                job();
            }
        });
        let Ok(tid) = started.recv() else {
            panic!("this test makes network namespaces: run it as root (CAP_SYS_ADMIN)");
        };
        let namespace = Namespace { jobs: Some(jobs), thread: Some(thread), tid };
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs `job` in the namespace and returns what it returns. Sockets stay in the namespace.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        let job: Job = Box::new(move || drop(done.send(job())));
        self.jobs.as_ref().expect("open").send(job).expect("the namespace's thread lives");
        result.recv().expect("the job did not panic")
    }

    /// Runs `ip ARGUMENTS` in the namespace and returns what it prints.
    pub fn ip(&self, arguments: &str) -> String {
        let arguments = arguments.to_owned();
        self.run(move || {
            let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2 is installed");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "ip {arguments}: {said}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
    }

    /// Gives an interface that is up an address, such as `10.0.0.1/24`, and waits until the
    /// kernel answers for it (for IPv6 it begins to a moment later, on a work queue).
    pub fn address(&self, address: &str, interface: &str) {
        let nodad = if address.contains(':') { "nodad" } else { "" };
        self.ip(&format!("address add {address} dev {interface} {nodad}"));
        let (bare, _) = address.split_once('/').expect("a prefix length");
        let end = Instant::now() + PATIENCE;
        let family = if address.contains(':') { "-6" } else { "-4" };
        let show = format!("{family} route show table local {bare}");
        while !self.ip(&show).contains("local") {
            assert!(Instant::now() < end, "waited in vain for {address}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Joins this namespace and `other` by a veth pair, both ends up with their addresses.
    pub fn veth(&self, name: &str, address: &str, other: &Namespace, name2: &str, address2: &str) {
        self.ip(&format!("link add {name} type veth peer name {name2} netns {}", other.tid));
        for (namespace, name) in [(self, name), (other, name2)] {
            namespace.ip(&format!("link set {name} up"));
        }
        self.address(address, name);
        other.address(address2, name2);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Calls `step` whenever `fd` is readable, until it returns something; fails after [`PATIENCE`].
pub fn until<F: std::os::fd::AsFd, T>(source: &mut F, what: &str, mut step: impl FnMut(&mut F) -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = step(source) {
            return result;
        }
        let left = end.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "waited in vain for {what}");
        let timeout = left.try_into().expect("a short time");
        poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&timeout)).expect("poll");
    }
}

/// Two hosts, 10.1.0.1 and 10.2.0.2, and the router between them, which carries no more than 1300 bytes to the second.
pub fn narrowed() -> (Namespace, Namespace, Namespace) {
    let (near, router, far) = (Namespace::new(), Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &router, "v1", "10.1.0.2/24");
    router.veth("w0", "10.2.0.1/24", &far, "w1", "10.2.0.2/24");
    near.ip("route add default via 10.1.0.2");
    far.ip("route add default via 10.2.0.1");
    router.ip("link set w0 mtu 1300");
    // A thread sees its own namespace's half of /proc/sys/net.
    router.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("forwarding");
    (near, router, far)
}
