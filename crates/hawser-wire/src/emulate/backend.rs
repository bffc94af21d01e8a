//! Who carries a link's packets, and how well it can keep time.

use std::io;

/// Who carries a link's packets. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A thread of ours between two TUN devices: works everywhere.
    #[default]
    Thread,
    /// The kernel's netem and tbf on a veth pair, set by `tc`: where the kernel has them.
    Netem,
}

/// How well a link's thread keeps time. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timekeeping {
    /// It goes before every ordinary thread (SCHED_FIFO).
    RealTime,
    /// It waits for a processor as others do: a real-time priority was refused, for this reason. Packets may be late on a busy machine.
    Ordinary(io::ErrorKind),
}
