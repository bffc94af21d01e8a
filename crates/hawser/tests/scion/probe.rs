//! `hawser scion paths --probe` against a router that stands in.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::thread;

use hawser_scion::daemon::proto;
use hawser_scion::packet::{DataplaneView, FlowId, ScmpView, Template, Traceroute, Upper, parse};
use hawser_scion::{Dataplane, EndpointAddr, InterfaceId, IsdAs};
use serde_json::Value;

use crate::daemon::{StandIn, Table, router, told};

const LOCAL: &str = "1-ff00:0:111";
const FAR: &str = "1-ff00:0:112";

fn as_number(text: &str) -> IsdAs {
    text.parse().expect("an AS")
}

/// Answers one probe as the last router does, and one with an error; says how many hop fields asked for a look.
fn stand_in(socket: &UdpSocket) -> Vec<usize> {
    let mut alerts = Vec::new();
    for number in 0..2 {
        let mut buffer = [0; 2048];
        let (len, from) = socket.recv_from(&mut buffer).expect("a probe");
        let packet = parse(&buffer[..len]).expect("a packet");
        assert!(packet.verify_checksum());
        let Upper::Scmp(ScmpView::TracerouteRequest(question)) = packet.upper() else { panic!("{packet:?}") };
        assert_eq!(usize::from(question.id), usize::from(from.port()), "answers come to the port that asked");
        let hops = packet.dataplane().segments().flat_map(|(_, hops)| hops);
        alerts.push(hops.filter(|hop| hop.ingress_alert || hop.egress_alert).count());
        let (source, host) = packet.source();
        let back = Template::new(
            EndpointAddr::new(as_number(FAR), socket.local_addr().expect("an address")),
            EndpointAddr::new(source, SocketAddr::new(host, from.port())),
            &reversed(packet.dataplane()),
            FlowId::default(),
        );
        let answer = Traceroute { isd_as: as_number(FAR), interface: InterfaceId(3), ..question };
        let down = ScmpView::ExternalInterfaceDown {
            isd_as: as_number("1-ff00:0:110"),
            interface: InterfaceId(5),
            quoted: &buffer[..len],
        };
        let message = if number == 0 { ScmpView::TracerouteReply(answer) } else { down };
        let mut out = Vec::new();
        back.expect("a way back").write_scmp(&message, &mut out);
        socket.send_to(&out, from).expect("it is sent");
    }
    alerts
}

fn reversed(path: DataplaneView<'_>) -> Dataplane {
    path.reversed().expect("a way back")
}

#[test]
fn a_probe_tells_which_paths_work() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a router");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a router that says nothing");
    let by = |way: &str, socket: &UdpSocket| proto::Path {
        interface: Some(router(&socket.local_addr().expect("an address").to_string())),
        ..told(way)
    };
    let paths = vec![
        by("1-ff00:0:111 1 4 1-ff00:0:110 5 1 1-ff00:0:112", &socket),
        by("1-ff00:0:111 3 3 1-ff00:0:112", &socket),
        by("1-ff00:0:111 2 3 1-ff00:0:120 4 2 1-ff00:0:112", &silent),
    ];
    let daemon = StandIn::with_table(Table {
        local: proto::AsResponse { isd_as: as_number(LOCAL).to_bits(), core: false, mtu: 1472 },
        paths: BTreeMap::from([(as_number(FAR), paths)]),
        interfaces: BTreeMap::new(),
        ports: (31_000, 32_767),
    });
    let router = thread::spawn(move || stand_in(&socket));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(["scion", "paths", FAR, "--daemon", &daemon.address().to_string()]);
    let out = command.args(["--probe", "--select", "health", "--count", "1", "--json"]).output().expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(router.join().expect("the router"), [1, 1], "one router is asked on each path");
    let shown: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let of = |path: &Value, key: &str| path[key].as_str().map(str::to_owned);
    let paths = shown["paths"].as_array().expect("paths");
    // Requests go out in the daemon's order, so the longer path's was answered.
    let tells: Vec<_> = paths.iter().map(|path| (path["hops"].as_array().map(Vec::len), of(path, "status"))).collect();
    let says = |hops, status: &str| (Some(hops), Some(status.to_owned()));
    assert_eq!(tells, [says(2, "scmp"), says(4, "alive"), says(4, "timeout")]);
    assert_eq!(of(&paths[0], "status_info").as_deref(), Some("1-ff00:0:110#5 is down"));
    assert!(paths[1]["rtt_ms"].as_f64().is_some_and(|rtt| rtt > 0.0), "{shown}");
    let chosen: Vec<_> = paths.iter().map(|path| path["chosen"].as_bool()).collect();
    assert_eq!(chosen, [Some(false), Some(true), Some(false)]);
}
