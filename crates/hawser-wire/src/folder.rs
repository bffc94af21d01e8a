//! The folder of named namespaces, made ready as `ip netns add` makes it (ip-netns(8)): a mount of its own, which
//! passes on what is mounted in it. Were it made so later, it would cover the namespaces that are there, and nobody
//! could remove them.

use std::fs::{self, File};
use std::io;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};

use crate::sweep::NETNS_DIRECTORY;

/// Before the first namespace is mounted; does nothing where it was done.
pub(crate) fn prepare() -> io::Result<()> {
    fs::create_dir_all(NETNS_DIRECTORY)?;
    let folder = File::open(NETNS_DIRECTORY)?;
    // Others may be at it; iproute2 takes the same lock.
    flock(&folder, FlockOperation::LockExclusive)?;
    match share() {
        Err(Errno::INVAL) => {
            mount_bind_recursive(NETNS_DIRECTORY, NETNS_DIRECTORY)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// Fails with EINVAL where the folder is no mount yet.
fn share() -> Result<(), Errno> {
    mount_change(NETNS_DIRECTORY, MountPropagationFlags::SHARED | MountPropagationFlags::REC)
}
