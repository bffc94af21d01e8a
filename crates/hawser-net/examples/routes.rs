//! How long a member of a hub takes to give a peer's route another metric, beside the routes that it has: the new one
//! is journalled and set before the old one is undone (hawser-portal, `System::announce`). Root, and a network
//! namespace of its own:
//!
//!     cargo build --release -p hawser-net --example routes
//!     sudo unshare --net sh -c 'ip link set lo up && target/release/examples/routes [ROUTES] [CHANGES]'

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Instant;

use hawser_net::netcfg::{Change, IfIndex, InstanceName, Metric, NetConfig, RouteSpec};
use ipnet::Ipv4Net;

/// Peers of a member that has 10,000 of them, owned or standing by: a hub of a million peers and 200 members.
const ROUTES: u32 = 10_000;
/// What a member sets where a rack of 20 dies there (docs/results/hub-million.json), twice.
const CHANGES: u32 = 1_000;
/// As a standby has them, and an owner (hawser-hub, `metric`).
const STANDBY: Metric = Metric(12_582_912);
const OWNER: Metric = Metric(8_388_606);
/// The first device of any network namespace is its loopback.
const LOOPBACK: u32 = 1;
/// Peers' addresses are from here on (RFC 1918).
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: u32| words.next().map_or(Ok(usual), |text| text.parse());
    let (routes, changes) = (number(ROUTES)?, number(CHANGES)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(routes, changes.min(routes)))
}

async fn measure(routes: u32, changes: u32) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut net = NetConfig::new(folder.path(), &InstanceName::new("routes")?)?;
    let device = IfIndex::new(LOOPBACK).ok_or("no such device")?;
    let route = |peer: u32, metric| {
        let to = Ipv4Net::from(Ipv4Addr::from(u32::from(FIRST) + peer));
        Change::Route(RouteSpec { metric: Some(metric), ..RouteSpec::to(to.into(), device) })
    };
    for peer in 0..routes {
        net.apply(route(peer, STANDBY)).await?;
    }
    let began = Instant::now();
    for peer in 0..changes {
        net.apply(route(peer, OWNER)).await?;
        net.undo(&route(peer, STANDBY)).await?;
    }
    let took = began.elapsed();
    println!(
        "{changes} of {routes} routes changed in {:.3} s: {:.0} a second, {:.0} us each",
        took.as_secs_f64(),
        f64::from(changes) / took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / f64::from(changes),
    );
    let report = net.undo_all().await;
    if report.is_clean() { Ok(()) } else { Err(format!("not undone: {:?}", report.failed).into()) }
}
