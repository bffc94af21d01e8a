//! Links, TUN devices, workers and network configuration, against the running kernel. Needs root.

#[path = "../support/forged.rs"]
mod forged;
mod full_socket;
mod ip_link;
mod marks;
mod netcfg;
#[path = "../../../hawser-core/tests/support/mod.rs"]
mod portals;
#[path = "../support/mod.rs"]
mod support;
mod tcp_link;
mod tun;
mod udp_link;
mod udp_refusals;
mod workers;
