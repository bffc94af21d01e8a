//! The sysctls of a namespace: forwarding, reverse path filter, and an IPv6 that keeps silent.

use std::fs;
use std::path::Path;

use crate::error::WireError;
use crate::namespace::Namespace;

/// Where the network sysctls of the calling thread's namespace are. Source: proc_sys_net(5).
const SYSCTL_NET: &str = "/proc/sys/net";

/// What makes IPv6 on an emulated interface send nothing of its own, have its addresses at once, and keep
/// them while it is down. Source: kernel documentation, networking/ip-sysctl.
const QUIET_IPV6: [(&str, &str); 5] = [
    ("addr_gen_mode", "1"), // no link-local address, hence no MLD and no router solicitations
    ("accept_dad", "0"),
    ("accept_ra", "0"),
    ("router_solicitations", "0"),
    ("keep_addr_on_down", "1"),
];

/// The reverse path filter of an interface (RFC 3704).
/// A new namespace has what the kernel's default is. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpFilter {
    /// Every source is accepted.
    Off,
    /// The source's route must lead back by the same interface.
    Strict,
    /// The source must have a route by any interface.
    Loose,
}

impl Namespace {
    /// Writes a sysctl below /proc/sys/net, as `ipv4/ip_forward`.
    ///
    /// # Errors
    /// Where there is no such sysctl, or it refuses the value.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<(), WireError> {
        self.run(|| fs::write(format!("{SYSCTL_NET}/{key}"), value))?
            .map_err(|error| WireError::system(format!("set {key} to {value} in {}", self.name()), error))
    }

    /// Reads a sysctl below /proc/sys/net.
    ///
    /// # Errors
    /// Where there is no such sysctl.
    pub fn sysctl(&self, key: &str) -> Result<String, WireError> {
        let read = self
            .run(|| fs::read_to_string(format!("{SYSCTL_NET}/{key}")))?
            .map_err(|error| WireError::system(format!("read {key} in {}", self.name()), error))?;
        Ok(read.trim_end().to_owned())
    }

    /// Makes the namespace a router, for IPv4 and IPv6.
    ///
    /// # Errors
    /// As [`Namespace::set_sysctl`].
    pub fn set_forwarding(&self, on: bool) -> Result<(), WireError> {
        let value = if on { "1" } else { "0" };
        self.set_sysctl("ipv4/ip_forward", value)?;
        self.set_sysctl("ipv6/conf/all/forwarding", value)
    }

    /// Sets the reverse path filter of an interface, or of `all` (the stricter of both holds).
    ///
    /// # Errors
    /// As [`Namespace::set_sysctl`].
    pub fn set_rp_filter(&self, interface: &str, filter: RpFilter) -> Result<(), WireError> {
        let value = match filter {
            RpFilter::Off => "0",
            RpFilter::Strict => "1",
            RpFilter::Loose => "2",
        };
        self.set_sysctl(&format!("ipv4/conf/{interface}/rp_filter"), value)
    }

    /// Keeps IPv6 on an interface from sending anything of its own; a kernel without IPv6 is silent already.
    pub(crate) fn quiet_ipv6(&self, interface: &str) -> Result<(), WireError> {
        let write_all = || {
            let directory = Path::new(SYSCTL_NET).join("ipv6/conf").join(interface);
            if !directory.exists() {
                return Ok(());
            }
            QUIET_IPV6.iter().try_for_each(|(key, value)| fs::write(directory.join(key), value))
        };
        self.run(write_all)?
            .map_err(|error| WireError::system(format!("quiet ipv6 of {interface} in {}", self.name()), error))
    }
}
