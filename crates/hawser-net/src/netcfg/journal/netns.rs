//! Which network namespace a thread is in, told from every other of this boot, dead ones too.

use std::{
    fmt, fs, io, mem,
    os::{
        fd::AsRawFd,
        unix::{fs::MetadataExt, net::UnixDatagram},
    },
};

use serde::{Deserialize, Serialize};

/// The calling thread's network namespace; /proc/self would be the main thread's (namespaces(7)).
const NETNS: &str = "/proc/thread-self/ns/net";
/// Asks for the cookie of a socket's namespace (asm-generic/socket.h, linux 5.14; the libc crate does not have it).
const SO_NETNS_COOKIE: libc::c_int = 71;

/// A network namespace. There is no default. A plain value, freely shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Netns {
    /// By a number that is not given again within one boot.
    Cookie(u64),
    /// By its inode number on nsfs, which the kernel gives again once the namespace is gone.
    Inode(u64),
}

impl Netns {
    /// The calling thread's; by its inode where the kernel knows no cookies.
    pub(super) fn of_this_thread() -> io::Result<Self> {
        match cookie() {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => inode(),
            cookie => cookie,
        }
    }

    /// Whether no other namespace of this boot has or had it.
    pub(super) fn is_unique(self) -> bool {
        matches!(self, Self::Cookie(_))
    }
}

impl fmt::Display for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cookie(cookie) => cookie.fmt(f),
            Self::Inode(inode) => write!(f, "inode-{inode}"),
        }
    }
}

fn inode() -> io::Result<Netns> {
    Ok(Netns::Inode(fs::metadata(NETNS)?.ino()))
}

fn cookie() -> io::Result<Netns> {
    // Any socket will do: it belongs to the namespace of the thread that makes it.
    let socket = UnixDatagram::unbound()?;
    let mut cookie = 0_u64;
    let mut length = mem::size_of::<u64>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes, which is what `cookie` has.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(Netns::Cookie(cookie)) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::thread::UnshareFlags;

    use super::*;

    fn of_a_new_one() -> (Netns, Netns) {
        let asked = || {
            // SAFETY: only the network namespace of this thread changes, and no descriptor or memory is shared less.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.expect("this test needs root");
            (Netns::of_this_thread().unwrap(), inode().unwrap())
        };
        thread::spawn(asked).join().unwrap()
    }

    #[test]
    fn a_namespace_keeps_its_cookie_and_no_other_gets_it() {
        let here = Netns::of_this_thread().unwrap();
        assert_eq!(here, Netns::of_this_thread().unwrap());
        let mut seen = vec![here];
        // Each is gone before the next: the kernel may well give the same inode again, and never the same cookie.
        for _ in 0..20 {
            let (netns, _) = of_a_new_one();
            assert!(netns.is_unique() && !seen.contains(&netns), "{netns} after {seen:?}");
            seen.push(netns);
        }
    }

    #[test]
    fn inodes_are_told_from_cookies() {
        let (cookie, inode) = of_a_new_one();
        assert!(cookie.is_unique() && !inode.is_unique());
        assert!(inode.to_string().starts_with("inode-"), "{inode}");
        assert!(cookie.to_string().parse::<u64>().is_ok(), "{cookie}");
        for netns in [cookie, inode] {
            let json = serde_json::to_string(&netns).unwrap();
            assert_eq!(serde_json::from_str::<Netns>(&json).unwrap(), netns);
        }
    }
}
