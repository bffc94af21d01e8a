//! Programs that speak UDP, over the shim: dnsmasq with nslookup, iperf3, quinn, and plain sockets. Needs root, go
//! once, and the packages that `make tools` installs.
//!
//! 1. Names are asked of a real name server, by its derived address, its surrogate and its own.
//! 2. iperf3 sends and receives at two rates, and says what was lost.
//! 3. Datagrams larger than the path takes arrive in fragments; smaller ones say what fits.
//! 4. quinn moves a file; in the middle its path is cut, then either shim is killed and started again.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hawser_lab::localnet::{Localnet, Topology};
use hawser_wire::Namespace;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;

use crate::shims::{Host, PATIENCE};

/// Disjoint paths between the hosts.
const PATHS: u8 = 2;
/// The server's own address, which the map leads to; and what the name server is asked for.
const OWN: &str = "192.0.2.53";
const NAME: &str = "voice.example.test";
const ADDRESS: &str = "192.0.2.77";
/// Of iperf3.
const IPERF3: u16 = 5201;
/// What iperf3 may lose on a busy machine, in per cent: its own buffers are small.
const MOST_LOST: f64 = 5.0;
/// The file that quinn moves, in bytes, and a part of it. Held to a rate, so that there is a middle.
const FILE: usize = 18_000_000;
const PART: usize = 60_000;
const BETWEEN_PARTS: Duration = Duration::from_millis(50);
/// What the certificate is for.
const QUIC: &str = "quic.example.test";

/// Two hosts, each with a shim. The shims end with it.
struct Ground {
    client: Host,
    server: Host,
    net: Localnet,
}

/// A program that is killed on drop.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        // Fails only where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn names_large_datagrams_and_quic_cross_by_udp() {
    let mut ground = Ground::start();
    ground.names_are_found();
    ground.large_datagrams_arrive_or_are_refused();
    ground.quic_outlives_a_cut_path_and_restarts();
    for host in [&ground.client, &ground.server] {
        let status = host.status();
        for counter in ["drop_other_protocol", "drop_malformed", "drop_foreign", "drop_unproven"] {
            assert!(status["counters"].get(counter).is_none(), "{counter}: {}\n{}", status["counters"], host.log());
        }
    }
}

/// iperf3 sends 50 Mbit/s, whatever else the machine does.
mod alone {
    use super::*;

    #[test]
    fn iperf3_loses_little_by_udp() {
        Ground::start().iperf3_loses_little();
    }
}

impl Ground {
    fn start() -> Self {
        let topology = Topology::named("two-cores", Some(PATHS)).expect("it comes along");
        let net = Localnet::up(&topology).expect("a network of the reference services (needs root and go)");
        let [mut client, mut server] = ["1-ff00:0:110", "1-ff00:0:120"].map(|isd_as| {
            let host = net.host(isd_as).expect("a host");
            Host::new(&host.namespace, isd_as, &host.address.to_string(), &host.daemon.to_string())
        });
        let added = server.namespace.command("ip").args(["address", "add", OWN, "dev", "lo"]).status();
        assert!(added.expect("run ip (iproute2)").success());
        let route = |to: &str, end: &str| format!("[[route]]\n{to}scion = \"{end}\"\n");
        let own = format!("to = \"{OWN}\"\nprotocol = \"udp\"\n");
        client.map(&[route("", &server.end()), route(&own, &server.end())].concat());
        server.map(&route("", &client.end()));
        client.start("");
        server.start("");
        Self { client, server, net }
    }

    /// Step 1.
    fn names_are_found(&self) {
        let long: Vec<String> = (0..8).map(|part| format!("{part}{}", "x".repeat(200))).collect();
        let mut dnsmasq = self.server.namespace.command("dnsmasq");
        dnsmasq.args(["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file="]);
        dnsmasq.args(["--user=root", "--log-facility=-", "--edns-packet-max=4096"]);
        dnsmasq.arg(format!("--address=/{NAME}/{ADDRESS}"));
        dnsmasq.arg(format!("--txt-record=long.example.test,{}", long.join(",")));
        let _dnsmasq =
            Kept(dnsmasq.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("run dnsmasq (dnsmasq-base)"));
        let [surrogate, derived] = self.server.addresses();
        for server in [derived.as_str(), &surrogate, OWN] {
            let late = Instant::now() + PATIENCE;
            loop {
                let mut nslookup = self.client.namespace.command("busybox");
                let asked = nslookup.args(["nslookup", "-type=a", NAME, server]).output().expect("run busybox");
                let said = String::from_utf8_lossy(&asked.stdout).into_owned();
                if said.contains(ADDRESS) {
                    break;
                }
                // The name server may not listen yet, and the first path is still looked for.
                assert!(Instant::now() < late, "{server}: {said}\n{}\n{}", self.client.log(), self.server.log());
                thread::sleep(Duration::from_millis(200));
            }
        }
        // An answer larger than the question, and than the path: it is fragmented, by the shim or by the kernel.
        let question = question("long.example.test", 4096);
        for server in [&derived, &surrogate] {
            let socket = bound(&self.client.namespace, server);
            let to = SocketAddr::new(server.parse().expect("an address"), 53);
            let answer = exchanged(&socket, to, &question);
            assert!(answer.len() > 1600, "{server}: {} bytes", answer.len());
        }
    }

    /// Step 2.
    fn iperf3_loses_little(&self) {
        let server = |namespace: &Namespace| {
            let mut command = namespace.command("iperf3");
            Kept(command.args(["--server"]).stdout(Stdio::null()).spawn().expect("run iperf3"))
        };
        let _server = server(&self.server.namespace);
        let [surrogate, derived] = self.server.addresses();
        for (address, rate, reverse) in
            [(&surrogate, 10, false), (&surrogate, 10, true), (&derived, 50, false), (&surrogate, 50, true)]
        {
            let said = self.iperf3(address, rate, reverse);
            let sum = &said["end"]["sum"];
            let (lost, jitter) = (sum["lost_percent"].as_f64(), sum["jitter_ms"].as_f64());
            let (Some(lost), Some(jitter)) = (lost, jitter) else { panic!("{said}") };
            println!("iperf3 {rate} Mbit/s, reverse {reverse}, {address}: {lost:.2} % lost, jitter {jitter:.3} ms");
            assert!(lost <= MOST_LOST, "{address} at {rate} Mbit/s, reverse {reverse}: {lost} % lost");
            let flows = self.client.status()["connections"].to_string();
            assert!(flows.contains("\"udp\""), "{flows}");
        }
    }

    fn iperf3(&self, address: &str, rate: u32, reverse: bool) -> Value {
        let late = Instant::now() + PATIENCE;
        loop {
            let mut command = self.client.namespace.command("iperf3");
            command.args(["--client", address, "--port", &IPERF3.to_string(), "--udp", "--json", "--time", "3"]);
            command.args(["--bitrate", &format!("{rate}M")]).args(reverse.then_some("--reverse"));
            let output = command.output().expect("run iperf3");
            let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if output.status.success() && said["error"].is_null() {
                return said;
            }
            // It serves one at a time, and may not listen yet.
            assert!(Instant::now() < late, "{said}\n{}\n{}", self.client.log(), self.server.log());
            thread::sleep(Duration::from_millis(300));
        }
    }

    /// Step 3.
    fn large_datagrams_arrive_or_are_refused(&self) {
        for address in self.server.addresses() {
            let server = bound(&self.server.namespace, &address);
            let port = server.local_addr().expect("bound").port();
            let client = bound(&self.client.namespace, &address);
            client.connect(SocketAddr::new(address.parse().expect("an address"), port)).expect("a route");
            server.set_read_timeout(Some(Duration::from_millis(500))).expect("an option");
            let mut got = vec![0; 9000];
            let mut arrives = |bytes: usize| {
                // The first ones tell the kernel of the size, and it cuts the next.
                let late = Instant::now() + PATIENCE;
                while Instant::now() < late {
                    match client.send(&vec![7; bytes]) {
                        Ok(_) => {}
                        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {}
                        Err(error) => panic!("{address}, {bytes} bytes: {error}"),
                    }
                    match server.recv_from(&mut got) {
                        Ok((len, from)) if len == bytes => return from,
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => panic!("{address}, {bytes} bytes: {error}"),
                    }
                }
                panic!("{address}: {bytes} bytes never arrive\n{}\n{}", self.client.log(), self.server.log());
            };
            for bytes in [1200, 1430, 4000, 8000, 100] {
                arrives(bytes);
            }
            let from = arrives(10);
            // And back, from the address that it was sent to: the client's socket takes no other.
            client.set_read_timeout(Some(PATIENCE)).expect("an option");
            server.send_to(b"back", from).expect("it goes");
            assert_eq!(client.recv(&mut got).expect("it comes"), 4);
        }
    }

    /// Step 4.
    fn quic_outlives_a_cut_path_and_restarts(&mut self) {
        let [surrogate, _] = self.server.addresses();
        let (certificate, key) = certificate();
        let server = bound(&self.server.namespace, &surrogate);
        let to = SocketAddr::new(surrogate.parse().expect("an address"), server.local_addr().expect("bound").port());
        let client = bound(&self.client.namespace, &surrogate);
        let taker = thread::spawn(move || runtime().block_on(take(server, certificate.0, key)));
        let roots = certificate_roots(&certificate.1);
        let giver = thread::spawn(move || runtime().block_on(give(client, to, roots)));
        let port = to.port();
        let flow = |host: &Host| {
            let status = host.status();
            let flows = status["connections"].as_array().into_iter().flatten().flat_map(|one| one["flows"].as_array());
            let is_of_quic =
                |flow: &&Value| flow["remote"].as_str().is_some_and(|end| end.ends_with(&format!(":{port}")));
            flows.flatten().find(is_of_quic).cloned()
        };
        let path = |host: &Host| flow(host).and_then(|flow| Some(flow["path"]["hops"].as_str()?.to_owned()));
        self.client.until("the file is under way", |host| path(host).is_some());
        let [one, other] = &self.net.links[..] else { panic!("two links") };
        // Whichever of the two it is on, it is on the second then.
        one.cut().expect("a link");
        thread::sleep(Duration::from_secs(2));
        let before = path(&self.client).expect("it is there");
        one.restore().expect("a link");
        thread::sleep(Duration::from_secs(2));
        other.cut().expect("a link");
        self.client.until("the flow is on the other path", |host| path(host).is_some_and(|now| now != before));
        other.restore().expect("a link");
        thread::sleep(Duration::from_secs(1));
        self.client.signal(Signal::KILL);
        self.client.start("");
        // What waits at one shim for a proof of the other's would be dropped with it.
        let is_under_way = |host: &Host| flow(host).is_some_and(|flow| flow["state"] == "established");
        self.client.until("the file is under way again", is_under_way);
        self.server.signal(Signal::KILL);
        self.server.start("");
        let (given, taken) = (giver.join().expect("it ends in order"), taker.join().expect("it ends in order"));
        assert_eq!((given, taken), (FILE, FILE), "{}\n{}", self.client.log(), self.server.log());
    }
}

/// A socket that is bound to no address, of this one's IP version, in a namespace.
fn bound(namespace: &Namespace, like: &str) -> UdpSocket {
    let any = if like.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    namespace.run(|| UdpSocket::bind(any)).expect("enter the namespace").expect("a socket")
}

/// A question of DNS for TXT records, with this size of answers offered (RFC 1035 section 4, RFC 6891 section 6.1).
fn question(name: &str, most: u16) -> Vec<u8> {
    let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    for label in name.split('.') {
        question.push(label.len() as u8);
        question.extend(label.bytes());
    }
    question.extend([0, 0, 16, 0, 1, 0, 0, 41]);
    question.extend(most.to_be_bytes());
    question.extend([0; 6]);
    question
}

/// What a server answers, asked again as resolvers do.
fn exchanged(socket: &UdpSocket, to: SocketAddr, question: &[u8]) -> Vec<u8> {
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("an option");
    let late = Instant::now() + PATIENCE;
    let mut answer = vec![0; 9000];
    while Instant::now() < late {
        socket.send_to(question, to).expect("it goes");
        if let Ok((len, from)) = socket.recv_from(&mut answer) {
            assert_eq!(from, to, "it comes from where it was asked");
            answer.truncate(len);
            return answer;
        }
    }
    panic!("{to} does not answer");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

type Certificates = (Vec<CertificateDer<'static>>, CertificateDer<'static>);

fn certificate() -> (Certificates, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec![QUIC.to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    ((vec![made.cert.der().clone()], made.cert.der().clone()), key.into())
}

fn certificate_roots(certificate: &CertificateDer<'static>) -> Arc<rustls::RootCertStore> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    Arc::new(roots)
}

/// Longer than a shim takes to start on a busy machine.
fn patient() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(60).try_into().expect("not long")));
    transport.keep_alive_interval(Some(Duration::from_millis(300)));
    Arc::new(transport)
}

async fn take(socket: UdpSocket, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> usize {
    let mut config = ServerConfig::with_single_cert(chain, key).expect("a configuration");
    config.transport_config(patient());
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime));
    let endpoint = endpoint.expect("an endpoint");
    let connection = endpoint.accept().await.expect("a client").await.expect("a handshake");
    let mut stream = connection.accept_uni().await.expect("a stream");
    let mut taken = 0;
    while let Some(chunk) = stream.read_chunk(PART, true).await.expect("it is read") {
        assert!(chunk.bytes.iter().enumerate().all(|(at, byte)| *byte == ((taken + at) % 251) as u8), "at {taken}");
        taken += chunk.bytes.len();
    }
    connection.close(0_u8.into(), b"all of it");
    endpoint.wait_idle().await;
    taken
}

async fn give(socket: UdpSocket, to: SocketAddr, roots: Arc<rustls::RootCertStore>) -> usize {
    let mut config = ClientConfig::with_root_certificates(roots).expect("a configuration");
    config.transport_config(patient());
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime));
    let connecting = endpoint.expect("an endpoint").connect_with(config, to, QUIC).expect("it is right");
    let connection = connecting.await.expect("a handshake");
    let mut stream = connection.open_uni().await.expect("a stream");
    let mut given = 0;
    while given < FILE {
        let part: Vec<u8> = (given..given + PART).map(|at| (at % 251) as u8).collect();
        stream.write_all(&part).await.expect("it is written");
        given += part.len();
        tokio::time::sleep(BETWEEN_PARTS).await;
    }
    stream.finish().expect("it is open");
    connection.closed().await;
    given
}
