//! Where a daemon listens.

use std::env;
use std::fmt;
use std::str::FromStr;

/// Where daemons listen if nothing else is said (reference implementation, pkg/daemon, DefaultAPIAddress).
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:30255";

/// The variable of the environment that says where else (reference implementation, private/app/env).
pub const ENVIRONMENT: &str = "SCION_DAEMON";

/// A daemon's address: IP:port or name:port. [`DEFAULT_ADDRESS`] by default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonAddr(String);

/// Text that is no address of a daemon. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read \"{text}\": a daemon's address is written IP:PORT, like {DEFAULT_ADDRESS}")]
pub struct InvalidAddr {
    /// What was read.
    pub text: String,
}

impl DaemonAddr {
    /// As the environment says; where it says nothing, the default.
    ///
    /// # Errors
    /// If the environment says what is no address.
    pub fn from_environment() -> Result<DaemonAddr, InvalidAddr> {
        match env::var_os(ENVIRONMENT) {
            Some(text) if !text.is_empty() => text.to_string_lossy().parse(),
            _ => Ok(DaemonAddr::default()),
        }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for DaemonAddr {
    fn default() -> Self {
        DaemonAddr(DEFAULT_ADDRESS.to_owned())
    }
}

impl FromStr for DaemonAddr {
    type Err = InvalidAddr;

    fn from_str(text: &str) -> Result<DaemonAddr, InvalidAddr> {
        let is_name = |host: &str| {
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        };
        let is_bracketed = |host: &str| {
            let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            inner.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok())
        };
        let parts = text.rsplit_once(':').filter(|(host, port)| {
            (is_name(host) || is_bracketed(host)) && port.parse::<u16>().is_ok_and(|port| port != 0)
        });
        parts.map(|_| DaemonAddr(text.to_owned())).ok_or_else(|| InvalidAddr { text: text.to_owned() })
    }
}

impl fmt::Display for DaemonAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for text in ["127.0.0.1:30255", "[::1]:30255", "localhost:1", "sd.example.org:30255"] {
            assert_eq!(text.parse::<DaemonAddr>().expect(text).to_string(), text);
        }
        for text in
            ["", "127.0.0.1", ":30255", "127.0.0.1:0", "127.0.0.1:65536", "::1:30255", "http://a:1", "a b:1", "[1]:2"]
        {
            let error = text.parse::<DaemonAddr>().expect_err(text).to_string();
            assert_eq!(error, format!("read \"{text}\": a daemon's address is written IP:PORT, like 127.0.0.1:30255"));
        }
    }
}
