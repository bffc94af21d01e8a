//! Step 4: whom names are asked at, and whether that is past the tunnel.
//!
//! 1. With `[tun] dns`: whether they are set, asked first, and behind the tunnel. 2. Whom the system asks beside or
//!    without them.

use std::net::IpAddr;

use hawser_config::Config;
use hawser_net::netcfg::{EVERY_NAME, NetConfigError, Resolver, Rtnl, asked_servers, known_servers};
use hawser_portal::api::{DnsStatus, Status};

use super::finding::Finding;
use super::routes::goes_by;

/// Both steps.
pub async fn look(
    rtnl: &Rtnl,
    config: &Config,
    status: &Status,
    findings: &mut Vec<Finding>,
) -> Result<(), NetConfigError> {
    let tun = config.tun.name.as_str();
    let asked = asked_servers();
    let ours = &config.tun.dns.servers;
    if !ours.is_empty() {
        findings.extend(not_asked(tun, ours, status.dns.as_ref(), &asked));
        for server in ours {
            if let Some(other) = goes_by(rtnl, *server, tun).await? {
                let text = format!("[tun] dns names {server}, and packets to it go by {other}, past the tunnel");
                let cure = "name one behind the tunnel: an inner address, or default_route = true";
                findings.push(Finding::notice("dns-outside", server, text, cure));
            }
        }
    }
    if config.tun.default_route {
        for server in others(ours, status.dns.as_ref(), asked, known_servers()) {
            if let Some(other) = goes_by(rtnl, server, tun).await? {
                let (when, cure) = match ours.is_empty() {
                    true => ("", "name a resolver behind the tunnel in [tun]: dns = [\"ADDRESS\"]".to_owned()),
                    false => (
                        " where those of [tun] dns do not answer",
                        "keep to them: openresolv or systemd-resolved do, in the place of Debian's resolvconf"
                            .to_owned(),
                    ),
                };
                let text = format!("names are asked for at {server} by {other}, past the tunnel{when}");
                findings.push(Finding::notice("dns-outside", server, text, cure));
            }
        }
    }
    Ok(())
}

/// Step 1.
fn not_asked(tun: &str, ours: &[IpAddr], set: Option<&DnsStatus>, asked: &[IpAddr]) -> Option<Finding> {
    if set.is_none_or(|set| set.servers != ours) {
        let text = "the name servers of [tun] dns are not set";
        let cure = "sudo systemctl reload hawser; why not: journalctl -u hawser";
        return Some(Finding::fault("dns-not-set", tun, text, cure));
    }
    // One on this host asks whom it is told to.
    let first = asked.first().filter(|first| !first.is_loopback() && !ours.contains(first))?;
    let text = format!("the name servers of [tun] dns are set, and /etc/resolv.conf has {first} asked first");
    let cure = "let it be kept by who sets them: ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf, or \
                /run/resolvconf/resolv.conf for Debian's resolvconf";
    Some(Finding::fault("dns-not-asked", tun, text, cure))
}

/// Step 2: whom libc asks beside ours. Behind one on this host are those that systemd-resolved and resolvconf know,
/// unless systemd-resolved asks ours for every name.
fn others(ours: &[IpAddr], set: Option<&DnsStatus>, asked: Vec<IpAddr>, known: Vec<IpAddr>) -> Vec<IpAddr> {
    let by_resolved = |set: &&DnsStatus| set.set_by == Resolver::Resolved.to_string();
    let all_by_ours = set.filter(by_resolved).is_some_and(|set| set.domains.iter().any(|domain| domain == EVERY_NAME));
    let mut others = asked;
    if others.iter().any(IpAddr::is_loopback) && !all_by_ours {
        others.extend(known);
    }
    others.retain(|server| !server.is_loopback() && !ours.contains(server));
    others.sort();
    others.dedup();
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn set(domain: &str) -> DnsStatus {
        DnsStatus { servers: vec![ip("10.77.0.1")], domains: vec![domain.into()], set_by: "systemd-resolved".into() }
    }

    #[test]
    fn servers_that_are_not_set_or_not_asked_are_named() {
        let (ours, stub, other) = (vec![ip("10.77.0.1")], ip("127.0.0.53"), ip("192.0.2.53"));
        let found = |set: Option<&DnsStatus>, asked: &[IpAddr]| not_asked("t", &ours, set, asked).map(|found| found.id);
        assert_eq!(found(None, &ours), Some("dns-not-set"));
        assert_eq!(found(Some(&DnsStatus::default()), &ours), Some("dns-not-set"), "others, from before a reload");
        assert_eq!(found(Some(&set("~.")), &[other]), Some("dns-not-asked"));
        for asked in [&ours[..], &[stub], &[ours[0], other]] {
            assert_eq!(found(Some(&set("~.")), asked), None, "{asked:?}");
        }
    }

    #[test]
    fn whom_the_system_asks_beside_ours_is_known() {
        let (ours, stub, other) = (ip("10.77.0.1"), ip("127.0.0.53"), ip("192.0.2.53"));
        let by_resolvconf = DnsStatus { set_by: "resolvconf".into(), ..set("~.") };
        for (own, set, asked, known, expect) in [
            (vec![], None, vec![other], vec![], vec![other]),
            (vec![], None, vec![stub], vec![other], vec![other]),
            (vec![ours], Some(set("~.")), vec![stub], vec![ours, other], vec![]),
            (vec![ours], Some(by_resolvconf), vec![stub], vec![ours, other], vec![other]),
            (vec![ours], Some(set("a.test")), vec![stub], vec![ours, other], vec![other]),
            (vec![ours], Some(set("~.")), vec![ours, other], vec![ours, other], vec![other]),
        ] {
            assert_eq!(others(&own, set.as_ref(), asked.clone(), known.clone()), expect, "{own:?} {asked:?} {known:?}");
        }
    }
}
