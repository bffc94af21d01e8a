//! Who carries a link's packets, and how well it can keep time.

use std::io;

use super::netem;
use crate::error::WireError;

/// Who carries a link's packets. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A thread of ours between two TUN devices: works everywhere.
    #[default]
    Thread,
    /// The kernel's netem and tbf on a veth pair, set by `tc`: where the kernel has them. Chance is the kernel's own,
    /// and not repeatable; some settings are refused ([`WireError::Unfit`]).
    Netem,
}

impl Backend {
    /// Whether this machine has it: by trying, in a namespace of its own.
    ///
    /// # Errors
    /// [`WireError::NoDiscipline`] names the kernel's missing module; others say that `tc` or root is missing.
    pub fn available(self) -> Result<(), WireError> {
        match self {
            Self::Thread => Ok(()),
            Self::Netem => {
                netem::available("netem", "delay 1ms")?;
                netem::available("tbf", "rate 1mbit burst 5kb limit 10kb")
            }
        }
    }
}

/// How well a link's thread keeps time. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timekeeping {
    /// It goes before every ordinary thread (SCHED_FIFO).
    RealTime,
    /// It waits for a processor as others do: a real-time priority was refused, for this reason. Packets may be late on
    /// a busy machine.
    Ordinary(io::ErrorKind),
}
