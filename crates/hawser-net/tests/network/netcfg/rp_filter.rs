//! Why a link's reverse path filter is set to 2: with 1 the second link to one destination receives nothing.

use std::{
    io::ErrorKind,
    net::UdpSocket,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use hawser_net::netcfg::{Change, SysctlKey};
use socket2::SockRef;

use super::lab::{config, in_namespace, ip, veth};

/// The remote endpoint, reached by both links.
const REMOTE: &str = "192.0.2.1:4920";
/// Longer than any answer takes inside one machine.
const NO_ANSWER: Duration = Duration::from_millis(300);

/// Both links, from the near side: addresses 10.0.1.1 and 10.0.2.1, default routes by both.
fn near_side(far_thread: i32) {
    for (near, far, net) in [("dsl0", "dsl1", 1), ("lte0", "lte1", 2)] {
        veth(near, far);
        ip(&format!("link set {far} netns {far_thread}"));
        ip(&format!("addr add 10.0.{net}.1/24 dev {near}"));
        ip(&format!("link set {near} up"));
        ip(&format!("route add default via 10.0.{net}.2 dev {near} metric {net}"));
    }
}

/// The far side answers each datagram by the link it came from, until it is told to end.
fn far_side(its_thread: Sender<i32>, links_are_here: Receiver<()>, end: Receiver<()>) {
    in_namespace(move || async move {
        its_thread.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        links_are_here.recv().unwrap();
        ip("addr add 192.0.2.1/32 dev lo");
        for (far, net) in [("dsl1", 1), ("lte1", 2)] {
            ip(&format!("addr add 10.0.{net}.2/24 dev {far}"));
            ip(&format!("link set {far} up"));
        }
        let socket = UdpSocket::bind(REMOTE).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut buffer = [0; 64];
        while end.try_recv().is_err() {
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                socket.send_to(&buffer[..length], from).unwrap();
            }
        }
    });
}

/// True if a datagram sent by the link `interface` is answered.
fn is_answered(interface: &str, source: &str) -> bool {
    let socket = UdpSocket::bind(source).unwrap();
    SockRef::from(&socket).bind_device(Some(interface.as_bytes())).unwrap();
    socket.set_read_timeout(Some(NO_ANSWER)).unwrap();
    socket.send_to(b"are you there", REMOTE).unwrap();
    loop {
        match socket.recv(&mut [0; 64]) {
            Ok(_) => return true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            // A machine that stood still ends a wait that has a time (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("receive by {interface}: {error}"),
        }
    }
}

#[test]
fn a_second_link_is_deaf_with_rp_filter_1_and_hears_with_hawsers_2() {
    in_namespace(|| async {
        let (its_thread, thread_of) = channel();
        let (links_are_here, wait) = channel();
        let (end, ended) = channel();
        let far = thread::spawn(|| far_side(its_thread, wait, ended));
        near_side(thread_of.recv().unwrap());
        links_are_here.send(()).unwrap();
        for name in ["all", "dsl0", "lte0"] {
            SysctlKey::rp_filter(name).unwrap().write("1").unwrap();
        }
        let (dsl, lte) = (("dsl0", "10.0.1.1:0"), ("lte0", "10.0.2.1:0"));
        let hears = |(interface, source): (&str, &str)| is_answered(interface, source);
        assert!((0..20).any(|_| hears(dsl)), "the far side is not there");
        assert!(!hears(lte), "the kernel would not need us");

        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        for name in ["dsl0", "lte0"] {
            let key = SysctlKey::rp_filter(name).unwrap();
            config.apply(Change::Sysctl { key, value: "2".into() }).await.unwrap();
        }
        assert!(hears(dsl) && hears(lte));
        assert!(config.undo_all().await.is_clean());
        assert!(hears(dsl) && !hears(lte));
        end.send(()).unwrap();
        far.join().unwrap();
    });
}
