//! A remote portal with several homes, each a portal of its own by one link.
//!
//! ```text
//!   home N  up 192.0.1N.1 ------- 192.0.1N.2  hN  hub   lo 198.51.100.7: the remote portal's
//!   hawser0 10.77.0.(2 + N)                             hawser0 10.77.0.1
//! ```

use hawser_config::PrivateKey;
use hawser_portal::api::PathState;
use hawser_wire::{End, Namespace, veth};
use tempfile::TempDir;

use crate::lab::{ENDPOINT, Portal, REMOTE, parse, states, write_private};

const MTU: u32 = 1500;

pub struct Hub {
    pub portal: Portal,
    pub homes: Vec<Home>,
    pub namespace: Namespace,
    _folder: TempDir,
}

pub struct Home {
    pub portal: Portal,
    pub namespace: Namespace,
    pub address: String,
}

impl Hub {
    /// The portals, each home's path active.
    pub fn new(homes: usize) -> Self {
        let make = |tag| Namespace::new(tag).expect("makes a namespace (these tests need root)");
        let (namespace, folder) = (make("hub"), tempfile::tempdir().expect("a folder"));
        namespace.add_address("lo", parse(&format!("{ENDPOINT}/32"))).expect("an address");
        let write = |name: &str, text: &str| write_private(&folder.path().join(name), text);
        let portal = |name: &str| {
            let socket = folder.path().join(format!("{name}.sock"));
            format!("[portal]\nprivate_key_file = \"{name}.key\"\nsocket = \"{}\"\n", socket.display())
        };
        let key = |name: &str| {
            let key = PrivateKey::generate().expect("randomness");
            write(&format!("{name}.key"), &key.to_base64());
            key.public()
        };
        let hub_key = key("hub");
        let mut hub = format!("{}listen = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"{REMOTE}/24\"]\n", portal("hub"));
        let mut made = Vec::new();
        for number in 0..homes {
            let (home, name, address) = (make("home"), format!("home{number}"), format!("10.77.0.{}", 2 + number));
            let near = End::new(&home, "up", &[&format!("192.0.1{number}.1/24")]);
            veth(&near, &End::new(&namespace, &format!("h{number}"), &[&format!("192.0.1{number}.2/24")]), MTU)
                .expect("a veth pair");
            let gateway = Some(parse(&format!("192.0.1{number}.2")));
            home.add_route(parse(&format!("{ENDPOINT}/32")), gateway, Some("up")).expect("a route");
            hub += &format!(
                "[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\nallowed_ips = [\"{address}/32\"]\n",
                key(&name)
            );
            let text = format!(
                "{}[tun]\naddresses = [\"{address}/24\"]\n[[link]]\nname = \"up\"\ninterface = \"up\"\n[[peer]]\n\
                 name = \"hub\"\npublic_key = \"{hub_key}\"\nendpoints = [\"{ENDPOINT}:4920\"]\nallowed_ips = [\"{REMOTE}/32\"]\n",
                portal(&name)
            );
            write(&format!("{name}.toml"), &text);
            made.push((home, name, address));
        }
        write("hub.toml", &hub);
        let portal = Portal::start(&namespace, folder.path(), "hub");
        let start = |(namespace, name, address): (Namespace, String, String)| {
            let portal = Portal::start(&namespace, folder.path(), &name);
            portal.wait_for("its path to be active", |status| states(status) == [PathState::Active]);
            Home { portal, namespace, address }
        };
        let homes = made.into_iter().map(start).collect();
        Self { portal, homes, namespace, _folder: folder }
    }
}
