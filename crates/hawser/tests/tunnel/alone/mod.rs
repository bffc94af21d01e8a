//! What measures how soon and how much: `.ci/tests` runs the tests of every module of this name with nothing beside.

mod forged_icmp;
mod hellos;
mod limits;
mod nat_and_trains;
mod peers;
mod speed;
