//! Hosts with a shim, a page that one serves, and curl.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

const HAWSER: &str = env!("CARGO_BIN_EXE_hawser");
/// The shim's port of all: one that routers deliver to (`dispatched_ports`).
const PORT: u16 = 31_000;
/// The server's.
pub const WEB: u16 = 8080;
/// What the server has.
const PAGE: usize = 300_000;
/// Within this anything happens, on a loaded machine too.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A host with a shim. Ended on drop, where the test has not ended it; one owner.
pub struct Host {
    pub namespace: Namespace,
    isd_as: String,
    address: String,
    daemon: String,
    folder: tempfile::TempDir,
    pub shim: Option<Child>,
}

impl Host {
    pub fn new(namespace: &Namespace, isd_as: &str, address: &str, daemon: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let [isd_as, address, daemon] = [isd_as, address, daemon].map(str::to_owned);
        Self { namespace: namespace.clone(), isd_as, address, daemon, folder, shim: None }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn end(&self) -> String {
        format!("{},{}:{PORT}", self.isd_as, self.address)
    }

    /// Starts a shim with these lines more, and waits until it is ready.
    pub fn start(&mut self, more: &str) {
        let config = format!(
            "[shim]\nlocal = \"{}\"\ndaemon = \"{}\"\ncontrol = \"{}\"\nmap = \"{}\"\n{more}",
            self.end(),
            self.daemon,
            self.file("sock").display(),
            self.file("map.toml").display(),
        );
        fs::write(self.file("shim.toml"), config).expect("it can be written");
        if !self.file("map.toml").exists() {
            self.map("");
        }
        let log = fs::OpenOptions::new().append(true).create(true).open(self.file("log")).expect("a log");
        let mut command = self.namespace.command(HAWSER);
        command.args(["shim", "-c"]).arg(self.file("shim.toml")).env("HAWSER_LOG", "info,hawser_shim=debug");
        let before = self.log().matches(" ready").count();
        self.shim = Some(command.stderr(log).spawn().expect("it starts"));
        self.until("a shim that is ready", |host| host.log().matches(" ready").count() > before);
    }

    pub fn map(&self, text: &str) {
        // As an editor does it.
        fs::write(self.file("map.new"), text)
            .and_then(|()| fs::rename(self.file("map.new"), self.file("map.toml")))
            .expect("a map");
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "waited for {what}; {} says:\n{}", self.address, self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn status(&self) -> Value {
        let mut command = self.namespace.command(HAWSER);
        let output = command.args(["shim", "status", "--json", "--socket"]).arg(self.file("sock")).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), self.log());
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    pub fn signal(&mut self, signal: Signal) {
        let mut shim = self.shim.take().expect("it runs");
        kill_process(Pid::from_child(&shim), signal).expect("it runs");
        let status = shim.wait().expect("it ends");
        assert_eq!(status.success(), signal == Signal::TERM, "{status}\n{}", self.log());
    }

    /// Its addresses for servers, IPv6 and IPv4.
    pub fn addresses(&self) -> [String; 2] {
        let output = Command::new(HAWSER).args(["shim", "address", &self.end()]).output().expect("it runs");
        let said = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<String> = said.lines().map(str::to_owned).collect();
        lines.try_into().unwrap_or_else(|lines| panic!("{lines:?}"))
    }

    /// Waits until the system is as it was before.
    pub fn until_as_before(&self, before: &str) {
        let begun = Instant::now();
        loop {
            let now = self.system();
            if now == before {
                return;
            }
            let more: Vec<&str> = now.lines().filter(|line| !before.contains(line)).collect();
            let less: Vec<&str> = before.lines().filter(|line| !now.contains(line)).collect();
            assert!(begun.elapsed() < PATIENCE, "left behind: {more:#?}\nmissing: {less:#?}\n{}", self.log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn ip(&self, question: &str) -> String {
        let output = self.namespace.command("ip").args(question.split(' ')).output().expect("run ip (iproute2)");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// All that a shim changes in its host, as others see it. The kernel tells in its own time that a link which was
    /// just set up has a carrier: before, the link and its routes are shown without.
    pub fn system(&self) -> String {
        self.until("links with a carrier", |host| !host.ip("link").contains("NO-CARRIER"));
        let questions =
            ["link", "addr", "-4 route show table all", "-6 route show table all", "rule", "-6 rule", "mptcp endpoint"];
        let mut seen: String = questions.iter().map(|question| self.ip(question)).collect();
        let mut settings = self.namespace.command("sysctl");
        settings.args(["-a", "--pattern", "^net\\.(mptcp|ipv[46]\\.conf)"]).stderr(Stdio::null());
        seen += &String::from_utf8_lossy(&settings.output().expect("run sysctl (procps)").stdout);
        // Link-local addresses of the host's own come and are usable in the kernel's own time.
        let of_link = |line: &&str| ["fe80:", "ff00::", "valid_lft"].iter().any(|word| line.contains(word));
        seen.lines().filter(|line| !of_link(line)).map(|line| format!("{line}\n")).collect()
    }
}

impl Host {
    /// A connection over MPTCP, over which data has gone both ways: from then on subflows may join it (RFC 8684
    /// section 3.1).
    pub fn connect(&self, address: &str) -> TcpStream {
        let address: IpAddr = address.parse().expect("an address");
        let connect = || {
            let socket =
                Socket::new(Domain::for_address(SocketAddr::new(address, WEB)), Type::STREAM, Some(Protocol::MPTCP));
            let socket = socket.expect("a kernel with mptcp");
            socket.connect_timeout(&SocketAddr::new(address, WEB).into(), PATIENCE).expect("it connects");
            TcpStream::from(socket)
        };
        let mut stream = self.namespace.run(connect).expect("enter the namespace");
        stream.write_all(b"GET").expect("a question");
        stream.read_exact(&mut [0; 15]).expect("the beginning of an answer");
        stream
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut shim) = self.shim.take() {
            let _ = shim.kill();
            let _ = shim.wait();
        }
    }
}

/// Serves a page over MPTCP, this many times.
pub fn web_server(host: &Host, times: usize) -> JoinHandle<()> {
    let listen = || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::MPTCP)).expect("a kernel with mptcp");
        socket.set_reuse_address(true).expect("an option");
        socket
            .bind(&"[::]:8080".parse::<std::net::SocketAddr>().expect("an address").into())
            .expect("the port is free");
        socket.listen(8).expect("it listens");
        TcpListener::from(socket)
    };
    let listener = host.namespace.run(listen).expect("enter the namespace");
    thread::spawn(move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 4096]).expect("a question");
            write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {PAGE}\r\n\r\n").expect("an answer");
            // It is the client who closes, `connect`'s in the middle of the page; who wants it all sees for himself.
            let _ = stream.write_all(&vec![b'x'; PAGE]).and_then(|()| stream.read(&mut [0; 1]));
        }
    })
}

pub fn curl(host: &Host, address: &str) -> Output {
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let mut command = host.namespace.command(HAWSER);
    command.args(["shim", "run", "curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*"]);
    command.arg(format!("http://{address}:{WEB}/")).output().expect("run curl")
}

pub fn fetched(from: &Host, address: &str, other: &Host) {
    let output = curl(from, address);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{address}: {said}\n{}\n{}", from.log(), other.log());
    assert_eq!(output.stdout.len(), PAGE, "{address}");
}
