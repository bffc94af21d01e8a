//! `hawser up` as it runs: two portals as processes in namespaces of their own. Needs root.

mod alone;
mod answering;
#[path = "../../../hawser-wire/tests/support/at_rest.rs"]
mod at_rest;
#[path = "../support/attacks.rs"]
mod attacks;
mod auto;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../support/bystander.rs"]
mod bystander;
mod capture;
mod direct;
mod dns;
mod doctor;
mod dual;
mod ends;
#[path = "../support/faketime.rs"]
mod faketime;
mod flows;
mod footprint;
#[path = "../../../hawser-net/tests/support/forged.rs"]
mod forged;
mod forward;
mod gateway;
mod halts;
mod home;
mod kill_switch;
mod lab;
#[path = "../support/limited.rs"]
mod limited;
mod links;
mod living;
mod marks;
#[path = "../../../hawser-wire/tests/common/measured.rs"]
mod measured;
mod metrics;
mod names;
mod nested;
mod pairing;
mod protection;
mod refused;
mod reload;
mod repairs;
mod sandbox;
mod takeover;
mod talk;
mod terms;
mod threads;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../support/tmux.rs"]
mod tmux;
#[cfg(feature = "top")]
mod top;
mod traffic;
mod transports;
#[path = "../support/tshark.rs"]
mod tshark;
mod via;

/// How long each attack goes on here; `make endure` has them at full length.
const SPELL: std::time::Duration = std::time::Duration::from_secs(4);
