//! Where the demo of a hub is played, and its portals.
//!
//! ```text
//!        one 192.0.1.1 -- .2 one      zurich 198.51.10.254 -- .1 out          up 10.0.1.1 -- .2 zurich
//!   site two 192.0.2.1 -- .2 two  net geneva 198.51.11.254 -- .1 out  members up 10.0.2.1 -- .2 geneva  router
//!   hawser0 203.0.113.8                      hawser0 10.77.0.1           lan 203.0.114.1 -- 203.0.114.2 server
//! ```

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_config::PrivateKey;
use hawser_portal::api::Status;
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Namespace, veth};
use ipnet::{IpNet, Ipv4Net};

use super::status;
use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::portals::{link_section, write_private};
use crate::process::Process;
use crate::topology::routes::{self, Route};

/// The members, as the site calls them.
pub const MEMBERS: [&str; 2] = ["zurich", "geneva"];
/// The site's address, which moves between members, and the server's. Source: RFC 5737, and beside it.
pub const SITE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 8);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 1);
/// The site's links.
const LINKS: [&str; 2] = ["one", "two"];
const LINK_MBPS: f64 = 20.0;
const ONE_WAY: Duration = Duration::from_millis(10);
const QUEUE: Duration = Duration::from_millis(100);
const MTU: u32 = 1_500;
/// Where members listen.
const PORT: u16 = 4920;
/// A connection that stands, as /proc/net/tcp has it (proc_net(5), tcp_states.h).
const ESTABLISHED: &str = "01";

/// The namespaces. Whole from the start; removed on drop, links first.
#[derive(Debug)]
pub struct Network {
    _links: Vec<EmulatedLink>,
    pub site: Namespace,
    pub members: Vec<Namespace>,
    pub router: Namespace,
    pub server: Namespace,
    _net: Namespace,
}

/// The portals' processes. They run from the start; ended on drop, before the folder goes.
#[derive(Debug)]
pub struct Portals {
    site: Process,
    members: Vec<Option<Process>>,
    folder: Folder,
}

/// A member's address towards the router, and the router's there.
pub fn upward(member: usize) -> [Ipv4Addr; 2] {
    let net = u8::try_from(member + 1).unwrap_or(u8::MAX);
    [1, 2].map(|host| Ipv4Addr::new(10, 0, net, host))
}

/// A member's address towards the site, and the next hop there.
fn outward(member: usize) -> [Ipv4Addr; 2] {
    let net = u8::try_from(member + 10).unwrap_or(u8::MAX);
    [1, 254].map(|host| Ipv4Addr::new(198, 51, net, host))
}

impl Network {
    /// All of it.
    pub fn new() -> Result<Self, LabError> {
        let _making = cleanup::making();
        let made = |tag| Namespace::new(tag);
        let (site, net, router, server) = (made("site")?, made("net")?, made("router")?, made("server")?);
        let links = LINKS.iter().zip(1..).map(|(name, number)| link(&site, &net, name, number));
        let links = links.collect::<Result<Vec<_>, LabError>>()?;
        let members = MEMBERS.iter().map(|name| made(name)).collect::<Result<Vec<_>, _>>()?;
        for (at, member) in members.iter().enumerate() {
            attach(member, &net, &router, at)?;
        }
        pair((&router, "lan", GATEWAY), (&server, "eth", SERVER))?;
        server.add_default_route(GATEWAY.into())?;
        for namespace in [&net, &router].into_iter().chain(&members) {
            namespace.set_forwarding(true)?;
        }
        Ok(Self { _links: links, site, members, router, server, _net: net })
    }

    /// Who the server's kernel has a connection with at a port of it.
    pub fn client(&self, port: u16) -> Result<SocketAddr, LabError> {
        let read = || fs::read_to_string("/proc/thread-self/net/tcp");
        let table =
            self.server.run(read)?.map_err(|error| LabError::system("list connections of the server", error))?;
        let no_client = || LabError::NoFigure { figure: "client", reason: "the server has no connection".to_owned() };
        client(&table, port).ok_or_else(no_client)
    }
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

fn link(site: &Namespace, net: &Namespace, name: &str, number: u8) -> Result<EmulatedLink, LabError> {
    let end = |namespace: &Namespace, host: u8| End::new(namespace, name, &[&format!("192.0.{number}.{host}/24")]);
    let direction = Direction::shaped(LINK_MBPS, ONE_WAY, QUEUE);
    let link = EmulatedLink::new(LinkSpec::symmetric(name, end(site, 1), end(net, 2), &direction))?;
    // Bound to an interface, a socket needs a route of that interface.
    routes::add(
        site,
        &Route {
            prefix: Ipv4Net::new_assert(Ipv4Addr::new(198, 51, 0, 0), 16),
            gateway: Ipv4Addr::new(192, 0, number, 2),
            interface: name.to_owned(),
            metric: number.into(),
        },
    )?;
    Ok(link)
}

/// A member between the net and the router.
fn attach(member: &Namespace, net: &Namespace, router: &Namespace, at: usize) -> Result<(), LabError> {
    let ([own, beyond], [up, next]) = (outward(at), upward(at));
    pair((member, "out", own), (net, MEMBERS[at], beyond))?;
    pair((member, "up", up), (router, MEMBERS[at], next))?;
    let to = |a, b, length| IpNet::new_assert(IpAddr::from(Ipv4Addr::new(a, b, 0, 0)), length);
    member.add_route(to(192, 0, 16), Some(beyond.into()), None)?;
    member.add_route(IpNet::new_assert(SERVER.into(), 32), Some(next.into()), None)?;
    Ok(())
}

fn pair(one: (&Namespace, &str, Ipv4Addr), other: (&Namespace, &str, Ipv4Addr)) -> Result<(), LabError> {
    let end = |(namespace, name, address): (&Namespace, &str, Ipv4Addr)| {
        End::new(namespace, name, &[&format!("{address}/24")])
    };
    Ok(veth(&end(one), &end(other), MTU)?)
}

impl Portals {
    /// All of them.
    pub fn start(program: &Path, network: &Network) -> Result<Self, LabError> {
        let _making = cleanup::making();
        let folder = Folder::new()?;
        write(folder.path())?;
        let start = |name: &str, namespace: &Namespace| {
            let config = folder.path().join(format!("{name}.toml"));
            Process::start(name, namespace, program, &["up", "-c", &config.to_string_lossy()], &folder)
        };
        let members = MEMBERS.iter().zip(&network.members).map(|(name, member)| start(name, member).map(Some));
        let members = members.collect::<Result<_, LabError>>()?;
        let site = start("site", &network.site)?;
        Ok(Self { site, members, folder })
    }

    /// A member's process is killed, and says nothing to anybody.
    pub fn kill(&mut self, member: usize) {
        self.members[member].take().into_iter().for_each(Process::kill);
    }

    pub fn site_status(&self) -> Option<Status> {
        status(&self.socket("site"))
    }

    pub fn member_status(&self, member: usize) -> Option<Status> {
        status(&self.socket(MEMBERS[member]))
    }

    /// An error, with what the site's portal said.
    pub fn fault(&self, fault: String) -> LabError {
        self.site.fault(fault)
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.sock"))
    }
}

/// Keys and configurations.
fn write(folder: &Path) -> Result<(), LabError> {
    let failed = |error| LabError::system("write configurations", error);
    let key = |name: &str| {
        let key = PrivateKey::generate().map_err(|error| LabError::system("make keys", error))?;
        write_private(&folder.join(format!("{name}.key")), &key.to_base64()).map_err(failed)?;
        Ok::<String, LabError>(key.public().to_string())
    };
    let portal = |name: &str| {
        let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
        let (key, socket, state) = (at(".key"), at(".sock"), at(".state"));
        format!("[portal]\nprivate_key_file = \"{key}\"\nsocket = \"{socket}\"\nstate_dir = \"{state}\"\n")
    };
    let site = key("site")?;
    let mut text = format!("{}[tun]\naddresses = [\"{SITE}/32\"]\n", portal("site"));
    LINKS.iter().for_each(|name| text += &link_section(name, "udp", ""));
    for (at, name) in MEMBERS.iter().enumerate() {
        let (key, endpoint) = (key(name)?, SocketAddr::new(outward(at)[0].into(), PORT));
        text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [\"{endpoint}\"]\n");
        if at == 0 {
            text += &format!("allowed_ips = [\"203.0.114.0/24\"]\nstandby = [\"{}\"]\n", MEMBERS[1]);
        }
        let member = format!(
            "{}listen = [\"0.0.0.0:{PORT}\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\n[[peer]]\nname = \"site\"\n\
             public_key = \"{site}\"\nallowed_ips = [\"{SITE}/32\"]\n",
            portal(name)
        );
        fs::write(folder.join(format!("{name}.toml")), member).map_err(failed)?;
    }
    fs::write(folder.join("site.toml"), text).map_err(failed)
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
    fn portals_understand_their_configurations() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path()).expect("it is written");
        for name in ["site", "zurich", "geneva"] {
            let text = fs::read_to_string(folder.path().join(format!("{name}.toml"))).expect("it is there");
            let config = hawser_config::Config::parse(&text, "demo.toml");
            assert!(config.is_ok(), "{text}\n{config:?}");
        }
    }
}
