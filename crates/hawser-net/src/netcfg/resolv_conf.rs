//! The name servers in the system's files: whom libc asks, and whom it would ask without a device's own.

use std::{fs, net::IpAddr, path::Path};

/// What libc reads (resolv.conf(5)).
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// All that systemd-resolved knows of any device (systemd-resolved.service(8)).
const OF_RESOLVED: &str = "/run/systemd/resolve/resolv.conf";
/// What was written by hand before openresolv wrote over it.
const BY_HAND: &str = "/etc/resolv.conf.bak";
/// Where resolvconf has an entry of each device: Debian's (resolvconf(8)), and openresolv.
const OF_RESOLVCONF: [&str; 2] = ["/run/resolvconf/interface", "/run/resolvconf/interfaces"];

/// Whom libc asks, in its order.
pub fn asked_servers() -> Vec<IpAddr> {
    in_file(Path::new(RESOLV_CONF))
}

/// Whom systemd-resolved and resolvconf know, of whatever device, and whom a file named that openresolv put aside.
pub fn known_servers() -> Vec<IpAddr> {
    let mut files = vec![OF_RESOLVED.into(), BY_HAND.into()];
    for folder in OF_RESOLVCONF {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        files.extend(entries);
    }
    let mut known = Vec::new();
    for server in files.iter().flat_map(|file| in_file(file)) {
        if !known.contains(&server) {
            known.push(server);
        }
    }
    known
}

fn in_file(file: &Path) -> Vec<IpAddr> {
    servers_in(&fs::read_to_string(file).unwrap_or_default())
}

fn servers_in(text: &str) -> Vec<IpAddr> {
    let server = |line: &str| line.trim().strip_prefix("nameserver")?.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_as_libc_does() {
        let text = "# a comment\nnameserver 192.0.2.53 # ours\n nameserver 2001:db8::53\nnameserver fe80::1%eth0\nsearch example.net\n";
        let expect: Vec<IpAddr> = ["192.0.2.53", "2001:db8::53"].map(|text| text.parse().expect("an address")).into();
        assert_eq!(servers_in(text), expect);
    }
}
