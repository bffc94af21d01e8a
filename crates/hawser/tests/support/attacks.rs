//! Attacks on real portals under traffic, as long as is asked: seconds in CI, half a minute by `make endure`.

#[path = "forged_icmp.rs"]
pub mod forged_icmp;
#[path = "hellos.rs"]
pub mod hellos;
#[path = "nat_and_trains.rs"]
pub mod nat_and_trains;
