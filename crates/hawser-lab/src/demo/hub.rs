//! `hawser demo hub`: a member of a hub is killed under a flow, and the flow goes on.
//!
//! 1. A site with two links, two members, a router and a server ([`crate::hub`]). No FRR: [`follow`] gives the
//!    router the member's route with the least metric, as BGP does.
//! 2. A portal in each member and in the site, whose address is routed to whichever member owns it.
//! 3. One TCP stream from the site to the server, a ping beside it; the active member's process is killed (SIGKILL).
//! 4. The figures, all from what the server received and when, and from its list of connections.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_portal::api::{PeerStatus, Status};
use hawser_wire::traffic::{Ping, Towards};
use hawser_wire::{Moment, Namespace};
use serde::Serialize;

use super::{rounded, table};
use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::hub::{Configurations, Network, SERVER, SITES, Site, follow, upward};
use crate::portals::{Portal, active};
use crate::topology::{TRANSFER_PORT, cubic};
use crate::wait::until;
use crate::workload::millis;

/// The members, as the site calls them, and the site.
const MEMBERS: [&str; 2] = ["zurich", "geneva"];
const SITE_NAME: &str = "site";
/// The rate of each of its links, Mbit/s.
const LINK_MBPS: f64 = 20.0;

/// How long until both members know what they are to the site, and every path works.
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(20);
/// The stream: until the kill, and from it until the end. The first second is slow start, and not counted.
const WARM_UP: Duration = Duration::from_secs(1);
const UNTIL_KILL: Duration = Duration::from_secs(5);
const AFTER_KILL: Duration = Duration::from_secs(6);
/// When the stream's rate counts as that of afterwards.
const SETTLED: Duration = Duration::from_secs(2);
const PING_INTERVAL: Duration = Duration::from_millis(20);
/// A connection that stands, as /proc/net/tcp has it (proc_net(5), tcp_states.h).
const ESTABLISHED: &str = "01";

/// What the demo found. The field names are a contract with scripts. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HubFigures {
    /// The member that was killed.
    pub killed: String,
    /// The one that owns the site since.
    pub owner: String,
    /// The longest time without a byte at the server from the kill on.
    pub gap_ms: f64,
    /// The stream before the kill, and from two seconds after it on.
    pub before_mbps: f64,
    /// See `before_mbps`.
    pub after_mbps: f64,
    /// Pings that were not answered, of all.
    pub pings_lost: usize,
    /// All of them.
    pub pings: usize,
    /// The stream's other end as the server's kernel knows it, before the kill.
    pub client_before: SocketAddr,
    /// The same at the end: the same connection.
    pub client_after: SocketAddr,
}

/// The portals' processes. They run from the start; ended on drop, before the folder goes.
struct Portals {
    site: Portal,
    members: Vec<Option<Portal>>,
    _folder: Folder,
}

/// Plays it with this `hawser` executable; `tell` is given what happens, a line each.
///
/// # Errors
/// Where it lacks root, a portal does not come to work, no other member takes over, or the stream ends.
pub fn run_hub(program: &Path, tell: &mut dyn FnMut(&str)) -> Result<HubFigures, LabError> {
    cleanup::start()?;
    let network = Network::new(&[LINK_MBPS], &MEMBERS)?;
    let next_hops = (0..MEMBERS.len()).map(|member| upward(member)[0]).collect();
    let _followers = follow(&network.members, &network.router, SITES[0], next_hops)?;
    let mut portals = start(program, &network)?;
    let active = wait(&portals, "both members and all paths to work", ready)?;
    tell(&format!(
        "a site with two links ({LINK_MBPS} Mbit/s, 10 ms), members {} and {}, a router, a server; without FRR: this demo gives \
         the router the best of the members' routes",
        MEMBERS[0], MEMBERS[1]
    ));
    play(&network, &mut portals, active, tell)
}

/// Steps 3 and 4.
fn play(
    network: &Network,
    portals: &mut Portals,
    active: usize,
    tell: &mut dyn FnMut(&str),
) -> Result<HubFigures, LabError> {
    let duration = UNTIL_KILL + AFTER_KILL;
    let ends = [(&network.sites[0], SITES[0].into()), (&network.server, SERVER.into())];
    let stream = cubic(Towards::Server, ends, duration);
    let ping = Ping { from: network.sites[0].clone(), destination: SERVER.into(), interval: PING_INTERVAL, duration };
    let (stream, ping) = (stream.start()?, ping.start()?);
    let start = Moment::now();
    let client_before = client_of(&network.server)?;
    tell(&format!("a stream from {client_before} to {SERVER}:{TRANSFER_PORT}, by {}", MEMBERS[active]));
    (start + UNTIL_KILL).sleep_until();
    let kill = Moment::now();
    // It says nothing to anybody.
    portals.members[active].take().into_iter().for_each(|portal| portal.process.kill());
    tell(&format!("{} is killed (SIGKILL)", MEMBERS[active]));
    let owner = wait(portals, "the other member to own the site", |portals| {
        holding(&portals.site.status()?, "active").filter(|owner| *owner != active)
    })?;
    tell(&format!("{} owns the site after {:.0} ms, as the site says", MEMBERS[owner], millis(Moment::now() - kill)));
    let end = start + (duration - GLANCE);
    end.sleep_until();
    let client_after = client_of(&network.server)?;
    let (received, ping) = (stream.finish()?, ping.finish()?);
    Ok(HubFigures {
        killed: MEMBERS[active].to_owned(),
        owner: MEMBERS[owner].to_owned(),
        gap_ms: rounded(millis(received.longest_gap(kill, end))),
        before_mbps: rounded(received.mbps_between(start + WARM_UP, kill)),
        after_mbps: rounded(received.mbps_between(kill + SETTLED, end)),
        pings_lost: ping.lost(),
        pings: ping.sent.len(),
        client_before,
        client_after,
    })
}

/// Step 2: all of them.
fn start(program: &Path, network: &Network) -> Result<Portals, LabError> {
    let folder = Folder::new()?;
    let sites = [Site { name: SITE_NAME, own: SITES[0], moving: &SITES[..1] }];
    Configurations { sites: &sites, members: &MEMBERS, etcd: None }.write(folder.path())?;
    let members = MEMBERS.iter().zip(&network.members);
    let members = members.map(|(name, member)| Portal::start(program, name, member, &folder).map(Some));
    let members = members.collect::<Result<_, LabError>>()?;
    let site = Portal::start(program, SITE_NAME, &network.sites[0], &folder)?;
    Ok(Portals { site, members, _folder: folder })
}

/// Waits for something that the portals say.
fn wait<T>(portals: &Portals, what: &str, found: impl Fn(&Portals) -> Option<T>) -> Result<T, LabError> {
    let found = until(PATIENCE, GLANCE, || Ok(found(portals)))?;
    found.ok_or_else(|| portals.site.process.fault(format!("waited {} s for {what}", PATIENCE.as_secs())))
}

/// The active member, once it and its standby know what they are, and each path works.
fn ready(portals: &Portals) -> Option<usize> {
    let status = portals.site.status()?;
    let (owner, standby) = (holding(&status, "active")?, holding(&status, "standby")?);
    let is = |member: usize, role: &str| {
        let status = portals.members[member].as_ref().and_then(Portal::status);
        status.is_some_and(|status| status.peers.iter().any(|peer| has_role(peer, role)))
    };
    let working = active(&status).count();
    (working == 2 * MEMBERS.len() && is(owner, "owner") && is(standby, "standby")).then_some(owner)
}

/// The member that is this to the site.
fn holding(status: &Status, role: &str) -> Option<usize> {
    let name = &status.peers.iter().find(|peer| has_role(peer, role))?.name;
    MEMBERS.iter().position(|member| member == name)
}

fn has_role(peer: &PeerStatus, role: &str) -> bool {
    peer.hub.as_ref().is_some_and(|hub| hub.role == role)
}

/// Who the server's kernel has a connection with at the stream's port.
fn client_of(server: &Namespace) -> Result<SocketAddr, LabError> {
    let read = || fs::read_to_string("/proc/thread-self/net/tcp");
    let table = server.run(read)?.map_err(|error| LabError::system("list connections of the server", error))?;
    let no_client = || LabError::refused("measure client", "the server has no connection".to_owned());
    client(&table, TRANSFER_PORT).ok_or_else(no_client)
}

/// The other end of the connection that stands, in a table as /proc/net/tcp has it.
fn client(table: &str, port: u16) -> Option<SocketAddr> {
    let own = format!(":{port:04X}");
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut standing = columns.filter(|columns| columns.get(3) == Some(&ESTABLISHED) && columns[1].ends_with(&own));
    let (address, port) = standing.next()?.get(2)?.split_once(':')?;
    let address = u32::from_str_radix(address, 16).ok()?;
    Some(SocketAddr::new(Ipv4Addr::from(address.to_le_bytes()).into(), u16::from_str_radix(port, 16).ok()?))
}

impl fmt::Display for HubFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, owner, gap_ms, before_mbps, after_mbps, pings_lost, pings, client_before, client_after } =
            self;
        let same = if client_before == client_after { "the same connection" } else { "another connection" };
        let (since, seen) =
            (format!("{owner} has the site since"), format!("as the server sees it, before and after: {same}"));
        let rows = [
            ("killed", killed.clone(), &*since),
            ("longest gap", format!("{gap_ms:.1} ms"), "at the server, from the kill on"),
            ("before", format!("{before_mbps:.1} Mbit/s"), "one TCP stream"),
            ("after", format!("{after_mbps:.1} Mbit/s"), "the same stream, from two seconds after the kill on"),
            ("pings lost", format!("{pings_lost} of {pings}"), "one each 20 ms"),
            ("client", client_after.to_string(), &*seen),
        ];
        f.write_str(&table([14, 20], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standing_connection_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
                     0: 00000000:1389 00000000:0000 0A 00000000\n\
                     1: 027200CB:1389 087100CB:9C40 01 00000000\n";
        assert_eq!(client(table, 5001), Some("203.0.113.8:40000".parse().expect("an address")));
        assert_eq!(client(table, 5002), None);
    }

    #[test]
    fn the_table_tells_every_figure_and_json_has_the_contracts_names() {
        let client: SocketAddr = "203.0.113.8:40000".parse().expect("an address");
        let figures = HubFigures {
            killed: "zurich".to_owned(),
            owner: "geneva".to_owned(),
            gap_ms: 176.0,
            before_mbps: 35.5,
            after_mbps: 34.25,
            pings_lost: 3,
            pings: 550,
            client_before: client,
            client_after: client,
        };
        let table = figures.to_string();
        for told in
            ["zurich", "geneva has", "176.0 ms", "35.5 Mbit/s", "34.2 Mbit/s", "3 of 550", "the same connection"]
        {
            assert!(table.contains(told), "{told} is not in\n{table}");
        }
        let other = HubFigures { client_after: "203.0.113.8:1".parse().expect("an address"), ..figures.clone() };
        assert!(other.to_string().contains("another connection"));
        assert_eq!(
            serde_json::to_string(&figures).expect("plain data"),
            r#"{"killed":"zurich","owner":"geneva","gap_ms":176.0,"before_mbps":35.5,"after_mbps":34.25,"pings_lost":3,"pings":550,"client_before":"203.0.113.8:40000","client_after":"203.0.113.8:40000"}"#
        );
    }
}
