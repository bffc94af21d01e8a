//! Strangers that open connections, with TLS or without, by the thousand; and a portal with few descriptors.

use crate::SPELL;
use crate::attacks::hellos;

#[test]
fn two_thousand_hellos_a_second_cost_a_peer_nothing() {
    hellos::by_the_thousand(SPELL).assert();
}

#[test]
fn a_portal_with_few_descriptors_neither_spins_nor_loses_its_peers() {
    for descriptors in [128, 64] {
        hellos::few_descriptors(descriptors, SPELL).assert();
    }
}
