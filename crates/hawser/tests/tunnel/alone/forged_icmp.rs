//! Forged ICMP errors against both portals under traffic, from somebody who knows addresses and ports.

use crate::SPELL;
use crate::attacks::forged_icmp;

#[test]
fn forged_icmp_changes_no_mtu_costs_no_datagram_and_no_time() {
    forged_icmp::flood(&[5_000, 20_000], SPELL).iter().for_each(|attack| attack.assert());
}
