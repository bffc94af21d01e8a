//! What real portals must hold out for longer than CI lasts: run by `make endure`, for hours, or case by case. Each
//! case writes its figures to a file below target/tmp/endure, from which docs/results/endurance.md is made. Needs root.

#[path = "../support/attacks.rs"]
mod attacks;
mod burst;
#[path = "../support/bystander.rs"]
mod bystander;
mod cases;
mod census;
#[path = "../support/copied.rs"]
mod copied;
#[path = "../support/faketime.rs"]
mod faketime;
mod faults;
mod figures;
mod flows;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../tunnel/footprint.rs"]
mod footprint;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../../../hawser-net/tests/support/forged.rs"]
mod forged;
mod guest;
mod hub;
mod idle;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../tunnel/lab.rs"]
mod lab;
mod ordeals;
mod replays;
mod siege;
mod slope;
mod soak;
mod suspend;
