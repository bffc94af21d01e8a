//! Where the kernel keeps the bypass when nobody has it open: a folder of the BPF file system for each network
//! namespace.
//!
//! 1. The file system is found, or mounted. Under `ip netns exec` the one at /sys/fs/bpf is hidden, and one mounted
//!    there would go with the command: that of the eldest ancestor is used, mostly process 1. 2. The folder is named
//!    after the namespace's cookie, which never comes back.
//! 3. Whoever changes anything holds a lock on the folder above. 4. Folders of namespaces that are gone are removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::iter;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statfs};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketType, socket};

use super::XdpError;
use super::interfaces::Index;

/// The BPF file system: where it belongs, and its number (linux/magic.h, BPF_FS_MAGIC).
const BPFFS: &str = "/sys/fs/bpf";
const BPFFS_MAGIC: u32 = 0xcafe_4a11;
/// Our folder there; the kernel allows no dots in names.
const FOLDER: &str = "hawser";
/// Everybody may look for the whitelist; its own permissions say who may change it.
const FOLDER_MODE: u32 = 0o755;
/// What a link's name begins with; its interface's index follows.
const LINK: &str = "link_";
/// SO_NETNS_COOKIE (asm-generic/socket.h, Linux 5.14), which the `libc` crate lacks.
const SO_NETNS_COOKIE: libc::c_int = 71;
/// bpf(2): the commands that open a pinned object, and that take a link's program off at once (linux/bpf.h,
/// `enum bpf_cmd`).
const BPF_OBJ_GET: libc::c_int = 7;
const BPF_LINK_DETACH: libc::c_int = 34;

/// The folder of one network namespace. It may hold nothing, or not be there. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pins {
    folder: PathBuf,
}

/// Nobody else changes any bypass while this is held. It begins when nobody does. One owner.
#[derive(Debug)]
pub(super) struct Lock {
    _folder: File,
}

/// The arguments of bpf(2) that open a pinned object, and take a program off (linux/bpf.h, `union bpf_attr`). Plain
/// data.
#[repr(C)]
struct OpenArgument {
    path: u64,
    descriptor: u32,
    flags: u32,
}
#[repr(C)]
struct DetachArgument {
    link: u32,
}

impl Pins {
    /// Those of the calling thread's network namespace, unless there is no BPF file system at all.
    pub(super) fn find() -> Result<Option<Pins>, XdpError> {
        let Some(root) = mounted() else { return Ok(None) };
        Ok(Some(Pins { folder: root.join(FOLDER).join(namespace_cookie()?.to_string()) }))
    }

    /// The same; file system and folder are made where they are not there.
    pub(super) fn make() -> Result<(Pins, Lock), XdpError> {
        let root = match mounted() {
            Some(root) => root,
            None => mount_it()?,
        };
        let pins = Pins { folder: root.join(FOLDER).join(namespace_cookie()?.to_string()) };
        make_folder(&root.join(FOLDER))?;
        let lock = Lock::take(&root.join(FOLDER))?;
        make_folder(&pins.folder)?;
        Ok((pins, lock))
    }

    /// Step 3, where the folder is there.
    pub(super) fn lock(&self) -> Result<Lock, XdpError> {
        Lock::take(self.above())
    }

    /// The program.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("dispatch")
    }

    /// Its maps.
    pub(super) fn whitelist(&self) -> PathBuf {
        self.folder.join("whitelist")
    }

    /// Its maps.
    pub(super) fn counters(&self) -> PathBuf {
        self.folder.join("counters")
    }

    /// What holds the program on an interface.
    pub(super) fn link(&self, interface: Index) -> PathBuf {
        self.folder.join(format!("{LINK}{}", interface.0))
    }

    /// The interfaces that the program was put on, some of which may be gone.
    pub(super) fn links(&self) -> Result<Vec<Index>, XdpError> {
        let names = list(&self.folder)?;
        let index = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix(LINK)?.parse().ok();
        Ok(names.iter().filter_map(index).map(Index).collect())
    }

    /// Takes the program off an interface, if it is there. To remove the file alone would do so too, but some time
    /// later.
    pub(super) fn unlink(&self, interface: Index) -> Result<(), XdpError> {
        let path = self.link(interface);
        let failed = |source| XdpError::file("remove", &path, source);
        match open(&path) {
            Ok(link) => {
                take_off(&link).map_err(failed)?;
                fs::remove_file(&path).map_err(failed)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(failed(source)),
        }
    }

    /// Removes everything, and with the last of it the program goes.
    pub(super) fn remove(&self) -> Result<(), XdpError> {
        remove_folder(&self.folder)
    }

    /// Step 4. Only what has links is judged, and every one of them must have lost its interface.
    pub(super) fn sweep(&self, _lock: &Lock) -> Result<(), XdpError> {
        for folder in list(self.above())?.into_iter().filter(|folder| *folder != self.folder) {
            let other = Pins { folder };
            let links = other.links()?;
            if !links.is_empty() && links.iter().all(|&link| is_dead(&other.link(link))) {
                other.remove()?;
            }
        }
        Ok(())
    }

    fn above(&self) -> &Path {
        self.folder.parent().expect("it is inside of our folder")
    }
}

impl Lock {
    fn take(folder: &Path) -> Result<Lock, XdpError> {
        let failed = |source| XdpError::file("lock", folder, source);
        let file = File::open(folder).map_err(failed)?;
        flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        Ok(Lock { _folder: file })
    }
}

/// Step 1: where a BPF file system is mounted that outlives us.
fn mounted() -> Option<PathBuf> {
    let path = home().map_or_else(|| PathBuf::from(BPFFS), |root| root.join(&BPFFS[1..]));
    // A long, whose length is the processor's.
    let is_bpffs = statfs(&path).is_ok_and(|found| found.f_type.to_le_bytes().starts_with(&BPFFS_MAGIC.to_le_bytes()));
    is_bpffs.then_some(path)
}

/// Step 1: where it is not mounted yet.
fn mount_it() -> Result<PathBuf, XdpError> {
    let path = PathBuf::from(BPFFS);
    if home().is_some() {
        return Err(XdpError::Hidden { path });
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
    match mount("bpf", BPFFS, "bpf", flags, None) {
        Ok(()) => Ok(path),
        Err(errno) => Err(XdpError::Mount { path, source: errno.into() }),
    }
}

/// The root of the eldest ancestor that we may look at, where its mounts are not ours: what is mounted here goes with
/// us.
fn home() -> Option<PathBuf> {
    let ours = fs::read_link("/proc/self/ns/mnt").ok()?;
    let mounts = |process: &u32| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let ancestors: Vec<u32> = iter::successors(Some(std::process::id()), |&process| parent(process)).collect();
    let (eldest, theirs) = ancestors.iter().rev().find_map(|process| Some((process, mounts(process)?)))?;
    (theirs != ours).then(|| PathBuf::from(format!("/proc/{eldest}/root")))
}

/// A process's parent (proc_pid_status); the first process has none.
fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    (parent != 0).then_some(parent)
}

/// Step 2.
fn namespace_cookie() -> Result<u64, XdpError> {
    let failed = |source| XdpError::Netlink { operation: "tell network namespaces apart (Linux 5.14)".into(), source };
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None).map_err(|errno| failed(errno.into()))?;
    let mut cookie = 0u64;
    let mut size = mem::size_of_val(&cookie) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `size` bytes to where `cookie` lives.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, (&raw mut cookie).cast(), &raw mut size)
    };
    if done == 0 { Ok(cookie) } else { Err(failed(io::Error::last_os_error())) }
}

/// Whether a pinned link's interface is gone: the kernel shows index 0 then.
fn is_dead(link: &Path) -> bool {
    let shown = open(link).and_then(|link| fs::read_to_string(format!("/proc/self/fdinfo/{}", link.as_raw_fd())));
    let is_zero = |line: &str| line.strip_prefix("ifindex:").is_some_and(|index| index.trim() == "0");
    shown.is_ok_and(|shown| shown.lines().any(is_zero))
}

/// Opens a pinned object.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let mut text = path.as_os_str().as_bytes().to_vec();
    text.push(0);
    let argument = OpenArgument { path: text.as_ptr().addr() as u64, descriptor: 0, flags: 0 };
    let size = mem::size_of::<OpenArgument>();
    // SAFETY: the kernel reads `size` bytes of the argument and a string that ends with a NUL, both of which outlive
    // the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_OBJ_GET, &raw const argument, size) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor (with close-on-exec), and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Takes a link's program off its interface, which may be gone.
fn take_off(link: &OwnedFd) -> io::Result<()> {
    let argument = DetachArgument { link: link.as_raw_fd().cast_unsigned() };
    let size = mem::size_of::<DetachArgument>();
    // SAFETY: the kernel reads `size` bytes of the argument, which outlives the call, and the descriptor is open.
    let done = unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_DETACH, &raw const argument, size) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn make_folder(path: &Path) -> Result<(), XdpError> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(XdpError::file("make", path, error)),
        _ => Ok(()),
    }
}

/// What is in a folder; nothing in one that is not there.
fn list(folder: &Path) -> Result<Vec<PathBuf>, XdpError> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
            paths.map_err(|source| XdpError::file("list", folder, source))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(XdpError::file("list", folder, source)),
    }
}

fn remove_folder(folder: &Path) -> Result<(), XdpError> {
    for path in list(folder)? {
        fs::remove_file(&path).map_err(|source| XdpError::file("remove", path, source))?;
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(XdpError::file("remove", folder, error)),
        _ => Ok(()),
    }
}
