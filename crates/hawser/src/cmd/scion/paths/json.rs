//! Paths as JSON: what `scion showpaths --format json` has, under its names, and what it has not.

use hawser_scion::probe::Outcome;
use hawser_scion::select::hops;
use hawser_scion::{Fingerprint, Path};
use ring::digest::{SHA256, digest};
use serde::Serialize;

use super::list::{List, Row};
use crate::failure::Failure;

/// Hex digits of a fingerprint (reference implementation, scion/showpaths).
const FINGERPRINT_DIGITS: usize = 16;
/// What the reference writes for a latency that was not announced, in nanoseconds.
const NO_LATENCY: i64 = -1;
/// What the reference writes for a bandwidth that was not announced, in kbit/s.
const NO_BANDWIDTH: u64 = 0;
/// Milliseconds in a second.
const MILLI: f64 = 1000.0;

#[derive(Serialize)]
struct Shown {
    local_isd_as: String,
    destination: String,
    select: &'static str,
    /// What the chosen paths are like together.
    chosen: Together,
    paths: Vec<ShownPath>,
}

#[derive(Serialize)]
struct Together {
    paths: usize,
    /// As `1-ff00:0:110#2`.
    shared_interfaces: Vec<String>,
    mtu: Option<u16>,
    /// In nanoseconds.
    longest_latency: Option<u128>,
}

#[derive(Serialize)]
struct ShownPath {
    fingerprint: String,
    hops: Vec<Hop>,
    sequence: String,
    next_hop: String,
    expiry: String,
    mtu: u16,
    /// In nanoseconds, between each interface and the next.
    latency: Vec<i64>,
    /// In kbit/s, between each interface and the next.
    bandwidth: Vec<u64>,
    chosen: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_info: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_ms: Option<f64>,
}

#[derive(Serialize)]
struct Hop {
    interface: u16,
    isd_as: String,
}

/// The whole document, its line ended.
pub fn of(list: &List<'_>) -> Result<String, Failure> {
    let together = list.together();
    let shown = Shown {
        local_isd_as: list.local.to_string(),
        destination: list.destination.to_string(),
        select: list.select.name(),
        chosen: Together {
            paths: together.paths,
            shared_interfaces: together.shared.iter().map(|shared| shared.interface.to_string()).collect(),
            mtu: together.mtu,
            longest_latency: together.longest_latency.map(|latency| latency.as_nanos()),
        },
        paths: list.rows.iter().map(path).collect(),
    };
    let text = serde_json::to_string_pretty(&shown);
    text.map(|text| text + "\n").map_err(|error| Failure::failed(format!("write the paths: {error}")))
}

fn path(row: &Row<'_>) -> ShownPath {
    let Path { interfaces, next_hop, mtu, expiry, latency, bandwidth, .. } = row.path;
    let nanoseconds = |latency: &Option<std::time::Duration>| latency.and_then(|l| i64::try_from(l.as_nanos()).ok());
    let hop = |interface: &hawser_scion::PathInterface| Hop {
        interface: interface.id.0,
        isd_as: interface.isd_as.to_string(),
    };
    ShownPath {
        fingerprint: fingerprint(interfaces),
        hops: interfaces.interfaces().iter().map(hop).collect(),
        sequence: hops(interfaces).map(|hop| hop.to_string()).collect::<Vec<_>>().join(" "),
        next_hop: next_hop.map(|hop| hop.to_string()).unwrap_or_default(),
        expiry: prost_types::Timestamp::from(*expiry).to_string(),
        mtu: *mtu,
        latency: latency.iter().map(|latency| nanoseconds(latency).unwrap_or(NO_LATENCY)).collect(),
        bandwidth: bandwidth.iter().map(|bandwidth| bandwidth.unwrap_or(NO_BANDWIDTH)).collect(),
        chosen: row.chosen,
        status: row.outcome.map(Outcome::status),
        status_info: row.outcome.filter(|outcome| matches!(outcome, Outcome::Refused { .. })).map(ToString::to_string),
        rtt_ms: row.outcome.and_then(|outcome| match outcome {
            Outcome::Alive { round_trip } => Some(round_trip.as_secs_f64() * MILLI),
            _ => None,
        }),
    }
}

/// The beginning of a hash over the interfaces, ISD-AS and number in 8 bytes each (reference implementation,
/// snet.Fingerprint).
fn fingerprint(interfaces: &Fingerprint) -> String {
    if interfaces.interfaces().is_empty() {
        return "local".to_owned();
    }
    let mut bytes = Vec::new();
    for interface in interfaces.interfaces() {
        bytes.extend(interface.isd_as.to_bits().to_be_bytes());
        bytes.extend(u64::from(interface.id.0).to_be_bytes());
    }
    let hash = digest(&SHA256, &bytes);
    let digits: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    digits[..FINGERPRINT_DIGITS].to_owned()
}
