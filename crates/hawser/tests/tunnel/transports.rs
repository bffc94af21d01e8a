//! Each transport over each outer IP version with each inner one; mixes of them; and what only streams have.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hawser_portal::api::{PathState, Status};
use hawser_wire::traffic::{Ping, TcpTransfer, UdpFlow};
use hawser_wire::{Namespace, Rate};

use crate::lab::{
    self, ENDPOINT, ENDPOINT_V6, LINKS, LOCAL, LOCAL_V6, Lab, Portal, REMOTE, REMOTE_V6, ms, parse, paths, states,
};

/// How long each kind of traffic goes on.
const SPELL: Duration = Duration::from_millis(250);
/// The same where a rate is looked at.
const RATED: Duration = Duration::from_secs(2);
/// Least received in a transfer, in bytes: no path that works brings less in that time, however busy the machine.
const TRANSFER_MIN: u64 = 200_000;
/// Of a UDP flow of a few packets a millisecond at most so much is lost at its start and end.
const UDP_SHARE_MIN: f64 = 0.95;
/// A silent cut of one of three paths costs a ping of 100 a second at most this many.
const CUT_LOST_MAX: usize = 5;
/// Only CAP_NET_ADMIN (linux/capability.h: number 12).
const NET_ADMIN: &str = "0000000000001000";
/// CAP_NET_ADMIN and CAP_NET_RAW, as /proc/PID/status shows them (linux/capability.h: numbers 12 and 13).
const NET_ADMIN_AND_RAW: &str = "0000000000003000";
/// Where the remote portal listens for streams, as `SocketAddr` has it.
const LISTENS: &str = "198.51.100.7:4920";
/// Connections that may wait for their first proof, and for how long.
const PENDING: usize = 64;
const PROOF: Duration = Duration::from_secs(2);

/// Every link of this transport, and a remote portal that listens for all.
fn lab(tag: &str, transport: &str, outer: &str) -> Lab {
    let lab = Lab::new(tag, "");
    for link in LINKS {
        let (name, with) =
            (format!("interface = \"{link}\"\n"), format!("interface = \"{link}\"\n{}", words(transport)));
        lab.edit("local.toml", &name, &with);
    }
    listen_to_all(&lab);
    if outer == "v6" {
        lab.edit("local.toml", &format!("{ENDPOINT}:4920"), &format!("[{ENDPOINT_V6}]:4920"));
    }
    lab
}

/// A transport as a link's section has it.
fn words(transport: &str) -> String {
    match transport {
        "tls" => "transport = \"tcp\"\ntls = true\ntls_name = \"www.example.com\"\n".to_owned(),
        name => format!("transport = \"{name}\"\n"),
    }
}

fn listen_to_all(lab: &Lab) {
    let all = "listen = [\"0.0.0.0:4920\", \"[::]:4920\"]\ntransports = [\"udp\", \"tcp\", \"ip\"]\ntls = true";
    lab.edit("remote.toml", "listen = [\"0.0.0.0:4920\"]", all);
}

fn transports(status: &Status) -> Vec<&str> {
    paths(status).iter().map(|path| path.transport.as_str()).collect()
}

/// TCP, UDP and ICMP, both ways, over both inner IP versions, all at once.
fn carries_everything(lab: &Lab) {
    // Ports of their own: a child that another test starts holds a copy of a socket closed here, until it calls exec.
    let ends = [(LOCAL, REMOTE, [5001, 5002]), (LOCAL_V6, REMOTE_V6, [5003, 5004])];
    for (local, remote, [up, down]) in ends {
        let ways = [(&lab.local, &lab.remote, remote, up), (&lab.remote, &lab.local, local, down)];
        let pings = ways.map(|(from, _, to, _)| {
            Ping { from: from.clone(), destination: parse(to), interval: ms(20), duration: SPELL }
                .start()
                .expect("a ping")
        });
        let flows = ways.map(|(from, to, address, port)| flow(from, to, address, port).start().expect("a flow"));
        let transfers =
            ways.map(|(from, to, address, port)| transfer(from, to, address, port).start().expect("a transfer"));
        for transfer in transfers {
            let got = transfer.finish().expect("a transfer").total_bytes();
            assert!(got > TRANSFER_MIN, "{got} bytes to {remote} or back");
        }
        for flow in flows {
            let report = flow.finish().expect("a flow");
            let share = report.arrivals.len() as f64 / report.sent as f64;
            assert!(share > UDP_SHARE_MIN, "{share} of the datagrams to {remote} or back");
        }
        for ping in pings {
            lab.assert_none_lost(&ping.finish().expect("a ping"));
        }
    }
}

fn socket(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(parse(address), port)
}

fn transfer(from: &Namespace, to: &Namespace, address: &str, port: u16) -> TcpTransfer {
    lab::transfer(from, to, socket(address, port), SPELL)
}

fn flow(from: &Namespace, to: &Namespace, address: &str, port: u16) -> UdpFlow {
    UdpFlow {
        from: from.clone(),
        to: to.clone(),
        destination: socket(address, port),
        payload: 500,
        rate: Rate::mbit(2.0),
        duration: SPELL,
        linger: ms(300),
    }
}

/// Two of the twelve cells: a transport over one outer IP version, with both inner ones.
fn cells(transport: &str, outer: &str, mtu: u16) {
    let lab = lab(&format!("{transport}{outer}"), transport, outer);
    let (local, remote) = lab.start_both();
    // What the largest datagram leaves for an inner packet (docs/transports.md).
    local.wait_for_log(&format!("tun mtu mtu={mtu}"));
    remote.wait_for_log(&format!("tun mtu mtu={mtu}"));
    carries_everything(&lab);
    let shown = if transport == "tls" { "tcp" } else { transport };
    assert_eq!(transports(&local.status().expect("a status")), [shown; 2]);
    assert_eq!(transports(&remote.status().expect("a status")), [shown; 2]);
}

#[test]
fn udp_over_ipv4_carries_everything() {
    cells("udp", "v4", 1441);
}

#[test]
fn udp_over_ipv6_carries_everything() {
    cells("udp", "v6", 1421);
}

#[test]
fn ip_over_ipv4_carries_everything() {
    cells("ip", "v4", 1449);
}

#[test]
fn ip_over_ipv6_carries_everything() {
    cells("ip", "v6", 1429);
}

#[test]
fn tcp_over_ipv4_carries_everything() {
    cells("tcp", "v4", 1449);
}

#[test]
fn tcp_over_ipv6_carries_everything() {
    cells("tcp", "v6", 1449);
}

/// Whether packets of a protocol pass the links out of the local host.
fn cut(lab: &Lab, rule: Option<&str>) {
    let words = match rule {
        Some(rule) => format!(
            "add table inet cut; add chain inet cut out {{ type filter hook output priority 0; }}; \
             add rule inet cut out oifname {{ \"one\", \"two\" }} {rule}"
        ),
        None => "delete table inet cut".to_owned(),
    };
    let output = lab.local.command("nft").arg(words).output().expect("run nft (nftables)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_link_of_every_transport_keeps_to_its_rate_both_ways() {
    for transport in ["udp", "tcp", "tls", "ip"] {
        let lab = lab(&format!("rate{transport}"), transport, "v4");
        for link in LINKS {
            let name = format!("interface = \"{link}\"\n");
            lab.edit("local.toml", &name, &format!("{name}max_rate = \"2M\"\n"));
        }
        let (_local, _remote) = lab.start_both();
        for (from, to, address) in [(&lab.local, &lab.remote, REMOTE), (&lab.remote, &lab.local, LOCAL)] {
            let more = UdpFlow { rate: Rate::mbit(12.0), duration: RATED, ..flow(from, to, address, 5005) };
            let report = more.run().expect("a flow");
            let mbps = report.arrivals.len() as f64 * 528.0 * 8.0 / 1e6 / RATED.as_secs_f64();
            // Its queue begins empty, and what it holds at the end comes later.
            assert!((2.0..6.0).contains(&mbps), "{transport} to {address}: {mbps} Mbit/s by two links of 2");
        }
    }
}

#[test]
fn a_bond_of_all_transports_outlives_the_loss_of_each() {
    let lab = Lab::new("mix", "");
    lab.edit("local.toml", "interface = \"two\"\n", &format!("interface = \"two\"\n{}", words("tcp")));
    let third = format!("[[link]]\nname = \"three\"\ninterface = \"two\"\n{}[[peer]]", words("ip"));
    lab.edit("local.toml", "[[peer]]", &third);
    listen_to_all(&lab);
    let (_remote, local) = (lab.start("remote"), lab.start("local"));
    let whole = |status: &Status| states(status) == [PathState::Active; 3];
    let status = local.wait_for("all paths to be active", whole);
    assert_eq!(transports(&status), ["udp", "tcp", "ip"]);
    carries_everything(&lab);
    for (at, rule) in ["udp dport 4920 drop", "tcp dport 4920 drop", "meta l4proto 253 drop"].into_iter().enumerate() {
        let ping = lab.ping(REMOTE, ms(10), ms(1_000)).start().expect("a ping");
        std::thread::sleep(ms(200));
        cut(&lab, Some(rule));
        let report = ping.finish().expect("a report");
        assert!(report.lost() <= CUT_LOST_MAX, "{rule}: {} of {}; {}", report.lost(), report.sent.len(), local.log());
        local.wait_for("the path to be down", |status| {
            states(status).iter().enumerate().all(|(n, state)| (*state == PathState::Active) == (n != at))
        });
        cut(&lab, None);
        local.wait_for("all paths to be back", whole);
        lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
    }
}

#[test]
fn streams_that_are_reset_are_made_anew() {
    let lab = lab("reset", "tcp", "v4");
    let (local, _remote) = lab.start_both();
    for _ in 0..2 {
        cut(&lab, Some("tcp dport 4920 reject with tcp reset"));
        local.wait_for("the streams to be gone", |status| !states(status).contains(&PathState::Active));
        cut(&lab, None);
        local.wait_for("the streams to be back", |status| states(status) == [PathState::Active; 2]);
        lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
    }
}

#[test]
fn a_remote_portal_that_is_started_again_is_called_again() {
    let lab = lab("again", "tcp", "v4");
    let (local, mut remote) = lab.start_both();
    remote.signal(rustix::process::Signal::KILL);
    remote.wait();
    let _remote = lab.start("remote");
    lab.answered_within(Duration::from_secs(4));
    local.wait_for("the streams to be back", |status| states(status) == [PathState::Active; 2]);
}

/// How long a connection lives, and what came by it before its end.
fn end_of(mut stream: TcpStream) -> (Duration, Vec<u8>) {
    stream.set_read_timeout(Some(4 * PROOF)).expect("a timeout");
    let (start, mut came) = (Instant::now(), Vec::new());
    match stream.read_to_end(&mut came) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    (start.elapsed(), came)
}

fn connections(lab: &Lab, count: usize) -> Vec<TcpStream> {
    let to: SocketAddr = parse(LISTENS);
    let connect = || (0..count).map(|_| TcpStream::connect(to).expect("a connection")).collect();
    lab.local.run(connect).expect("the namespace can be entered")
}

/// Its streams work whatever strangers do.
fn assert_works(lab: &Lab, local: &Portal) {
    assert_eq!(states(&local.status().expect("a status")), [PathState::Active; 2]);
    lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
}

#[test]
fn strangers_get_no_answer_and_little_time_and_room() {
    let lab = lab("strange", "tcp", "v4");
    let (local, _remote) = lab.start_both();
    // As many as may wait: they have their two seconds; one more is closed at once.
    let mut waiting = connections(&lab, PENDING);
    let (first, last) = (waiting.remove(0), waiting.remove(0));
    let (lived, came) = end_of(connections(&lab, 1).remove(0));
    assert!(lived < PROOF / 2 && came.is_empty(), "{lived:?}, {came:?}");
    assert_works(&lab, &local);
    for stream in [first, last] {
        let (_, came) = end_of(stream);
        assert!(came.is_empty(), "{came:?}");
    }
    drop(waiting);
    // A length that no record has ends a connection at once; records of nobody's after two seconds.
    for (bytes, least, most) in [
        (vec![0xff; 64], Duration::ZERO, PROOF / 2),
        (vec![0, 3, 1, 2, 3], Duration::ZERO, PROOF / 2),
        ([&[0, 157, 0x10][..], &[7; 156], &[0, 100, 0x40], &[9; 99]].concat(), PROOF / 2, 2 * PROOF),
    ] {
        let mut stream = connections(&lab, 1).remove(0);
        stream.write_all(&bytes).expect("it is taken");
        let (lived, came) = end_of(stream);
        assert!(least <= lived && lived < most && came.is_empty(), "{bytes:?}: {lived:?}, {came:?}");
    }
    assert_works(&lab, &local);
}

#[test]
fn the_packet_thread_of_a_portal_with_raw_sockets_has_one_capability_more() {
    let lab = lab("raw", "ip", "v4");
    let (local, remote) = lab.start_both();
    for portal in [local, remote] {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", portal.pid())).expect("its threads");
        let mut threads: Vec<(String, String)> = tasks
            .map(|task| {
                let read = |file| std::fs::read_to_string(task.as_ref().expect("a thread").path().join(file));
                let status = read("status").expect("its status");
                let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:\t")).expect("the line");
                (read("comm").expect("its name").trim().to_owned(), permitted.to_owned())
            })
            .collect();
        threads.sort();
        let wanted = [("hawser", NET_ADMIN), ("hawser-packet", NET_ADMIN_AND_RAW)];
        assert_eq!(threads, wanted.map(|(name, powers)| (name.to_owned(), powers.to_owned())));
    }
}

#[test]
fn tls_over_ipv4_carries_everything() {
    cells("tls", "v4", 1449);
}

#[test]
fn a_stream_inside_tls_looks_like_one() {
    let lab = lab("tls", "tls", "v6");
    let (local, _remote) = lab.start_both();
    assert_works(&lab, &local);
    // To a stranger, the listener is a server of the web that says nothing.
    let ask = format!("openssl s_client -connect {LISTENS} -servername www.example.com -alpn h2 -tls1_3 </dev/null");
    let output = lab.local.command("sh").args(["-c", &ask]).output().expect("run openssl");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("TLSv1.3") && said.contains("ALPN protocol: h2"), "{said}");
}

#[test]
fn where_only_one_side_is_configured_for_tls_both_say_which_key_to_set() {
    let lab = lab("untold", "tls", "v4");
    lab.edit("remote.toml", "\ntls = true", "");
    let (remote, local) = (lab.start("remote"), lab.start("local"));
    remote.wait_for_log("stream inside TLS closed: if a peer called, set `tls = true` in [portal] here");
    local.wait_for_log("the remote portal needs `tls = true` in its [portal]");
    // Calls go on, and the log is not filled.
    std::thread::sleep(ms(2_000));
    for portal in [&local, &remote] {
        let told = portal.log().matches("`tls = true`").count();
        assert!((1..=LINKS.len()).contains(&told), "{told} lines: {}", portal.log());
    }
}
