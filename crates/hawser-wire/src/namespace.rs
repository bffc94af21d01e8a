//! A network namespace of our own.
//!
//! 1. `new` takes a free name `hw-<tag>-<pid>-<n>`, and makes the file under /run/netns.
//! 2. A thread of its own leaves for a new namespace and binds it to that file, so that `ip netns` sees it.
//! 3. Loopback is brought up.
//! 4. Closures, threads and commands enter by `setns`; the calling thread never changes namespace.
//! 5. The last clone that drops unmounts and removes the file; processes still inside keep theirs alive.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::error::WireError;
use crate::folder;
use crate::sweep::{self, NETNS_DIRECTORY};

/// The name of the namespace that a thread is in. Source: proc(5).
const OWN_NETNS: &str = "/proc/thread-self/ns/net";

/// Counts the namespaces of this process, for their names.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A network namespace made by this process, or opened by name.
/// It starts with loopback up and nothing else, and is removed when its last clone drops (not if opened).
/// Clones name the same namespace and may be used from any thread.
#[derive(Clone, Debug)]
pub struct Namespace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    file: OwnedFd,
    owned: bool,
}

impl Namespace {
    /// Makes a namespace named `hw-<tag>-<pid>-<n>`.
    ///
    /// # Errors
    /// Where the process may not make namespaces (it needs root), or /run/netns cannot be written.
    pub fn new(tag: &str) -> Result<Self, WireError> {
        let action = |name: &str| format!("make namespace {name} (needs root)");
        folder::prepare().map_err(|error| WireError::system(action(tag), error))?;
        let name = reserve_name(tag).map_err(|error| WireError::system(action(tag), error))?;
        let bound = thread::scope(|scope| scope.spawn(|| bind_new(&name)).join());
        let file = match bound.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(file) => file,
            Err(error) => {
                let refused = WireError::system(action(&name), error);
                sweep::remove(&name).map_err(|error| WireError::system(format!("remove {name}"), error))?;
                return Err(refused);
            }
        };
        let namespace = Self(Arc::new(Inner { name, file, owned: true }));
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// Opens a namespace that exists under /run/netns; it is not removed on drop.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn open(name: &str) -> Result<Self, WireError> {
        let file = File::open(format!("{NETNS_DIRECTORY}/{name}"))
            .map_err(|error| WireError::system(format!("open namespace {name}"), error))?;
        Ok(Self(Arc::new(Inner { name: name.to_owned(), file: file.into(), owned: false })))
    }

    /// The name under /run/netns.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Runs `work` on a thread inside the namespace and waits for it. A panic goes on in the caller.
    ///
    /// # Errors
    /// Where the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, WireError> {
        let inside = || {
            self.enter()?;
            Ok(work())
        };
        thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a thread that lives inside the namespace: a thread is born where its maker is.
    ///
    /// # Errors
    /// Where the thread cannot start or the namespace cannot be entered.
    pub fn spawn_thread<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, WireError> {
        let builder = thread::Builder::new().name(name.to_owned());
        self.run(|| builder.spawn(work))?
            .map_err(|error| WireError::system(format!("start thread {name} in {}", self.name()), error))
    }

    /// A command that will start inside the namespace, by nsenter(1), which becomes the program. It is started while a
    /// clone of the namespace lives.
    ///
    /// Entering in the child itself would have this process forked: its memory is copied lazily then, and each thread that
    /// writes next waits. Beside emulated links that stops all of them for tens of milliseconds.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        if !is_there(program) {
            // nsenter would be found, and would fail later: this fails as the program itself.
            return Command::new(Path::new("/nowhere").join(program.trim_start_matches('/')));
        }
        let mut command = Command::new("nsenter");
        // By its name it would not be found where the caller gives the program a /run of its own.
        command.arg(format!("--net=/proc/{}/fd/{}", std::process::id(), self.as_fd().as_raw_fd())).arg(program);
        command
    }

    /// Moves the calling thread into the namespace for good.
    fn enter(&self) -> Result<(), WireError> {
        move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| WireError::system(format!("enter namespace {} (needs root)", self.name()), error))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owned
            && let Err(error) = sweep::remove(&self.name)
        {
            tracing::warn!(namespace = self.name, %error, "remove namespace");
        }
    }
}

/// Whether execvp(3) would find a program.
fn is_there(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(program));
    if program.contains('/') { Path::new(program).exists() } else { places.any(|place| place.is_file()) }
}

/// Step 1: a name that no file has yet, with its file.
fn reserve_name(tag: &str) -> io::Result<String> {
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = sweep::name(tag, std::process::id(), number);
        match File::create_new(format!("{NETNS_DIRECTORY}/{name}")) {
            Ok(_) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Step 2, on a thread that ends afterwards: a new namespace, bound to its file.
fn bind_new(name: &str) -> io::Result<OwnedFd> {
    // SAFETY: only this thread's network namespace changes; it holds no descriptor that depends on it.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
    sweep::bind(OWN_NETNS, name)?;
    Ok(File::open(OWN_NETNS)?.into())
}
