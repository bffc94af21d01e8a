//! Steps 1 and 2: what of this host itself breaks a bond: its clock, and a filter of answers.

use std::time::{Duration, SystemTime};

use hawser_net::netcfg::SysctlKey;

use super::finding::Finding;
use super::links::OneLink;

/// No clock says less that is right: 2026-01-01, in seconds of the Unix time. Hosts without a battery begin in 1970, or
/// at the last time that they wrote down.
const SURELY: Duration = Duration::from_secs(1_767_225_600);
/// Strict reverse path filtering (ip-sysctl of the kernel, RFC 3704 section 2.2).
const STRICT: &str = "1";

/// A clock that is surely wrong: tokens expire by it, and the months of a `data_cap` begin.
pub fn clock(now: SystemTime) -> Option<Finding> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let years = SURELY.saturating_sub(since).as_secs_f64() / (365.25 * 24.0 * 3_600.0);
    (since < SURELY).then(|| {
        let text = format!("the clock of this host is wrong by {years:.1} years at least");
        Finding::fault("clock", "", text, "sudo timedatectl set-ntp true; or sudo date -s 'YYYY-MM-DD HH:MM'")
    })
}

/// Whether answers by a link are taken. The portal loosens the filter when it starts: who made it strict came later.
pub fn takes_answers(link: &OneLink, findings: &mut Vec<Finding>) -> bool {
    let interface = link.interface.as_str();
    let strict = ["all", interface].into_iter().filter_map(rp_filter).max().is_some_and(|value| value == STRICT);
    if strict {
        let text = format!("link {}: strict rp_filter on {interface} drops what comes back by it", link.name);
        let cure = format!("sudo sysctl -w net.ipv4.conf.{interface}.rp_filter=2; what set it? sysctl --system shows");
        findings.push(Finding::fault("rp-filter", &link.name, text, cure));
    }
    !strict
}

/// The kernel takes the larger one of `all` and the interface's own.
fn rp_filter(interface: &str) -> Option<String> {
    let key = SysctlKey::rp_filter(interface).ok()?;
    key.read().ok().map(|value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_before_this_program_is_wrong() {
        let at = |seconds| clock(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(at(0).is_some_and(|found| found.text.contains("by 56.0 years")), "{:?}", at(0));
        assert!(at(SURELY.as_secs() - 1).is_some());
        assert_eq!(at(SURELY.as_secs()), None);
    }
}
