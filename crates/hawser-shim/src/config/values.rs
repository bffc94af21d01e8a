//! Values of `[shim]`, other than addresses.

use std::num::NonZeroU16;
use std::path::PathBuf;

use hawser_config::Keyword;
use hawser_config::reading::{Fault, integer, quoted, string};
use ipnet::Ipv4Net;
use toml::de::DeValue;

use super::types::{EgressCount, Mode, PathManager, Prefix, Protocols};
use crate::route::{DEFAULT_RANGE, LONGEST_RANGE, MAX_EGRESS, Port, Side};
use crate::translate::Layer4;

impl Keyword for Mode {
    const WORDS: &'static [(Self, &'static str)] = &[(Mode::Direct, "direct"), (Mode::Namespaces, "namespaces")];
}

impl Keyword for PathManager {
    const WORDS: &'static [(Self, &'static str)] =
        &[(PathManager::Userspace, "userspace"), (PathManager::Kernel, "kernel")];
}

impl Keyword for Layer4 {
    const WORDS: &'static [(Self, &'static str)] = &[(Layer4::Udp, "udp"), (Layer4::Tcp, "tcp")];
}

impl Keyword for Protocols {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Protocols::Tcp, "tcp"), (Protocols::Udp, "udp"), (Protocols::Both, "both")];
}

/// As the values of `side_by_side`: without the key all goes over SCION.
impl Keyword for Side {
    const WORDS: &'static [(Self, &'static str)] = &[(Side::Subflows, "subflows"), (Side::Main, "main")];
}

pub(super) fn egress(value: &DeValue<'_>) -> Result<EgressCount, Fault> {
    let number = integer(value)?;
    EgressCount::new(number).ok_or_else(|| {
        Fault::new(format!("{number} is not between 1 and {MAX_EGRESS}"))
            .hint("a kernel's MPTCP has at most this many addresses for subflows")
            .fix(number.clamp(1, MAX_EGRESS.into()).to_string())
    })
}

pub(super) fn port(value: &DeValue<'_>) -> Result<Port, Fault> {
    let number = integer(value)?;
    let port = u16::try_from(number).ok().and_then(NonZeroU16::new).map(Port);
    port.ok_or_else(|| Fault::new(format!("{number} is not between 1 and {}", u16::MAX)))
}

/// None for `false`.
pub(super) fn ipv4(value: &DeValue<'_>) -> Result<Option<Ipv4Net>, Fault> {
    match value {
        DeValue::Boolean(false) => Ok(None),
        DeValue::Boolean(true) => Err(Fault::new("expected a network or false, found true")
            .hint("the network in which IPv4 addresses are derived, the same in every shim")
            .fix(quoted(&DEFAULT_RANGE.to_string()))),
        _ => string(value, range).map(Some),
    }
}

fn range(text: &str) -> Result<Ipv4Net, Fault> {
    let network: Ipv4Net = text.parse().map_err(|_| {
        Fault::new(format!("{} is not an IPv4 network", quoted(text)))
            .hint(format!("such as \"{DEFAULT_RANGE}\", or false for no IPv4"))
    })?;
    if network.trunc() != network {
        let network = network.trunc();
        return Err(
            Fault::new(format!("{text} is an address inside the network {network}")).fix(quoted(&network.to_string()))
        );
    }
    if network.prefix_len() > LONGEST_RANGE {
        return Err(Fault::new(format!("{network} is too small: many hosts would have the same addresses"))
            .hint(format!("a prefix of at most /{LONGEST_RANGE}")));
    }
    if network.prefix_len() == 0 || network.addr().is_multicast() || network.addr().is_loopback() {
        return Err(Fault::new(format!("{network} is no network that hosts can have")));
    }
    Ok(network)
}

pub(super) fn prefix(value: &DeValue<'_>) -> Result<Prefix, Fault> {
    string(value, |text| {
        Prefix::parse(text).ok_or_else(|| {
            Fault::new(format!("{} is no beginning of interface names", quoted(text)))
                .hint(format!("1 to {} letters, digits, `_` and `-`", Prefix::MAX))
        })
    })
}

pub(super) fn path(value: &DeValue<'_>) -> Result<PathBuf, Fault> {
    string(value, |text| match text {
        "" => Err(Fault::new("a path must not be empty")),
        _ => Ok(PathBuf::from(text)),
    })
}
