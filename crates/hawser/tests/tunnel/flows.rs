//! The largest flows, against what was sent.

use std::net::UdpSocket;
use std::path::Path;
use std::thread::sleep;
use std::time::Instant;

use hawser_portal::api::{Client, FlowStatus, Flows};

use crate::lab::{LOCAL, Lab, PATIENCE, REMOTE, ms};

/// Datagrams that are sent, their payload in bytes, and how many at once. A portal may not run for a while: all of them
/// are fewer than a TUN device's queue holds, 500 (Linux), and few enough to be sent before CoDel takes any.
const DATAGRAMS: usize = 100;
const PAYLOAD: usize = 1_000;
const AT_ONCE: usize = 10;
/// IPv4 and UDP headers, which count as the flow's.
const HEADERS: usize = 28;
const PORT: u16 = 7007;
/// The second rule is the flow's; its scheduler sends every packet twice.
const RULES: &str = "[[rule]]\nprotocol = \"tcp\"\nretransmit = true\n[[rule]]\nprotocol = \"udp\"\nports = [7007]\nscheduler = \"redundant\"\n";

/// Asks until the flow of that port is as wanted.
fn wait_for(
    socket: &Path,
    what: &str,
    port: impl Fn(&FlowStatus) -> Option<u16>,
    holds: impl Fn(&FlowStatus) -> bool,
) -> FlowStatus {
    let end = Instant::now() + PATIENCE;
    let mut last = Flows::default();
    while Instant::now() < end {
        last = Client::flows(socket).expect("it answers");
        let flow = last.flows.iter().find(|flow| flow.protocol == "udp" && port(flow) == Some(PORT));
        if let Some(flow) = flow.filter(|flow| holds(flow)) {
            return flow.clone();
        }
        sleep(ms(100));
    }
    panic!("waited for {what} in vain: {last:#?}");
}

#[test]
fn flows_are_told_to_the_byte_on_both_sides_with_rule_and_paths() {
    let lab = Lab::new("flow", RULES);
    let (local, remote) = lab.start_both();
    for portal in [&local, &remote] {
        Client::flows(&portal.socket).expect("it begins to count");
    }
    let receiver = lab.remote.run(|| UdpSocket::bind((REMOTE, PORT))).expect("the namespace").expect("a socket");
    let sender = lab.local.run(|| UdpSocket::bind((LOCAL, 0))).expect("the namespace").expect("a socket");
    sender.connect((REMOTE, PORT)).expect("a route");
    for datagram in 0..DATAGRAMS {
        sender.send(&[0x42; PAYLOAD]).expect("it is sent");
        if datagram % AT_ONCE == 0 {
            sleep(ms(5));
        }
    }
    let all = (DATAGRAMS * (PAYLOAD + HEADERS)) as u64;
    let sent = wait_for(&local.socket, "what was sent", |flow| flow.remote_port, |flow| flow.tx_bytes == all);
    let received = wait_for(&remote.socket, "what was received", |flow| flow.local_port, |flow| flow.rx_bytes == all);
    let port = sender.local_addr().expect("its address").port();
    assert_eq!(
        (sent.peer.as_str(), sent.local_address.to_string(), sent.local_port),
        ("hub", LOCAL.into(), Some(port))
    );
    assert_eq!((received.peer.as_str(), received.remote_address.to_string()), ("home", LOCAL.into()));
    assert_eq!((sent.rule, sent.scheduler.as_deref(), sent.rx_bytes), (Some(2), Some("redundant"), 0));
    assert_eq!((received.rule, received.tx_bytes), (None, 0));
    let by_path = |flow: &FlowStatus| flow.paths.iter().map(|path| path.tx_bytes + path.rx_bytes).sum::<u64>();
    assert_eq!((by_path(&sent), by_path(&received)), (all, all), "{sent:#?} {received:#?}");
    // What came first counts: a link may be it each time.
    let told_apart = received.paths.iter().all(|path| path.endpoint.is_some());
    assert!(told_apart && [1, 2].contains(&received.paths.len()), "by where they lead: {received:#?}");
    drop(receiver);
}
