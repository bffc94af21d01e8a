//! A page that shows the portal, and the server of it (docs/monitoring.md).
//!
//! 1. The control thread opens it: where `[web]` says, or on the loopback when `hawser web` asks ([`Web::open`]). It
//!    runs on a thread of its own, without any capability, and behind others where the system lets it (the packaged
//!    unit does not), so that no request holds up a link.
//! 2. Connections are a bounded number, and requests are bounded in size and time (`server`).
//! 3. Each request is looked at before what it asks for is (`guard`): whose page asks, by which name.
//! 4. What a page is made of is a fixed table (`assets`); all else needs a session (`access`, `site`).
//! 5. What there is to see comes from the same memory as on the control socket, and as server-sent events (`stream`);
//!    what is to be done goes to the control thread. 6. Everything refused is counted (`refusals`).

mod access;
mod assets;
mod guard;
mod refusals;
mod server;
mod site;
mod stream;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::oneshot;

use crate::api::{Answers, FlowQuestions, Orders, WebStatus};
use site::Site;

/// Where it listens unless `[web]` says otherwise.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4921);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 256;
/// It comes after what carries packets (nice(2)).
const NICE: i32 = 10;
/// Its thread's name.
const THREAD: &str = "hawser-web";

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address is not to be had.
    #[error("listen for web page on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// There is no thread for it.
    #[error("start web page")]
    Start(#[source] io::Error),
}

/// A page that is served. It ends when this is dropped; the control thread owns it.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    site: Arc<Site>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Begins to serve what `answers` has; what pages ask for goes to `orders`, and who looks at flows is heard by
    /// `flows`.
    ///
    /// # Errors
    /// [`WebError`] where the address is taken or forbidden, or there is no thread.
    pub fn open(
        address: SocketAddr,
        answers: Arc<dyn Answers>,
        orders: Orders,
        flows: FlowQuestions,
    ) -> Result<Self, WebError> {
        let listener = listen(address).map_err(|source| WebError::Listen { address, source })?;
        let address = listener.local_addr().map_err(WebError::Start)?;
        let site = Arc::new(Site::new(address.port(), answers, orders, flows).map_err(WebError::Start)?);
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&site);
        let work = move || work(listener, shared, stopped);
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(work).map_err(WebError::Start)?;
        tracing::info!(%address, "web page");
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "web page is not encrypted: who listens on the way sees it, unless that is the tunnel");
        }
        Ok(Self { address, site, stop: Some(stop), thread: Some(thread) })
    }

    /// A link that logs a browser in, once.
    pub fn link(&self) -> String {
        format!("http://{}/#login={}", shown(self.address), self.site.issue())
    }

    /// What there is to say of it.
    pub fn status(&self) -> WebStatus {
        self.site.status(self.address)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("web page's thread panicked");
        }
    }
}

/// What a browser on this host asks for: an address that stands for all is that of the loopback.
fn shown(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(DEFAULT_ADDRESS.ip(), address.port()),
        _ => address,
    }
}

/// The address may come later: a tunnel's, an interface's.
fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// What the thread does.
fn work(listener: std::net::TcpListener, site: Arc<Site>, stopped: oneshot::Receiver<()>) {
    if let Err(error) = hawser_net::powers::at_rest(&caps::CapsHashSet::new()) {
        return tracing::error!(%error, "web page not served: capabilities are not given up");
    }
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "web page is not behind others");
    }
    let serve = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::select! {
                () = server::serve(listener, Arc::clone(&site)) => {}
                () = stream::publish(&site) => {}
                _ = stopped => {}
            }
            Ok::<_, io::Error>(())
        })
    };
    if let Err(error) = serve() {
        tracing::error!(%error, "web page not served");
    }
}
