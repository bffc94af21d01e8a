//! What is sent, how far it is, and why it was not.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{FileInfo, LayoutError};
use hawser_bulk::sender::{Law, PathCounts, PathState};
use hawser_bulk::trust::Trust;
use hawser_bulk::wire::Verdict;
use hawser_core::units::Rate;

use super::reader::SourceError;
use crate::addr::EndpointAddr;
use crate::conn::{OpenError, PortRange};
use crate::path::{Fingerprint, Path};

/// What is sent, where to, and how. Plain data.
#[derive(Debug)]
pub struct SendOrder {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The receiver.
    pub destination: EndpointAddr,
    /// This end; port 0 takes a free one for each path. The host of a path's socket is the one that reaches its border
    /// router.
    pub local: EndpointAddr,
    /// The own AS's ports that packets come to directly.
    pub dispatched: Option<PortRange>,
    /// Bytes that a packet may have inside the AS, from its SCION header on; the usual where it is not known.
    pub mtu: Option<u16>,
    /// The paths; none inside the own AS.
    pub paths: Vec<Path>,
    /// How fast.
    pub law: Law,
    /// A ceiling over all paths.
    pub ceiling: Option<Rate>,
    /// Whom it is for.
    pub trust: Trust,
    /// How long nothing may get on before it is given up.
    pub patience: Duration,
}

/// How a path does. Plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct PathProgress {
    /// Which it is; empty inside the AS.
    pub path: Fingerprint,
    /// Whether it carries data.
    pub state: PathState,
    /// Smoothed round trip.
    pub round_trip: Duration,
    /// What it is taken to deliver, in bit/s.
    pub bandwidth: u64,
    /// What was counted in this session.
    pub counts: PathCounts,
}

/// How far it is. Plain data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Bytes of all files that are taken.
    pub bytes: u64,
    /// Bytes that have arrived, or were there.
    pub arrived: u64,
    /// Bytes of them that were there already.
    pub resumed: u64,
    /// Since the beginning.
    pub elapsed: Duration,
    /// The paths.
    pub paths: Vec<PathProgress>,
}

/// What was sent. Plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// Each file: what became of it, and its digest.
    pub files: Vec<(FileInfo, Verdict, Option<Digest>)>,
    /// At the end.
    pub progress: Progress,
}

/// Why files were not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The files, or the paths, are none that can be used.
    #[error("send")]
    Layout(#[from] LayoutError),
    /// No socket.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Trust names no receiver.
    #[error("send: nobody is named to send to")]
    NoPeer,
    /// Nobody answered in time.
    #[error("send to {destination}: no answer for {} s", after.as_secs())]
    NoAnswer {
        /// Where to.
        destination: EndpointAddr,
        /// For how long.
        after: Duration,
        /// A router, or the host itself, said that it is not reached.
        unreachable: bool,
    },
    /// Nothing got on for as long.
    #[error("send to {destination}: nothing got on for {} s", after.as_secs())]
    Stalled {
        /// Where to.
        destination: EndpointAddr,
        /// For how long.
        after: Duration,
    },
    /// Another transfer writes one of the files for as long.
    #[error("send to {destination}: another transfer writes the file")]
    Busy {
        /// Where to.
        destination: EndpointAddr,
    },
    /// The receiver ended it.
    #[error("send to {destination}: the receiver stopped")]
    Stopped {
        /// Where to.
        destination: EndpointAddr,
    },
    /// An end broke a rule of the protocol.
    #[error("send to {destination}: the receiver speaks another protocol")]
    Protocol {
        /// Where to.
        destination: EndpointAddr,
    },
    /// The caller ended it.
    #[error("send: interrupted")]
    Interrupted,
    /// The system refused.
    #[error("send: {step}")]
    System {
        /// What was done.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
