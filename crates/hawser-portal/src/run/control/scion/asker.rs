//! Asks a daemon for the paths to one endpoint, again and again, and never holds anything up.
//!
//! 1. It asks which ports routers send to, once.
//! 2. It asks for paths, and tells what it heard.
//! 3. It rests: a minute, less while paths are missing, or until a path is reported as broken; then the daemon is to
//!    ask anew itself.

use std::sync::Arc;
use std::time::Duration;

use hawser_core::units::LinkId;
use hawser_scion::EndpointAddr;
use hawser_scion::daemon::{DaemonClient, DaemonError, Lookup, PortRange, Refresh};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

/// Paths are asked for this often: a lookup of what the daemon knows costs nothing, and paths last for hours.
const EVERY: Duration = Duration::from_secs(60);
/// The same while paths are missing: a network that starts finds them one by one (beacons go every few seconds).
const EVERY_WHILE_MISSING: Duration = Duration::from_secs(2);
/// A daemon that does not answer is asked again after this long at first; twice as long each time that it fails.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// At most this long.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// The daemon asks anew at most this often for broken paths.
const ANEW_EVERY: Duration = Duration::from_secs(1);

/// What was heard. Owned data.
#[derive(Debug)]
pub struct Heard {
    /// For which link.
    pub link: LinkId,
    /// Of the paths to where.
    pub endpoint: EndpointAddr,
    /// The ports that routers send to, where that was told.
    pub ports: Option<PortRange>,
    /// The paths, or why there are none.
    pub lookup: Result<Lookup, Arc<DaemonError>>,
}

/// How the asker is told. Shared by both sides.
#[derive(Debug, Default)]
struct Wishes {
    /// A path broke.
    anew: Notify,
    /// Paths are missing.
    missing: std::sync::atomic::AtomicBool,
}

/// A task that asks. It runs until this is dropped; the control thread owns it.
#[derive(Debug)]
pub struct Asker {
    task: JoinHandle<()>,
    wishes: Arc<Wishes>,
}

impl Asker {
    /// Asks for paths to `endpoint`, inside a tokio runtime.
    pub fn start(client: DaemonClient, link: LinkId, endpoint: EndpointAddr, heard: UnboundedSender<Heard>) -> Self {
        let wishes = Arc::new(Wishes::default());
        let task = tokio::spawn(ask(client, link, endpoint, heard, Arc::clone(&wishes)));
        Self { task, wishes }
    }

    /// A path broke: the daemon is to look for others.
    pub fn ask_anew(&self) {
        self.wishes.anew.notify_one();
    }

    /// Whether paths are missing.
    pub fn set_missing(&self, missing: bool) {
        self.wishes.missing.store(missing, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask(
    client: DaemonClient,
    link: LinkId,
    endpoint: EndpointAddr,
    heard: UnboundedSender<Heard>,
    wishes: Arc<Wishes>,
) {
    let (mut ports, mut refresh, mut retry) = (None, Refresh::No, RETRY_FIRST);
    loop {
        // A daemon of another version may not know; paths are what counts.
        if ports.is_none() {
            ports = client.port_range().await.ok();
        }
        let lookup = client.paths(endpoint.isd_as, refresh).await.map_err(Arc::new);
        let failed = lookup.is_err();
        if heard.send(Heard { link, endpoint, ports, lookup }).is_err() {
            return;
        }
        // The other side looks at what was sent before this one goes on.
        tokio::task::yield_now().await;
        let missing = wishes.missing.load(std::sync::atomic::Ordering::Relaxed);
        let rest = match (failed, missing) {
            (true, _) => retry,
            (false, true) => EVERY_WHILE_MISSING,
            (false, false) => EVERY,
        };
        retry = if failed { (retry * 2).min(RETRY_MAX) } else { RETRY_FIRST };
        refresh = tokio::select! {
            () = tokio::time::sleep(rest) => if missing { Refresh::Yes } else { Refresh::No },
            () = wishes.anew.notified() => {
                tokio::time::sleep(ANEW_EVERY).await;
                Refresh::Yes
            }
        };
    }
}
