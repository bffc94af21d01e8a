//! `dns` and `dns_domains` of `[tun]`: name servers that the system asks while the portal runs.

use std::fmt;
use std::net::IpAddr;

use toml::de::DeValue;

use super::error::Fault;
use super::parsers::ip_address;
use super::reader::{Sited, Table, quoted, string};
use super::unique::Unique;
use super::values::HostName;

/// Stands before a domain whose names are asked for there, and which is not searched (resolvectl(1)).
const ROUTED: char = '~';
/// The domain of every name.
const ROOT: &str = ".";

/// Name servers behind the tunnel, and which names are asked for there. No servers by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameServerKeys {
    /// The servers, the preferred one first.
    pub servers: Vec<IpAddr>,
    /// Their domains; none: every name.
    pub domains: Vec<DnsDomain>,
}

/// A domain of name servers: `example.org`, `~example.org` or `~.`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DnsDomain(String);

impl DnsDomain {
    /// Takes a domain in the words of resolvectl(1).
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix(ROUTED);
        let is_domain = name == Some(ROOT) || HostName::parse(name.unwrap_or(text)).is_some();
        is_domain.then(|| Self(text.to_owned()))
    }

    /// The domain itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DnsDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads both keys.
pub(super) fn read(table: &mut Table<'_, '_, '_>) -> NameServerKeys {
    let servers = table.list("dns", name_server);
    let domains = table.list("dns_domains", domain);
    let mut seen = Unique::default();
    for server in servers.iter().flatten() {
        seen.claim(table, server.value, server.span.clone(), "the name server is there twice");
    }
    let mut seen = Unique::default();
    for domain in domains.iter().flatten() {
        seen.claim(table, domain.value.clone(), domain.span.clone(), "the domain is there twice");
    }
    if let Some(first) = domains.iter().flatten().next().filter(|_| !table.has("dns")) {
        let fault = Fault::new("`dns_domains` without `dns`").hint("add: dns = [\"10.77.0.1\"]");
        table.fault(first.span.clone(), fault);
    }
    NameServerKeys { servers: values(servers), domains: values(domains) }
}

fn values<T>(sited: Option<Vec<Sited<T>>>) -> Vec<T> {
    sited.into_iter().flatten().map(|sited| sited.value).collect()
}

fn name_server(value: &DeValue<'_>) -> Result<IpAddr, Fault> {
    match ip_address(value)? {
        address if address.is_loopback() => {
            Err(Fault::new(format!("{address} is this host, and not behind the tunnel")).hint("such as \"10.77.0.1\""))
        }
        address => Ok(address),
    }
}

fn domain(value: &DeValue<'_>) -> Result<DnsDomain, Fault> {
    string(value, |text| {
        DnsDomain::parse(text).ok_or_else(|| {
            let fault = Fault::new(format!("{} is not a domain", quoted(text)));
            match text {
                ROOT => fault.hint("every name").fix(quoted("~.")),
                _ => fault.hint("such as \"example.org\", or \"~.\" for every name"),
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn read(keys: &str) -> Result<NameServerKeys, Vec<String>> {
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.2/24\"]\n{keys}\n\
             [[peer]]\nname = \"home\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nallowed_ips = [\"10.77.0.1/32\"]\n"
        );
        let read = Config::parse(&text, "t.toml").map(|config| config.tun.dns);
        read.map_err(|errors| errors.into_iter().map(|error| error.message).collect())
    }

    #[test]
    fn servers_keep_their_order_and_domains_their_words() {
        assert_eq!(read(""), Ok(NameServerKeys::default()));
        let keys =
            read("dns = [\"10.77.0.1\", \"fd77::1\"]\ndns_domains = [\"~.\", \"a.test\", \"~b.test\"]").expect("right");
        assert_eq!(keys.servers, ["10.77.0.1", "fd77::1"].map(|server| server.parse::<IpAddr>().expect("an address")));
        assert_eq!(keys.domains.iter().map(DnsDomain::as_str).collect::<Vec<_>>(), ["~.", "a.test", "~b.test"]);
    }

    #[test]
    fn what_is_no_server_or_domain_is_a_fault() {
        for (keys, fault) in [
            ("dns = [\"hub.test\"]", "`dns`: \"hub.test\" is not an IP address"),
            ("dns = [\"127.0.0.53\"]", "`dns`: 127.0.0.53 is this host, and not behind the tunnel"),
            ("dns = [\"10.77.0.1\", \"10.77.0.1\"]", "the name server is there twice"),
            ("dns_domains = [\"a.test\"]", "`dns_domains` without `dns`"),
            ("dns = [\"10.77.0.1\"]\ndns_domains = [\".\"]", "`dns_domains`: \".\" is not a domain"),
            ("dns = [\"10.77.0.1\"]\ndns_domains = [\"~~.\"]", "`dns_domains`: \"~~.\" is not a domain"),
            ("dns = [\"10.77.0.1\"]\ndns_domains = [\"a.test\", \"a.test\"]", "the domain is there twice"),
        ] {
            let faults = read(keys).expect_err("it is faulty");
            assert!(faults.iter().any(|found| found.contains(fault)), "{keys}: {faults:?}");
        }
    }
}
