//! The link watch tells what happens, soon, and loses nothing.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use hawser_net::netcfg::{EventReceiver, IfIndex, LinkEvent, LinkWatch, WatchOptions, event_channel};
use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::lab::{in_namespace, index, ip, veth, veth_up};

/// A link that is set down must be told within this time (issue: traffic moves within 200 ms).
const SOON: Duration = Duration::from_millis(20);
/// How often it is tried: the median counts, for the machine is shared.
const TRIES: usize = 9;
/// How long a test waits before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The smallest receive buffer there is: a single message fills it.
const TINY_BUFFER: usize = 1;

/// Waits for an event that `wanted` accepts; returns it with all before it.
async fn until(watch: &mut LinkWatch, wanted: impl Fn(&LinkEvent) -> bool) -> Vec<LinkEvent> {
    let mut seen = Vec::new();
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let events = tokio::time::timeout_at(end, watch.next()).await;
        let events = events.unwrap_or_else(|_| panic!("waited in vain, saw {seen:?}")).unwrap();
        assert!(!events.is_empty());
        seen.extend(events);
        if seen.iter().any(&wanted) {
            return seen;
        }
    }
}

fn is_up(event: &LinkEvent, name: &str) -> bool {
    matches!(event, LinkEvent::Up(interface) if &*interface.name == name)
}

fn is_down(event: &LinkEvent, name: &str) -> bool {
    matches!(event, LinkEvent::Down(interface) if &*interface.name == name)
}

/// Passes over what still comes of an earlier change.
async fn quiet(watch: &mut LinkWatch) {
    while tokio::time::timeout(Duration::from_millis(100), watch.next()).await.is_ok() {}
}

async fn veth_seen_up(watch: &mut LinkWatch) {
    veth_up("v0", "v1");
    until(watch, |event| is_up(event, "v0")).await;
}

#[test]
fn the_first_events_tell_all_there_is() {
    in_namespace(|| async {
        veth_up("v0", "v1");
        ip("addr add 10.0.0.1/24 dev v0");
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        let events = until(&mut watch, |event| is_up(event, "v0")).await;
        for name in ["lo", "v0", "v1"] {
            let appeared = |event: &LinkEvent| matches!(event, LinkEvent::Appeared(one) if &*one.name == name && one.index == index(name));
            assert!(events.iter().any(appeared), "{name}: {events:?}");
        }
        let address = |event: &LinkEvent| matches!(event, LinkEvent::AddressAdded(one, net) if &*one.name == "v0" && net.to_string() == "10.0.0.1/24");
        assert!(events.iter().any(address), "{events:?}");
    });
}

/// Passes on when `name` went down, as the packet thread hears of it, until the watch ends.
fn packet_thread(receiver: EventReceiver, told: UnboundedSender<Instant>) {
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    loop {
        let mut descriptors = [PollFd::new(&receiver, PollFlags::IN)];
        let ready = poll(&mut descriptors, Some(&patience)).unwrap();
        assert_eq!(ready, 1, "no event");
        let now = Instant::now();
        let events = receiver.drain();
        if events.iter().any(|event| is_down(event, "v0")) && told.send(now).is_err() {
            return;
        }
    }
}

#[test]
fn a_link_set_down_reaches_the_packet_thread_within_20_ms() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        let (sender, receiver) = event_channel().unwrap();
        let watching = tokio::spawn(watch.run(sender));
        let (told, mut hears) = unbounded_channel();
        let packets = thread::spawn(|| packet_thread(receiver, told));
        let (connection, handle, _) = rtnetlink::new_connection().unwrap();
        tokio::spawn(connection);
        let v0 = || rtnetlink::LinkUnspec::new_with_index(index("v0").get());
        let mut took = Vec::new();
        for _ in 0..TRIES {
            let down = v0().down().build();
            let begun = Instant::now();
            handle.link().set(down).execute().await.unwrap();
            took.push(hears.recv().await.unwrap() - begun);
            handle.link().set(v0().up().build()).execute().await.unwrap();
            tokio::time::sleep(SOON).await;
        }
        took.sort();
        assert!(took[TRIES / 2] < SOON, "took {took:?}");
        // Nobody listens any more: the watch ends with the next event.
        drop(hears);
        ip("link set v0 down");
        tokio::time::sleep(SOON).await;
        tokio::task::spawn_blocking(|| packets.join().unwrap()).await.unwrap();
        ip("link set v0 up");
        tokio::time::timeout(PATIENCE, watching).await.unwrap().unwrap().unwrap();
    });
}

#[test]
fn carrier_lost_at_the_far_end_is_down_too() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        ip("link set v1 down");
        until(&mut watch, |event| is_down(event, "v0")).await;
    });
}

#[test]
fn addresses_and_routes_are_told() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        ip("addr add 10.0.0.1/24 dev v0");
        until(&mut watch, |event| matches!(event, LinkEvent::AddressAdded(_, net) if net.to_string() == "10.0.0.1/24"))
            .await;
        ip("addr del 10.0.0.1/24 dev v0");
        until(
            &mut watch,
            |event| matches!(event, LinkEvent::AddressRemoved(_, net) if net.to_string() == "10.0.0.1/24"),
        )
        .await;
        quiet(&mut watch).await;
        for command in [
            "route add 192.0.2.0/24 dev v0",
            "route del 192.0.2.0/24 dev v0",
            "-6 route add 2001:db8::/32 dev v0",
            "rule add fwmark 1 lookup 100",
            "-6 rule add fwmark 1 lookup 100",
        ] {
            ip(command);
            let seen = until(&mut watch, |event| *event == LinkEvent::RoutesChanged).await;
            assert_eq!(seen, [LinkEvent::RoutesChanged], "{command}");
            quiet(&mut watch).await;
        }
    });
}

#[test]
fn an_ipv6_address_is_told_when_it_can_be_used() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        ip("addr add fd00::1/64 dev v0");
        let begun = Instant::now();
        until(&mut watch, |event| matches!(event, LinkEvent::AddressAdded(_, net) if net.to_string() == "fd00::1/64"))
            .await;
        assert!(begun.elapsed() > Duration::from_millis(500), "detection takes about a second");
        assert!(!ip("addr show dev v0").contains("tentative"));
    });
}

#[test]
fn an_address_is_told_when_it_is_deprecated_and_when_it_is_no_longer() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        for (address, nodad) in [("10.0.0.1/24", ""), ("2001:db8::1/64", " nodad")] {
            let is_it = |net: &IpNet| net.to_string() == address;
            ip(&format!("addr add {address} dev v0{nodad}"));
            until(&mut watch, |event| matches!(event, LinkEvent::AddressAdded(_, net) if is_it(net))).await;
            ip(&format!("addr change {address} dev v0 preferred_lft 0"));
            until(&mut watch, |event| matches!(event, LinkEvent::AddressDeprecated(_, net) if is_it(net))).await;
            ip(&format!("addr change {address} dev v0 preferred_lft forever"));
            until(&mut watch, |event| matches!(event, LinkEvent::AddressPreferred(_, net) if is_it(net))).await;
        }
    });
}

#[test]
fn an_interface_made_anew_has_another_index() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        ip("addr add 10.0.0.1/24 dev v0");
        let old = index("v0");
        ip("link del v0");
        let is_old = |event: &LinkEvent| matches!(event, LinkEvent::Gone(one) if one.index == old);
        let seen = until(&mut watch, is_old).await;
        let place = |wanted: &dyn Fn(&LinkEvent) -> bool| seen.iter().position(wanted);
        let down = place(&|event| is_down(event, "v0")).expect("down before it is gone");
        let removed = place(&|event| matches!(event, LinkEvent::AddressRemoved(one, _) if one.index == old));
        assert!(removed.is_some() && down < place(&is_old).unwrap(), "{seen:?}");
        veth("v0", "v1");
        let new = index("v0");
        assert_ne!(old, new);
        until(&mut watch, |event| matches!(event, LinkEvent::Appeared(one) if &*one.name == "v0" && one.index == new))
            .await;
    });
}

/// What is known after events, as a portal would keep it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    links: BTreeSet<(IfIndex, String)>,
    up: BTreeSet<IfIndex>,
    addresses: BTreeSet<(IfIndex, String)>,
}

impl Known {
    fn learn(&mut self, event: &LinkEvent) {
        let news = match event {
            LinkEvent::Appeared(one) => self.links.insert((one.index, one.name.to_string())),
            LinkEvent::Gone(one) => self.links.remove(&(one.index, one.name.to_string())),
            LinkEvent::Up(one) => self.up.insert(one.index),
            LinkEvent::Down(one) => self.up.remove(&one.index),
            LinkEvent::AddressAdded(one, net) => self.addresses.insert((one.index, net.to_string())),
            LinkEvent::AddressRemoved(one, net) => self.addresses.remove(&(one.index, net.to_string())),
            LinkEvent::AddressDeprecated(..) | LinkEvent::AddressPreferred(..) | LinkEvent::RoutesChanged => true,
        };
        assert!(news, "told twice: {event:?}");
    }
}

/// 500 changes in one go: links made and deleted, set up and down, addresses added and removed.
fn burst() -> String {
    let mut commands = String::new();
    for round in 0..50 {
        let far = format!("w{round}");
        commands += &format!("link add d{round} type veth peer name {far}\nlink set d{round} addrgenmode none up\n");
        commands += &format!("link set {far} addrgenmode none\n");
        commands += &format!("addr add 10.1.{round}.1/32 dev v0\naddr add 10.2.{round}.1/32 dev d{round}\n");
        commands += &format!("link set v0 down\nlink set v0 up\nlink set {far} up\n");
        commands += &match round % 3 {
            0 => format!("link del d{round}\naddr del 10.1.{round}.1/32 dev v0\n"),
            1 => format!("link set {far} down\naddr del 10.2.{round}.1/32 dev d{round}\n"),
            _ => format!("link set d{round} mtu 1400\nroute add 10.3.{round}.0/24 dev d{round}\n"),
        };
    }
    assert_eq!(commands.lines().count(), 500);
    commands
}

fn run_batch(commands: &str) {
    let mut batch = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    batch.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert!(batch.wait().unwrap().success());
}

/// Events until none has come for a while.
async fn settle(watch: &mut LinkWatch, known: &mut Known) {
    while let Ok(events) = tokio::time::timeout(Duration::from_millis(1500), watch.next()).await {
        events.unwrap().iter().for_each(|event| known.learn(event));
    }
}

#[test]
fn a_burst_beyond_the_receive_buffer_ends_in_the_right_state() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions { receive_buffer: TINY_BUFFER }).unwrap();
        let mut known = Known::default();
        veth("v0", "v1");
        ip("link set v1 up");
        settle(&mut watch, &mut known).await;
        // Another thread of this namespace makes the changes while the watch is at work.
        let burst = thread::spawn(|| run_batch(&burst()));
        settle(&mut watch, &mut known).await;
        burst.join().unwrap();
        settle(&mut watch, &mut known).await;
        assert!(watch.overruns() > 0, "the buffer was not tiny enough to matter");

        let mut fresh = Known::default();
        let mut other = LinkWatch::open(WatchOptions::default()).unwrap();
        settle(&mut other, &mut fresh).await;
        assert_eq!(known, fresh);
        assert_eq!(other.overruns(), 0);
        let names: BTreeSet<_> = known.links.iter().map(|(_, name)| name.as_str()).collect();
        assert!(names.contains("d1") && !names.contains("d0"), "{names:?}");
        assert!(known.up.contains(&index("v0")) && known.up.contains(&index("d2")));
        assert!(!known.up.contains(&index("d1")), "its far end is down");
    });
}

#[test]
fn many_routes_are_told_as_few() {
    in_namespace(|| async {
        let mut watch = LinkWatch::open(WatchOptions::default()).unwrap();
        veth_seen_up(&mut watch).await;
        quiet(&mut watch).await;
        let routes: String = (0..200).map(|number| format!("route add 10.5.{number}.0/24 dev v0\n")).collect();
        run_batch(&routes);
        let mut told = 0;
        while let Ok(events) = tokio::time::timeout(Duration::from_millis(200), watch.next()).await {
            told += events.unwrap().len();
        }
        assert!((1..=3).contains(&told), "200 routes told {told} times");
    });
}
