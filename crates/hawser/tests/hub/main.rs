//! A hub of real processes: two homes with two links each, three members, three servers of etcd, a router with FRR, a
//! server beyond. One member ends, in every way that a process or a machine can, and every flow lives. Run by `make
//! hub-test`; needs root, and Debian's frr, etcd, conntrackd and e2fsprogs.
//!
//! 1. `world` makes the namespaces and the portals of a `setup` (with `store`, `ipv6`, and `frr` and `nat` by
//!    `contrib`). 2. `traffic` and `conversations` are what people do meanwhile, at both homes. 3. `cases` does `harm`
//!    (by `faults`), and `bars` judges what came of the traffic; `owners`, that nobody owned beside another; `idle` has
//!    none. 4. `etcd_cases` does harm to etcd, `etcd_hangs` and `etcd_full` to its disks, `clocks` to clocks (by
//!    `wall_clock`). 5. `figures` keeps each run in target/tmp/hub-processes.json, from which
//!    docs/results/hub-processes.json is made.

mod bars;
mod cases;
mod clocks;
mod contrib;
mod conversations;
#[path = "../support/disk.rs"]
mod disk;
#[path = "../support/etcd.rs"]
mod etcd;
mod etcd_cases;
mod etcd_full;
mod etcd_hangs;
#[path = "../support/faketime.rs"]
mod faketime;
mod faults;
mod figures;
mod frr;
mod halts;
mod harm;
mod idle;
mod ipv6;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../tunnel/lab.rs"]
mod lab;
mod nat;
mod owners;
mod setup;
mod store;
mod traffic;
mod wall_clock;
mod world;
