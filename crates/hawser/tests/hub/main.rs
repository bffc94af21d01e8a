//! A hub of real processes: a home with two links, two members, a router, a server beyond. One member ends, in every
//! way that a process or a machine can, and every flow lives. Run by `make hub-test`; needs root, and Debian's frr.
//!
//! 1. `world` makes the namespaces and the portals (`nat`). 2. hawser-lab's follower, or `frr`, brings
//!    the server's packets to the member that announces the home. 3. `traffic` and `conversations` are what people do
//!    meanwhile. 4. `cases` does harm, and judges what came of the traffic; `owners`, that nobody owned beside another.
//! 5. `figures` keeps each run in target/tmp/hub-processes.json, from which docs/results/hub-processes.json is made.
//! 6. `etcd_cases` does harm to etcd, where the hub's peers are there.

mod cases;
mod conversations;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../support/etcd.rs"]
mod etcd;
mod etcd_cases;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../support/etcd_hub.rs"]
mod etcd_hub;
#[path = "../support/faketime.rs"]
mod faketime;
mod figures;
mod frr;
mod halts;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../tunnel/lab.rs"]
mod lab;
mod nat;
mod owners;
mod traffic;
mod world;
