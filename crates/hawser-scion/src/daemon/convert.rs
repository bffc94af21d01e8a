//! A daemon's messages become addresses and paths, or are refused: lengths, numbers and times are checked once, here.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use super::proto;
use crate::addr::IsdAs;
use crate::packet;
use crate::packet::DataplaneView;
use crate::path::{Dataplane, Fingerprint, InterfaceId, Path, PathInterface};

/// Most interfaces on a path: two for each of the 64 hop fields that a header has room for (scion-header.rst, CurrHF
/// has 6 bits).
const MOST_INTERFACES: usize = 128;

/// Room in a packet for headers beside the path: common and address header with IPv6 hosts, UDP (scion-header.rst).
const OTHER_HEADERS: usize = 12 + 48 + 8;

/// Longest latency that is believed between two interfaces, so that sums stay sums: the moon is 1.3 s away.
const LONGEST_LATENCY: Duration = Duration::from_secs(3600);

/// Latest expiry that a path can have: timestamps of segments have 32 bits, and hops a day (scion-header.rst, "Info
/// Field").
const LATEST_EXPIRY: u64 = u32::MAX as u64 + 24 * 3600;

/// What is wrong with an answer. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A number that is no ISD-AS, or one that stands for several.
    #[error("{0} is not one AS")]
    IsdAs(IsdAs),
    /// A number that no interface has.
    #[error("{0} is no interface")]
    Interface(u64),
    /// A number that no port has.
    #[error("{0} is no port")]
    Port(u32),
    /// A range that ends before it begins.
    #[error("ports {0} to {1} are no range")]
    PortRange(u16, u16),
    /// The address of a border router.
    #[error("\"{0}\" is no IP:port of a border router")]
    NextHop(String),
    /// Each link has two interfaces.
    #[error("a path has {0} interfaces")]
    InterfaceCount(usize),
    /// One AS is entered, and another one left.
    #[error("a path enters {entered} and leaves {left}")]
    Torn {
        /// In.
        entered: IsdAs,
        /// Out.
        left: IsdAs,
    },
    /// It does not lead where it should.
    #[error("a path leads to {0}")]
    Destination(IsdAs),
    /// What routers read.
    #[error("a path's header is malformed: {0}")]
    Dataplane(#[from] packet::Malformed),
    /// More than a path.
    #[error("a path's header has {0} bytes too many")]
    TooLong(usize),
    /// An MTU without room for headers, or more than a UDP datagram has.
    #[error("a path's mtu is {0}")]
    Mtu(u32),
    /// No time, or none that can be.
    #[error("a path has no expiry that can be")]
    Expiry,
    /// A list as long as none of a path.
    #[error("a path of {interfaces} interfaces has {entries} entries for {what}")]
    Entries {
        /// Of what.
        what: &'static str,
        /// How many.
        entries: usize,
        /// How many interfaces there are.
        interfaces: usize,
    },
    /// A latency that cannot be.
    #[error("a path's latency is {0} s")]
    Latency(i64),
}

/// A path that was left out. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path {index} of the answer")]
pub struct MalformedPath {
    /// Where it stood in the answer, from 0.
    pub index: usize,
    /// What is wrong with it.
    #[source]
    pub fault: Malformed,
}

/// One AS.
pub(super) fn isd_as(bits: u64) -> Result<IsdAs, Malformed> {
    let isd_as = IsdAs::from_bits(bits);
    if isd_as.is_wildcard() { Err(Malformed::IsdAs(isd_as)) } else { Ok(isd_as) }
}

/// The name of a link.
pub(super) fn interface_id(id: u64) -> Result<InterfaceId, Malformed> {
    u16::try_from(id).ok().filter(|&id| id != 0).map(InterfaceId).ok_or(Malformed::Interface(id))
}

/// A port.
pub(super) fn port(number: u32) -> Result<u16, Malformed> {
    u16::try_from(number).map_err(|_| Malformed::Port(number))
}

/// What an AS or a path carries. Without headers it carries nothing.
pub(super) fn mtu(mtu: u32, path_len: usize) -> Result<u16, Malformed> {
    let size = u16::try_from(mtu).map_err(|_| Malformed::Mtu(mtu))?;
    if usize::from(size) > OTHER_HEADERS + path_len { Ok(size) } else { Err(Malformed::Mtu(mtu)) }
}

/// Where a border router takes packets.
pub(super) fn underlay(interface: Option<proto::Interface>) -> Result<SocketAddr, Malformed> {
    let text = interface.and_then(|interface| interface.address).unwrap_or_default().address;
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        _ => Err(Malformed::NextHop(text)),
    }
}

/// A path to a destination.
pub(super) fn path(told: proto::Path, destination: IsdAs) -> Result<Path, Malformed> {
    let expiry = expiry(told.expiration)?;
    let interfaces = told.interfaces.iter().map(interface).collect::<Result<Vec<_>, _>>()?;
    let Some((first, last)) = interfaces.first().zip(interfaces.last()) else {
        return inside(destination, told.mtu, expiry);
    };
    check_way(&interfaces)?;
    if last.isd_as != destination {
        return Err(Malformed::Destination(last.isd_as));
    }
    Ok(Path {
        source: first.isd_as,
        destination,
        mtu: mtu(told.mtu, told.raw.len())?,
        dataplane: dataplane(&told.raw)?,
        next_hop: Some(underlay(told.interface)?),
        latency: latencies(&told.latency, interfaces.len())?,
        bandwidth: bandwidths(&told.bandwidth, interfaces.len())?,
        interfaces: Fingerprint::new(interfaces),
        expiry,
    })
}

/// The path inside an AS.
fn inside(isd_as: IsdAs, told_mtu: u32, expiry: SystemTime) -> Result<Path, Malformed> {
    Ok(Path {
        source: isd_as,
        destination: isd_as,
        dataplane: Dataplane::Empty,
        next_hop: None,
        mtu: mtu(told_mtu, 0)?,
        interfaces: Fingerprint::default(),
        latency: Vec::new(),
        bandwidth: Vec::new(),
        expiry,
    })
}

fn interface(told: &proto::PathInterface) -> Result<PathInterface, Malformed> {
    Ok(PathInterface { isd_as: isd_as(told.isd_as)?, id: interface_id(told.id)? })
}

/// Whether interfaces come in pairs, and each AS that is entered is the one that is left.
fn check_way(interfaces: &[PathInterface]) -> Result<(), Malformed> {
    if !interfaces.len().is_multiple_of(2) || interfaces.len() > MOST_INTERFACES {
        return Err(Malformed::InterfaceCount(interfaces.len()));
    }
    let between = interfaces[1..].chunks_exact(2);
    let torn = between.map(|pair| (pair[0].isd_as, pair[1].isd_as)).find(|(entered, left)| entered != left);
    torn.map_or(Ok(()), |(entered, left)| Err(Malformed::Torn { entered, left }))
}

fn dataplane(raw: &[u8]) -> Result<Dataplane, Malformed> {
    let dataplane = Dataplane::Scion(raw.into());
    let read = DataplaneView::of(&dataplane)?.as_bytes().len();
    if read == raw.len() { Ok(dataplane) } else { Err(Malformed::TooLong(raw.len() - read)) }
}

fn expiry(told: Option<prost_types::Timestamp>) -> Result<SystemTime, Malformed> {
    let seconds = told.and_then(|time| u64::try_from(time.seconds).ok()).filter(|&seconds| seconds <= LATEST_EXPIRY);
    seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).ok_or(Malformed::Expiry)
}

/// One between each two interfaces, or none at all.
fn check_entries(what: &'static str, entries: usize, interfaces: usize) -> Result<(), Malformed> {
    let fits = entries == 0 || entries + 1 == interfaces;
    if fits { Ok(()) } else { Err(Malformed::Entries { what, entries, interfaces }) }
}

fn latencies(told: &[prost_types::Duration], interfaces: usize) -> Result<Vec<Option<Duration>>, Malformed> {
    check_entries("latency", told.len(), interfaces)?;
    let latency = |told: &prost_types::Duration| {
        // Negative: not announced.
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(told.seconds), u32::try_from(told.nanos)) else {
            return Ok(None);
        };
        let latency = Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanos.into()));
        latency.filter(|&latency| latency <= LONGEST_LATENCY).map(Some).ok_or(Malformed::Latency(told.seconds))
    };
    let mut all = told.iter().map(latency).collect::<Result<Vec<_>, _>>()?;
    all.resize(interfaces - 1, None);
    Ok(all)
}

fn bandwidths(told: &[u64], interfaces: usize) -> Result<Vec<Option<u64>>, Malformed> {
    check_entries("bandwidth", told.len(), interfaces)?;
    let mut all: Vec<Option<u64>> = told.iter().map(|&kbps| (kbps != 0).then_some(kbps)).collect();
    all.resize(interfaces - 1, None);
    Ok(all)
}
