//! The addresses by which servers of this host are reached.

use std::net::IpAddr;

use hawser_net::netcfg::{NetConfigError, Rtnl};

/// All addresses of this host but those that no other host can mean: loopback's, and those of one link.
///
/// # Errors
/// What the kernel says.
pub async fn own_addresses(rtnl: &Rtnl) -> Result<Vec<IpAddr>, NetConfigError> {
    Ok(rtnl.all_addresses().await?.into_iter().filter(|address| is_reachable(*address)).collect())
}

fn is_reachable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_another_host_elsewhere_is_left_out() {
        let table =
            [("10.0.0.1", true), ("127.0.0.1", false), ("169.254.1.1", false), ("fd00::1", true), ("fe80::1", false)];
        for (address, want) in table {
            assert_eq!(is_reachable(address.parse().expect("an address")), want, "{address}");
        }
        assert!(!is_reachable("::1".parse().expect("an address")));
    }
}
