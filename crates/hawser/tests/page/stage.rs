//! A bond of two emulated links, a transfer over it, and a browser beside the local portal.

use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_wire::traffic::{Congestion, RunningTcp, TcpTransfer};
use hawser_wire::{Direction, EmulatedLink};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::lab::{LINKS, Lab, Portal, REMOTE, ms};

/// How long anything may take to happen on a loaded machine, where nothing is promised.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// What is promised: whatever happens is on the page within two seconds.
pub const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// From one look to the next.
const GLANCE: Duration = Duration::from_millis(25);
/// The links of the bond.
pub const LINK_MBPS: f64 = 20.0;

/// A bond of which the page is open. Ended on drop, the browser first.
pub struct Stage {
    pub browser: Browser,
    pub local: Portal,
    _remote: Portal,
    pub links: [EmulatedLink; 2],
    pub lab: Lab,
}

impl Stage {
    /// Both portals with all paths active, and the page open and live.
    pub fn new(tag: &str, prepare: impl FnOnce(&Lab)) -> Self {
        let lab = Lab::new(tag, "");
        let links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(LINK_MBPS, ms(10), ms(100))));
        prepare(&lab);
        let (local, remote) = lab.start_both();
        let browser = browser_beside(&lab);
        let mut stage = Self { browser, local, _remote: remote, links, lab };
        stage.log_in();
        stage.wait("the page to be live", "document.getElementById('live').dataset.is === 'live'");
        stage
    }

    /// Opens the page by the link that `hawser web` prints.
    pub fn log_in(&mut self) {
        let link = link_of(&self.local);
        self.browser.open(&link);
    }

    /// A stream from the local host to the remote one.
    pub fn transfer(&self, duration: Duration) -> RunningTcp {
        let destination = format!("{REMOTE}:5000").parse().expect("an address");
        let (from, to) = (self.lab.local.clone(), self.lab.remote.clone());
        let transfer = TcpTransfer { from, to, destination, source: None, congestion: Congestion::Cubic, duration };
        transfer.start().expect("a transfer")
    }

    /// Until an expression holds in the page; how long that took.
    pub fn wait(&mut self, what: &str, expression: &str) -> Duration {
        let start = Instant::now();
        while self.browser.evaluate(expression) != json!(true) {
            let page = "document.body.innerText";
            assert!(
                start.elapsed() < PATIENCE,
                "waited for {what} in vain:\n{}\n{}",
                self.browser.evaluate(page),
                self.local.log()
            );
            sleep(GLANCE);
        }
        start.elapsed()
    }

    /// Until the page's first sentence is this.
    pub fn wait_for_verdict(&mut self, verdict: &str) -> Duration {
        self.wait(verdict, &format!("document.getElementById('verdict').textContent === {}", json!(verdict)))
    }

    /// Until an event is told in these words.
    pub fn wait_for_event(&mut self, words: &str) -> Duration {
        let events = "[...document.querySelectorAll('#events b')]";
        self.wait(words, &format!("{events}.some((said) => said.textContent === {})", json!(words)))
    }

    /// All text of the page.
    pub fn text(&mut self) -> String {
        match self.browser.evaluate("document.body.innerText") {
            Value::String(text) => text,
            other => panic!("{other}"),
        }
    }
}

/// A browser in the local host's namespace.
pub fn browser_beside(lab: &Lab) -> Browser {
    lab.local.run(Browser::start).expect("the namespace can be entered")
}

/// What `hawser web` prints.
pub fn link_of(portal: &Portal) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    let output = command.args(["web", "--socket"]).arg(&portal.socket).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Where pictures are kept.
#[cfg_attr(not(feature = "page-test"), expect(dead_code, reason = "only the thorough test takes pictures"))]
pub fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}
