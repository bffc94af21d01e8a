//! Who looks at the local portal while it works, as its owner would: the page in a browser, `hawser top`, and
//! Prometheus.
//!
//! 1. The page is opened by the link that `hawser web` prints; the portal says when it is live. Its browser is on this
//!    machine, or on another one: then a reader asks for the same, and draws nothing.
//! 2. `hawser top` draws into a terminal of its own.
//! 3. `/metrics` is read once a second.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use super::{GLANCE, PATIENCE, Portals};
use crate::error::LabError;
use crate::process::Process;
use crate::wait::until;

/// What a portal that is watched is told, besides. Both are its own loopback.
pub(crate) const WATCHED: &str = "\n[web]\nlisten = \"127.0.0.1:4921\"\n\n[metrics]\nlisten = \"127.0.0.1:9492\"\n";
/// A browser without a window, which stays although nobody steers it.
const BROWSER: &str = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                       --disable-background-networking --disable-component-update --disable-extensions \
                       --remote-debugging-port=0 --user-data-dir=\"$1\" \"$2\"";
/// What the page asks for: all it remembers, the stream, and the flows every two seconds. Source: `web/page/page.js`.
const READER: &str = "origin=${2%/#login=*}; login=\"{\\\"token\\\": \\\"${2#*#login=}\\\"}\"
    ask() { curl --silent --fail --cookie-jar \"$jar\" --cookie \"$jar\" --header \"origin: $origin\" \"$@\" > /dev/null; }
    jar=$1
    ask --header content-type:application/json --data \"$login\" $origin/api/login || exit 1
    ask $origin/api/history?span=hour && ask $origin/api/events || exit 1
    ask --no-buffer $origin/api/stream &
    while sleep 2; do ask $origin/api/flows || exit 1; done";
/// A terminal of 80 columns and 24 lines.
const TERMINAL: &str =
    "exec script --quiet --flush --command \"stty cols 80 rows 24; exec '$1' top --socket '$2'\" \"$3\"";
/// How long a browser takes, once its first page is shown, until it does no more than show it.
const CALM: Duration = Duration::from_secs(6);
/// What Prometheus does, without what it keeps.
const SCRAPER: &str = "while sleep 1; do curl --silent --fail http://127.0.0.1:9492/metrics > \"$1\" || exit 1; done";

/// Where the page's browser is. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Browser {
    /// On this machine.
    Here,
    /// On another, whose processors are its own.
    Elsewhere,
}

impl Portals {
    /// All steps, in the local portal's namespace; returns once the page is live. What does not start tells why.
    pub(crate) fn watch(&mut self, browser: Browser) -> Result<(), LabError> {
        let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let file = |name: &str| path(&self.folder.path().join(name));
        let (program, socket, link) = (path(&self.program), path(&self.local.socket), self.login_link()?);
        let watchers = [
            ("page", if browser == Browser::Here { BROWSER } else { READER }, vec![file("page"), link]),
            ("terminal", TERMINAL, vec![program, socket, file("typescript")]),
            ("scraper", SCRAPER, vec![file("metrics")]),
        ];
        for (name, script, arguments) in watchers {
            let mut command = self.local.host.command("/bin/sh");
            command.args(["-c", script, name]).args(arguments).env("TERM", "xterm-256color");
            self.watchers.push(Process::launch(name, command, Stdio::null(), &self.folder)?);
        }
        self.wait_seen()?;
        sleep(CALM);
        Ok(())
    }

    /// Step 1: who asks at the portal's control socket may log in.
    pub(crate) fn login_link(&self) -> Result<String, LabError> {
        let mut command = self.local.host.command(&self.program.to_string_lossy());
        let output = command.args(["web", "--socket"]).arg(&self.local.socket).output();
        let output = output.map_err(|error| LabError::system("ask for a link to the page", error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(self.local.process.fault(format!("no link to its page: {}", said.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Until the portal says that its page is open, and a scrape came; all of them must run still.
    fn wait_seen(&mut self) -> Result<(), LabError> {
        let metrics = self.folder.path().join("metrics");
        let (mut pages, mut is_scraped) = (None, false);
        let seen = until(PATIENCE, GLANCE, || {
            self.watchers.iter_mut().try_for_each(Process::check)?;
            pages = self.local.status().and_then(|status| status.web).map(|web| web.streams);
            is_scraped = metrics.metadata().is_ok_and(|file| file.len() > 0);
            Ok((pages.is_some_and(|pages| pages > 0) && is_scraped).then_some(()))
        })?;
        let unseen = || self.local.process.fault(format!("nobody sees it: pages {pages:?}, scraped {is_scraped}"));
        seen.ok_or_else(unseen)
    }
}
