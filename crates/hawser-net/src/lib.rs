//! What touches the system: `tun` (a device with offloads), `link` (UDP in batches), `netcfg` (addresses, routes,
//! sysctls, the watch over interfaces, and the journal that undoes it all), `genetlink`, `daemon` (what a daemon has
//! around it: orders, and a control socket), `machine` (what its processor can do), `workers` (threads that seal and
//! open).

pub mod daemon;
pub mod genetlink;
pub mod link;
pub mod machine;
pub mod netcfg;
pub mod powers;
pub mod tun;
pub mod workers;
