//! Values of keys that only some transports have.

use toml::de::DeValue;

use super::error::Fault;
use super::reader::{integer, quoted, string};
use super::values::{IpProtocol, TcpCongestion, TlsName};

pub(super) fn ip_protocol(value: &DeValue<'_>) -> Result<IpProtocol, Fault> {
    let number = integer(value)?;
    IpProtocol::new(number).ok_or_else(|| {
        Fault::new(format!("{number} is not a protocol number that is free to be used"))
            .hint("253 or 254 are for everybody (RFC 3692)")
            .fix("253")
    })
}

pub(super) fn tcp_congestion(value: &DeValue<'_>) -> Result<TcpCongestion, Fault> {
    string(value, |text| {
        TcpCongestion::parse(text).ok_or_else(|| {
            Fault::new(format!("{} is no name of a congestion control", quoted(text)))
                .hint("cat /proc/sys/net/ipv4/tcp_available_congestion_control")
        })
    })
}

pub(super) fn tls_name(value: &DeValue<'_>) -> Result<TlsName, Fault> {
    string(value, |text| {
        TlsName::parse(text)
            .ok_or_else(|| Fault::new(format!("{} is no host name", quoted(text))).hint("such as \"www.example.com\""))
    })
}
