//! A path to an AS, as a daemon tells it or as a packet that came along it shows it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::addr::IsdAs;

/// An AS's name for one of its links to a neighbour. 0 is none and the default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u16);

/// An interface that a path enters or leaves an AS by. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathInterface {
    /// The AS.
    pub isd_as: IsdAs,
    /// Its interface.
    pub id: InterfaceId,
}

/// What a path is known by, whatever its hop fields: the interfaces it crosses, in order.
/// Empty inside an AS. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(Arc<[PathInterface]>);

/// What routers read of a path (path types of scion-header.rst).
/// Empty by default. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Dataplane {
    /// Inside an AS (path type 0).
    #[default]
    Empty,
    /// Path type 1: meta header, info fields and hop fields, as they stand in a packet.
    Scion(Arc<[u8]>),
}

/// One way from one AS to another. There is no default. Cheap to clone, and plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Where it begins.
    pub source: IsdAs,
    /// Where it ends.
    pub destination: IsdAs,
    /// What routers read.
    pub dataplane: Dataplane,
    /// The border router that takes its packets; `None` inside an AS, where they go to the host itself.
    pub next_hop: Option<SocketAddr>,
    /// Bytes that a packet may have from its SCION header on.
    pub mtu: u16,
    /// The interfaces it crosses: out of the first AS, into the second, out of it, and so on.
    pub interfaces: Fingerprint,
    /// One-way latency between each interface and the next, where it was announced: one fewer than there are
    /// interfaces.
    pub latency: Vec<Option<Duration>>,
    /// Bandwidth between each interface and the next in kbit/s, where it was announced: one fewer than interfaces.
    pub bandwidth: Vec<Option<u64>>,
    /// When its first hop field ends to be good.
    pub expiry: SystemTime,
}

impl Fingerprint {
    /// The path that crosses these.
    pub fn new(interfaces: impl IntoIterator<Item = PathInterface>) -> Fingerprint {
        Fingerprint(interfaces.into_iter().collect())
    }

    /// The interfaces, in order.
    pub fn interfaces(&self) -> &[PathInterface] {
        &self.0
    }
}

impl Dataplane {
    /// Bytes of it in a header.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether it is the path inside an AS.
    pub fn is_empty(&self) -> bool {
        matches!(self, Dataplane::Empty)
    }

    /// As it stands in a packet.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Dataplane::Empty => &[],
            Dataplane::Scion(bytes) => bytes,
        }
    }
}

impl Path {
    /// ASes on the way, both ends counted.
    pub fn hops(&self) -> usize {
        self.interfaces.interfaces().len() / 2 + 1
    }

    /// What the whole of it announces as its one-way latency: `None` unless every part does.
    pub fn announced_latency(&self) -> Option<Duration> {
        self.latency.iter().copied().sum()
    }

    /// The least bandwidth that a part of it announces, in kbit/s: `None` if none does.
    pub fn announced_bandwidth(&self) -> Option<u64> {
        self.bandwidth.iter().flatten().copied().min()
    }
}

impl fmt::Display for InterfaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PathInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.isd_as, self.id)
    }
}

/// As `scion showpaths` writes it: `1-ff00:0:111 41>1 1-ff00:0:110 2>1 1-ff00:0:112`.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = self.0.chunks_exact(2);
        for (index, pair) in pairs.by_ref().enumerate() {
            if index == 0 {
                write!(f, "{}", pair[0].isd_as)?;
            }
            write!(f, " {}>{} {}", pair[0].id, pair[1].id, pair[1].isd_as)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossing(table: &[(&str, u16)]) -> Fingerprint {
        Fingerprint::new(
            table.iter().map(|(isd_as, id)| PathInterface {
                isd_as: isd_as.parse().expect("it is an AS"),
                id: InterfaceId(*id),
            }),
        )
    }

    #[test]
    fn a_path_is_written_as_showpaths_does() {
        let way = crossing(&[("1-ff00:0:111", 41), ("1-ff00:0:110", 1), ("1-ff00:0:110", 2), ("1-ff00:0:112", 3)]);
        assert_eq!(way.to_string(), "1-ff00:0:111 41>1 1-ff00:0:110 2>3 1-ff00:0:112");
        assert_eq!(Fingerprint::default().to_string(), "");
    }

    #[test]
    fn latency_is_known_when_all_of_it_is_and_bandwidth_when_some_is() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let path = Path {
            source: IsdAs::default(),
            destination: IsdAs::default(),
            dataplane: Dataplane::Empty,
            next_hop: None,
            mtu: 1472,
            interfaces: crossing(&[("1-1", 1), ("1-2", 1), ("1-2", 2), ("1-3", 1)]),
            latency: vec![ms(10), ms(1), ms(5)],
            bandwidth: vec![Some(100), None, Some(40)],
            expiry: SystemTime::UNIX_EPOCH,
        };
        assert_eq!(path.hops(), 3);
        assert_eq!((path.announced_latency(), path.announced_bandwidth()), (ms(16), Some(40)));
        let half = Path { latency: vec![ms(10), None, ms(5)], bandwidth: vec![None; 3], ..path };
        assert_eq!((half.announced_latency(), half.announced_bandwidth()), (None, None));
    }
}
