//! What a socket counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// One count. 0 at first. For several threads.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares what is counted, once.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a socket has counted since it was opened. All 0 at first. Plain data.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counts themselves. All 0 at first. For several threads.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Count,)*
        }

        impl Counters {
            pub(super) fn read(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Packets written.
    sent_packets,
    /// Bytes of their payloads.
    sent_bytes,
    /// Those of them that the kernel refused.
    refused_packets,
    /// Packets handed out.
    received_packets,
    /// Bytes of their payloads.
    received_bytes,
    /// Received: no SCION packet.
    malformed,
    /// Received: for another host, port or protocol.
    misdirected,
    /// Received: from somebody else than the connection's destination.
    strangers,
    /// Received: with a wrong checksum.
    bad_checksum,
    /// Control messages that changed or told something.
    scmp_heeded,
    /// Control messages that are not about a packet of this socket, or say nothing new.
    scmp_ignored,
    /// Echo requests answered.
    echoes_answered,
    /// Echo requests beyond what is answered.
    echoes_refused,
    /// Packets the kernel threw away, as the receive buffer was full.
    kernel_drops,
}
