//! `serve`, `join`, `leave` and `peer`, as they are typed: from two hosts with nothing to a bond, and back.

mod bond;
mod edited;
mod refused;
mod undone;
mod wrong;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use hawser_portal::api::{Client, PathState};
use hawser_portal::pairing::Token;
use hawser_wire::Namespace;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::home::{HUB, Home, WORLD, run};
use crate::lab::{ms, parse};

/// Where the world listens: what join takes for the internet.
const PROBE: u16 = 7001;
/// How long a process may take to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a command said.
struct Said {
    status: Option<i32>,
    out: String,
    err: String,
    took: Duration,
}

/// A home and a hub without a file, and a world that both reach.
struct Scene {
    home: Home,
}

impl Scene {
    fn new(tag: &str) -> Self {
        let home = Home::new(tag);
        // The links lead to the internet, as they do before anybody bonds them.
        run(&home.router, "nft", "delete table inet leaks");
        for address in WORLD {
            let at = SocketAddr::new(parse(address), PROBE);
            let listener = home.world.run(|| TcpListener::bind(at)).expect("the namespace").expect("a listener");
            // It ends with the test.
            thread::spawn(move || while listener.accept().is_ok() {});
        }
        Self { home }
    }

    /// A configuration of somebody's, in a folder that is not there yet.
    fn file(&self, who: &str) -> PathBuf {
        self.home.folder().join(who).join("hawser.toml")
    }

    /// Runs `hawser` without a terminal.
    fn hawser(&self, namespace: &Namespace, who: &str, words: &str) -> Said {
        self.said(namespace.command(env!("CARGO_BIN_EXE_hawser")), who, words)
    }

    /// The same by a command that runs it.
    fn said(&self, mut command: Command, who: &str, words: &str) -> Said {
        command.args(words.split_whitespace()).arg("-c").arg(self.file(who)).stdin(Stdio::null());
        let start = Instant::now();
        let output = command.output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr), took: start.elapsed() }
    }

    /// The same, where it is to succeed.
    fn done(&self, namespace: &Namespace, who: &str, words: &str) -> Said {
        let said = self.hawser(namespace, who, words);
        assert_eq!(said.status, Some(0), "hawser {words}: {}", said.err);
        said
    }

    /// The hub serves; its first token.
    fn serve(&self) -> String {
        token(&self.done(&self.home.remote, "hub", "serve"))
    }

    fn join(&self, token: &str, more: &str) -> Said {
        self.hawser(&self.home.local, "home", &format!("join {token} --probe {}:{PROBE} {more}", WORLD[0]))
    }

    fn links_of(&self, who: &str) -> Vec<(String, PathState)> {
        let status = Client::status(&self.socket(who)).expect("it runs");
        let paths = status.peers.iter().flat_map(|peer| &peer.paths);
        let mut links: Vec<_> = paths.map(|path| (path.name.clone(), path.state)).collect();
        links.sort_by(|one, other| one.0.cmp(&other.0));
        links
    }

    /// Until all links of the home carry.
    fn wait_for_both_links(&self) {
        let wanted = ["one", "two"].map(|name| (name.to_owned(), PathState::Active));
        let end = Instant::now() + PATIENCE;
        while self.links_of("home") != wanted {
            assert!(Instant::now() < end, "{:?}", self.links_of("home"));
            sleep(ms(20));
        }
    }

    fn socket(&self, who: &str) -> PathBuf {
        self.file(who).with_file_name("hawser.sock")
    }

    /// Ends its portal in the background, if it runs.
    fn end(&self, who: &str) {
        let Ok(stream) = UnixStream::connect(self.socket(who)) else { return };
        let Ok(credentials) = socket_peercred(&stream) else { return };
        let Ok(process) = pidfd_open(credentials.pid, PidfdFlags::empty()) else { return };
        // It may have ended by itself.
        let _ = pidfd_send_signal(&process, Signal::TERM);
        let patience = PATIENCE.try_into().expect("it is short");
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience));
        assert!(ended == Ok(1) || thread::panicking(), "the portal of {who} does not end");
    }
}

impl Drop for Scene {
    /// Portals in the background end with the test.
    fn drop(&mut self) {
        ["home", "hub", "other"].iter().for_each(|who| self.end(who));
    }
}

/// The token that a command printed.
fn token(said: &Said) -> String {
    let token = said.out.trim().strip_prefix("sudo hawser join ").unwrap_or_else(|| panic!("no token: {}", said.out));
    assert!(token.parse::<Token>().is_ok(), "{token}");
    token.to_owned()
}

/// A shell that somebody in the world has at the home, by the address of an uplink.
struct Shell {
    there: TcpStream,
    here: TcpStream,
}

impl Shell {
    fn new(home: &Home, address: &str, port: u16) -> Self {
        let at = SocketAddr::new(parse(address), port);
        let listener = home.local.run(|| TcpListener::bind(at)).expect("the namespace").expect("a listener");
        let there = home.world.run(|| TcpStream::connect_timeout(&at, PATIENCE)).expect("the namespace");
        Self {
            there: there.unwrap_or_else(|error| panic!("call {at}: {error}")),
            here: listener.accept().expect("a call").0,
        }
    }

    fn assert_lives(&mut self, when: &str) {
        use std::io::{Read as _, Write as _};
        for (from, to) in [(&self.there, &self.here), (&self.here, &self.there)] {
            let (mut from, mut to) = (from, to);
            to.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            from.write_all(b"uptime").expect("it is sent");
            to.read_exact(&mut [0; 6]).unwrap_or_else(|error| panic!("the shell is dead {when}: {error}"));
        }
    }
}
