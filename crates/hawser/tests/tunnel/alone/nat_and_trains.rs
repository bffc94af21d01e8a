//! A NAT on the local portal's own host that changes ports: the kernel then spoils every segment that it cuts of a
//! train.

use crate::attacks::nat_and_trains::{SHARE, upload};
use crate::lab::ms;

#[test]
fn behind_a_nat_that_spoils_trains_datagrams_go_one_by_one() {
    let (usual, told, without) = upload(false, ms(6_000));
    assert_eq!((told, without), (0, false));
    let (rate, told, without) = upload(true, ms(6_000));
    assert_eq!((told, without), (1, true), "the log says so once, and the status");
    assert!(rate >= usual * SHARE, "{rate} Mbit/s from the third second on, {usual} without a NAT");
}
