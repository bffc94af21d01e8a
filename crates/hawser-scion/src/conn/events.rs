//! What happened to paths, for the log of whoever uses them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use hawser_net::link::Refusal;

use super::dead::DeadPart;
use crate::addr::EndpointAddr;
use crate::path::Fingerprint;

/// Events kept for whoever asks; the oldest go first.
const MOST_EVENTS: usize = 64;

/// Something that happened to the way to a destination. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A path died, and another took its place.
    PathReplaced {
        /// Where to.
        destination: EndpointAddr,
        /// The path that died.
        from: Fingerprint,
        /// The path in its place.
        to: Fingerprint,
        /// What a router said.
        because: DeadPart,
    },
    /// A path died, and there is no other: it stays.
    NoOther {
        /// Where to.
        destination: EndpointAddr,
        /// The path.
        path: Fingerprint,
        /// What a router said.
        because: DeadPart,
    },
    /// A path was renewed, or a better one is back; they may be the same.
    PathRenewed {
        /// Where to.
        destination: EndpointAddr,
        /// The path before.
        from: Fingerprint,
        /// The path now.
        to: Fingerprint,
    },
    /// Paths could not be looked up; the one in use goes on until it expires.
    RenewalFailed {
        /// Where to.
        destination: EndpointAddr,
        /// Why, in words.
        reason: String,
    },
    /// A path carries less than it said.
    MtuLowered {
        /// Where to.
        destination: EndpointAddr,
        /// Bytes from the SCION header on.
        mtu: u16,
        /// Bytes that a payload may have now.
        max_payload: usize,
    },
    /// A router or the kernel says that packets do not arrive.
    Unreachable {
        /// Where to; the underlay's address when it is the kernel that says so.
        remote: Remote,
        /// SCMP's code (draft-dekater-scion-dataplane, destination unreachable), or the kernel's reason.
        reason: Unreachable,
    },
}

/// Who is not reached. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    /// A SCION endpoint.
    Endpoint(EndpointAddr),
    /// A router or host by its underlay address.
    Underlay(SocketAddr),
}

/// Why not. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// SCMP destination unreachable, with its code.
    Scmp(u8),
    /// What the kernel or an IP router said.
    Kernel(Refusal),
}

/// The last events. Empty at first. For several threads.
#[derive(Debug, Default)]
pub(super) struct Events(Mutex<VecDeque<Event>>);

impl Events {
    pub(super) fn tell(&self, event: Event) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What repeats (each packet under way brings its own report) is told once.
        if events.back() == Some(&event) {
            return;
        }
        if events.len() == MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }

    pub(super) fn take(&self) -> Option<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
