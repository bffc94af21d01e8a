//! `hawser shim -c` across a network of the reference services: flows on paths of their own.

use std::collections::BTreeSet;

use hawser_lab::localnet::{Localnet, Topology};
use hawser_lab::shim::{Carried, scion_links};
use hawser_wire::Capture;
use rustix::process::Signal;
use serde_json::Value;

use super::shims::{Host, curl, fetched, web_server};

/// Links between the two ASes, and so disjoint paths; and egresses of a shim, by default.
const PATHS: u8 = 4;

/// The flows of the status's connection that has most.
fn flows(host: &Host) -> Vec<Value> {
    let status = host.status();
    let connections = status["connections"].as_array().expect("connections").iter();
    let flows = connections.map(|connection| connection["flows"].as_array().expect("flows").clone());
    flows.max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn a_connection_has_a_flow_on_each_of_four_paths_and_a_shim_leaves_nothing() {
    let topology = Topology::named("two-cores", Some(PATHS)).expect("it comes along");
    let net = Localnet::up(&topology).expect("a network of the reference services (needs root and go)");
    let [mut client, mut server] = ["1-ff00:0:110", "1-ff00:0:120"].map(|isd_as| {
        let host = net.host(isd_as).expect("a host");
        Host::new(&host.namespace, isd_as, &host.address.to_string(), &host.daemon.to_string())
    });
    let before = client.system();
    // The AS is the daemon's to say.
    client.start("");
    server.start("");
    let served = web_server(&server, 2);
    let [address, _] = server.addresses();
    // The first connection finds the paths; the page is small, and so the connection short.
    fetched(&client, &address, &server);

    // A connection that stays for as long as it is looked at.
    let stays = client.connect(&address);
    client.until("a flow on each path", |host| {
        let all = flows(host);
        let paths: BTreeSet<String> = all.iter().map(|flow| flow["path"]["hops"].to_string()).collect();
        all.len() == usize::from(PATHS) && paths.len() == usize::from(PATHS)
    });
    let sockets = client.namespace.command("ss").args(["-Mni", "dport = 8080"]).output().expect("run ss (iproute2)");
    let sockets = String::from_utf8_lossy(&sockets.stdout).into_owned();
    assert!(sockets.contains("subflows:3"), "three beside the first: {sockets}");
    drop(stays);
    served.join().expect("the server ends in order");
    assert!(!curl(&client, "fc00:1ff:0:1:9900:7918:a6e:63").status.success(), "an AS that nobody has");
    client.signal(Signal::TERM);
    server.signal(Signal::TERM);
    client.until_as_before(&before);
}

/// What both shims are told for TCP as SCION's layer 4: the routers deliver to a server at its port.
const LAYER4: &str = "layer4 = \"tcp\"\nserver_ports = [8080]\n";
/// Bytes of an IP packet with a probe of a path: its headers, and 9 bytes.
/// Source: crates/hawser-shim/README.md, "Datagrams", "What it costs".
const PROBE: u64 = 28 + 36 + 36 + 8 + 9;

#[test]
fn with_tcp_as_layer_4_flows_take_two_paths_and_no_datagram_carries_data() {
    let topology = Topology::named("two-cores", Some(2)).expect("it comes along");
    let net = Localnet::up(&topology).expect("a network of the reference services (needs root and go)");
    let ases = ["1-ff00:0:110", "1-ff00:0:120"];
    let [mut client, mut server] = ases.map(|isd_as| {
        let host = net.host(isd_as).expect("a host");
        Host::new(&host.namespace, isd_as, &host.address.to_string(), &host.daemon.to_string())
    });
    client.start(LAYER4);
    server.start(LAYER4);
    let capture = Capture::start(net.router(ases[0]).expect("an AS")).expect("a capture");
    let served = web_server(&server, 2);
    let [address, _] = server.addresses();
    fetched(&client, &address, &server);
    let stays = client.connect(&address);
    client.until("a flow on each path", |host| {
        let all = flows(host);
        let paths: BTreeSet<String> = all.iter().map(|flow| flow["path"]["hops"].to_string()).collect();
        all.len() == 2 && paths.len() == 2
    });
    let sockets = client.namespace.command("ss").args(["-Mni", "dport = 8080"]).output().expect("run ss (iproute2)");
    let sockets = String::from_utf8_lossy(&sockets.stdout).into_owned();
    assert!(sockets.contains("subflows:1"), "one beside the first: {sockets}");
    drop(stays);
    served.join().expect("the server ends in order");
    for host in [&client, &server] {
        let status = host.status().to_string();
        assert!(!status.contains("drop_layer4") && !status.contains("drop_damaged"), "{status}");
    }
    client.signal(Signal::TERM);
    server.signal(Signal::TERM);
    let pcap = capture.finish().expect("a capture");
    let hosts = ases.map(|isd_as| net.host(isd_as).expect("a host").address);
    for (from, to) in [(hosts[0], hosts[1]), (hosts[1], hosts[0])] {
        let links = scion_links(&pcap, from, to, Carried::Tcp);
        assert_eq!(links.len(), 3, "segments on both links, and between router and host: {links:?}");
        let datagrams = scion_links(&pcap, from, to, Carried::Udp);
        assert!(datagrams.values().all(|wire| wire.ip_bytes == wire.packets * PROBE), "{datagrams:?}");
    }
    let data: u64 = scion_links(&pcap, hosts[1], hosts[0], Carried::Tcp).values().map(|wire| wire.ip_bytes).sum();
    assert!(data > 600_000, "the page comes by TCP: {data} bytes");
}
