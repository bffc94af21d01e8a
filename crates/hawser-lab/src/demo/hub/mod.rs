//! `hawser demo hub`: a member of a hub is killed under a flow, and the flow goes on.
//!
//! 1. A site with two links, two members, a router and a server ([`crate::hub`]). No FRR: a [`Follower`] gives the
//!    router the member's route with the least metric, as BGP does.
//! 2. A portal in each member and in the site ([`portals`]), whose address is routed to whichever member owns it.
//! 3. One TCP stream from the site to the server, a ping beside it; the active member's process is killed (SIGKILL).
//! 4. The figures, all from what the server received and when, and from its list of connections.

mod client;
mod portals;

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hawser_portal::api::{PathState, Status};
use hawser_wire::Moment;
use hawser_wire::traffic::{Congestion, Ping, TcpTransfer};
use serde::Serialize;

use super::figures::rounded;
use crate::cleanup;
use crate::error::LabError;
use crate::hub::{Follower, Network, SERVER, SITES, upward};
use crate::wait::until;
use portals::Portals;

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
/// The port of the stream.
const PORT: u16 = 5001;

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

/// Plays it with this `hawser` executable; `tell` is given what happens, a line each.
///
/// # Errors
/// Where it lacks root, a portal does not come to work, no other member takes over, or the stream ends.
pub fn run_hub(program: &Path, tell: &mut dyn FnMut(&str)) -> Result<HubFigures, LabError> {
    cleanup::start()?;
    let network = Network::new(&[LINK_MBPS], &MEMBERS)?;
    let next_hops = (0..MEMBERS.len()).map(|member| upward(member)[0]).collect();
    let _follower = Follower::start(&network.members, &network.router, SITES[0], next_hops)?;
    let mut portals = Portals::start(program, &network)?;
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
    let stream = upload(network, duration);
    let ping = Ping { from: network.sites[0].clone(), destination: SERVER.into(), interval: PING_INTERVAL, duration };
    let (stream, ping) = (stream.start()?, ping.start()?);
    let start = Moment::now();
    let client_before = client::of(&network.server, PORT)?;
    tell(&format!("a stream from {client_before} to {SERVER}:{PORT}, by {}", MEMBERS[active]));
    (start + UNTIL_KILL).sleep_until();
    let kill = Moment::now();
    portals.kill(active);
    tell(&format!("{} is killed (SIGKILL)", MEMBERS[active]));
    let owner = wait(portals, "the other member to own the site", |portals| {
        holding(&portals.site_status()?, "active").filter(|owner| *owner != active)
    })?;
    tell(&format!("{} owns the site after {:.0} ms, as the site says", MEMBERS[owner], millis(Moment::now() - kill)));
    let end = start + (duration - GLANCE);
    end.sleep_until();
    let client_after = client::of(&network.server, PORT)?;
    let (received, ping) = (stream.finish()?, ping.finish()?);
    Ok(HubFigures {
        killed: MEMBERS[active].to_owned(),
        owner: MEMBERS[owner].to_owned(),
        gap_ms: rounded(millis(received.longest_gap(kill, end))),
        before_mbps: rounded(received.mbps_between(start + WARM_UP, kill)),
        after_mbps: rounded(received.mbps_between(kill + SETTLED, end)),
        pings_lost: ping.sent.len() - ping.echoes.len(),
        pings: ping.sent.len(),
        client_before,
        client_after,
    })
}

/// From the site to the server.
fn upload(network: &Network, duration: Duration) -> TcpTransfer {
    TcpTransfer {
        from: network.sites[0].clone(),
        to: network.server.clone(),
        destination: SocketAddr::new(SERVER.into(), PORT),
        source: Some(SITES[0].into()),
        congestion: Congestion::Cubic,
        duration,
    }
}

/// Waits for something that the portals say.
fn wait<T>(portals: &Portals, what: &str, found: impl Fn(&Portals) -> Option<T>) -> Result<T, LabError> {
    let found = until(PATIENCE, GLANCE, || Ok(found(portals)))?;
    found.ok_or_else(|| portals.fault(format!("waited {} s for {what}", PATIENCE.as_secs())))
}

/// The active member, once it and its standby know what they are, and each path works.
fn ready(portals: &Portals) -> Option<usize> {
    let status = portals.site_status()?;
    let paths = status.peers.iter().flat_map(|peer| &peer.paths);
    let working = paths.filter(|path| path.state == PathState::Active).count();
    let (active, standby) = (holding(&status, "active")?, holding(&status, "standby")?);
    let is = |member: usize, role: &str| {
        let status = portals.member_status(member);
        status
            .is_some_and(|status| status.peers.iter().any(|peer| peer.hub.as_ref().is_some_and(|hub| hub.role == role)))
    };
    (working == 2 * MEMBERS.len() && is(active, "owner") && is(standby, "standby")).then_some(active)
}

/// The member that is this to the site.
fn holding(status: &Status, role: &str) -> Option<usize> {
    let held = |peer: &&hawser_portal::api::PeerStatus| peer.hub.as_ref().is_some_and(|hub| hub.role == role);
    let name = &status.peers.iter().find(held)?.name;
    MEMBERS.iter().position(|member| member == name)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl fmt::Display for HubFigures {
    /// The table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, owner, gap_ms, before_mbps, after_mbps, pings_lost, pings, client_before, client_after } =
            self;
        let same = if client_before == client_after { "the same connection" } else { "another connection" };
        let rows = [
            ("killed", killed.clone(), format!("{owner} has the site since")),
            ("longest gap", format!("{gap_ms:.1} ms"), "at the server, from the kill on".to_owned()),
            ("before", format!("{before_mbps:.1} Mbit/s"), "one TCP stream".to_owned()),
            (
                "after",
                format!("{after_mbps:.1} Mbit/s"),
                "the same stream, from two seconds after the kill on".to_owned(),
            ),
            ("pings lost", format!("{pings_lost} of {pings}"), "one each 20 ms".to_owned()),
            ("client", client_after.to_string(), format!("as the server sees it, before and after: {same}")),
        ];
        let mut text = String::new();
        for (name, value, remark) in rows {
            writeln!(text, "{name:<14}{value:>20}   {remark}")?;
        }
        f.write_str(text.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
