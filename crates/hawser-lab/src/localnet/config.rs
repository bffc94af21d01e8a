//! What the reference services read: certificates, keys, topology and settings of each AS, in a folder of its own.
//!
//! 1. `scion-pki testcrypto` makes all certificates; each AS gets the trust roots and its own.
//! 2. Each AS: `topology.json`, `staticInfoConfig.json`, `br.toml`, `cs.toml`.
//! 3. Each host: `sdN.toml`, and `dispN.toml` for the shim. Daemons share the AS's folder: what they keep has names of
//!    its own.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hawser_config::Keyword as _;
use hawser_scion::IsdAs;
use serde_json::{Map, Value, json};

use super::layout::{AsLayout, CONTROL_PORT, Layout, ROUTER_PORT};
use super::topology::{Announced, AsPlan, LinkKind, Topology};
use crate::cleanup;
use crate::error::LabError;
use crate::portals::any_of;

/// How long certificates are good: longer than any network runs.
const VALIDITY: &str = "365d";
/// Bytes of an AS's master keys. Source: the reference implementation's documentation, "AS certificates and keys".
const KEY_BYTES: usize = 16;
/// How often beacons go, and segments are registered and asked for: a network is whole after some of these.
const INTERVAL: &str = "1s";
/// What a router announces of the way through it: a veth and a turn of a process. Zero would mean that nothing is
/// known.
const INSIDE: Duration = Duration::from_micros(100);
/// A router's socket buffers, in bytes: some thousand packets, 20 ms of what it carries here.
const ROUTER_BUFFER: u32 = 4_000_000;
/// Where daemons listen for applications. Source: the reference implementation's default.
pub(super) const DAEMON_PORT: u16 = 30255;

/// Steps 1 to 3; each AS's folder lies in `root`, named as [`name_of`] says.
pub(super) fn write(layout: &Layout<'_>, services: &Path, root: &Path) -> Result<(), LabError> {
    // What runs here is noted nowhere, and would make the folder again behind the clean-up.
    let _making = cleanup::making();
    let crypto = certificates(layout.topology, services, root)?;
    for own in &layout.ases {
        as_folder(layout, own, &folder_of(root, own.plan.id), &crypto)
            .map_err(|error| LabError::system(format!("configure AS {}", own.plan.id), error))?;
    }
    Ok(())
}

/// An AS's name in file names: `1-ff00_0_110`.
pub(super) fn name_of(id: IsdAs) -> String {
    id.to_string().replace(':', "_")
}

/// An AS's folder.
pub(super) fn folder_of(root: &Path, id: IsdAs) -> PathBuf {
    root.join(name_of(id))
}

/// Step 1: the folder with what was made.
fn certificates(topology: &Topology, services: &Path, root: &Path) -> Result<PathBuf, LabError> {
    let (plan, made) = (root.join("crypto.topo"), root.join("crypto"));
    fs::write(&plan, crypto_plan(topology)).map_err(|error| LabError::system("plan certificates", error))?;
    let mut pki = Command::new(services.join("scion-pki"));
    pki.args(["testcrypto", "--as-validity", VALIDITY, "-t"]).arg(&plan).arg("-o").arg(&made).stdin(Stdio::null());
    let output = pki.output().map_err(|error| LabError::system("run scion-pki", error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim_end().to_owned();
        return Err(LabError::Refused { action: "make certificates with scion-pki".to_owned(), said });
    }
    Ok(made)
}

/// Who issues whose certificate: the first core of an ISD for all outside it. YAML, of which JSON is a part.
fn crypto_plan(topology: &Topology) -> String {
    let of = |plan: &AsPlan| {
        let issuer = topology.ases.iter().find(|other| other.core && other.id.isd() == plan.id.isd());
        let value = match plan.core {
            true => json!({"core": true, "voting": true, "authoritative": true, "issuing": true}),
            false => json!({"cert_issuer": issuer.map(|core| core.id.to_string()).unwrap_or_default()}),
        };
        (plan.id.to_string(), value)
    };
    json!({"ASes": topology.ases.iter().map(of).collect::<Map<_, _>>()}).to_string()
}

/// Steps 1 to 3, of an AS.
fn as_folder(layout: &Layout<'_>, own: &AsLayout<'_>, folder: &Path, crypto: &Path) -> io::Result<()> {
    for part in ["certs", "crypto/as", "keys", "db"] {
        fs::create_dir_all(folder.join(part))?;
    }
    copy_all(&crypto.join("trcs"), &folder.join("certs"))?;
    let made = crypto.join(format!("AS{}/crypto/as", own.plan.id.asn().to_string().replace(':', "_")));
    copy_all(&made, &folder.join("crypto/as"))?;
    for key in ["master0.key", "master1.key"] {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
        fs::write(folder.join("keys").join(key), STANDARD.encode(bytes))?;
    }
    fs::write(folder.join("topology.json"), topology_json(layout, own).to_string())?;
    fs::write(folder.join("staticInfoConfig.json"), static_info(layout, own.plan.id).to_string())?;
    all_settings(layout.topology.remote_daemons, own, folder)
}

/// Of the AS's services, and of its hosts'.
fn all_settings(remote_daemons: bool, own: &AsLayout<'_>, folder: &Path) -> io::Result<()> {
    let write = |service: &str, databases: &[&str], own: &str| {
        fs::write(folder.join(format!("{service}.toml")), settings(service, folder, databases) + own)
    };
    let buffers = format!("receive_buffer_size = {ROUTER_BUFFER}\nsend_buffer_size = {ROUTER_BUFFER}\n");
    write("br", &[], &format!("[router]\nnum_processors = 1\n{buffers}"))?;
    let interval = |what: &str| format!("{what}_interval = \"{INTERVAL}\"\n");
    let (beacons, query) = (["origination", "propagation", "registration"].map(interval).concat(), interval("query"));
    write("cs", &["trust", "beacon", "path"], &format!("[beaconing]\n{beacons}[path]\n{query}"))?;
    let any = any_of(own.router);
    let listen = if remote_daemons { any } else { Ipv4Addr::LOCALHOST.into() };
    let daemon = format!("[sd]\naddress = \"{}\"\n{query}", SocketAddr::new(listen, DAEMON_PORT));
    for host in 1..=own.hosts.len() {
        write(&format!("sd{host}"), &["trust", "path"], &daemon)?;
        if own.plan.shim {
            let shim = format!("local_udp_forwarding = true\nunderlay_addr = \"{any}\"");
            fs::write(folder.join(format!("disp{host}.toml")), dispatcher_settings(&format!("disp{host}"), &shim))?;
        }
    }
    Ok(())
}

/// What a service is called, where its AS's folder is, and its databases there.
fn settings(service: &str, folder: &Path, databases: &[&str]) -> String {
    let quoted = |path: &Path| toml::Value::from(path.to_string_lossy().into_owned());
    let database = |kind: &&str| {
        let file = folder.join("db").join(format!("{service}.{kind}.db"));
        format!("[{kind}_db]\nconnection = {}\n", quoted(&file))
    };
    let (config, databases) = (quoted(folder), databases.iter().map(database).collect::<String>());
    format!("[general]\nid = \"{service}\"\nconfig_dir = {config}\n[log.console]\nlevel = \"error\"\n{databases}")
}

/// The same of a dispatcher, with settings of its own.
pub(crate) fn dispatcher_settings(name: &str, own: &str) -> String {
    format!("[dispatcher]\nid = \"{name}\"\n{own}\n[log.console]\nlevel = \"error\"\n")
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn topology_json(layout: &Layout<'_>, AsLayout { plan, router, .. }: &AsLayout<'_>) -> Value {
    let mut interfaces = Map::new();
    for (link, near, [own, other]) in layout.at(plan.id) {
        let link_to = if (link.kind, near) == (LinkKind::Child, 1) { "parent" } else { link.kind.word() };
        let mut interface = json!({
            "underlay": {"local": own.underlay().to_string(), "remote": other.underlay().to_string()},
            "isd_as": link.ends[1 - near].to_string(),
            "link_to": link_to,
            "mtu": link.mtu,
            "bfd": {
                "desired_min_tx_interval": go_duration(link.bfd),
                "required_min_rx_interval": go_duration(link.bfd),
            },
        });
        if link.kind == LinkKind::Peer {
            interface["remote_interface_id"] = other.interface.into();
        }
        interfaces.insert(own.interface.to_string(), interface);
    }
    let at = |port| SocketAddr::new(*router, port).to_string();
    let service = json!({"cs": {"addr": at(CONTROL_PORT)}});
    json!({
        "attributes": if plan.core { vec!["core"] } else { Vec::new() },
        "isd_as": plan.id.to_string(),
        "mtu": plan.mtu,
        "dispatched_ports": format!("{}-{}", plan.dispatched.first, plan.dispatched.last),
        "control_service": service,
        "discovery_service": service,
        "border_routers": {"br": {"internal_addr": at(ROUTER_PORT), "interfaces": interfaces}},
    })
}

/// What the AS announces of its links, and of the ways between them.
fn static_info(layout: &Layout<'_>, id: IsdAs) -> Value {
    let announced = layout.at(id).map(|(link, near, [own, _])| (own.interface, link.announced[near]));
    let own: Vec<(u16, Announced)> = announced.collect();
    let (mut latency, mut bandwidth) = (Map::new(), Map::new());
    for (interface, announced) in &own {
        if let Some(inter) = announced.latency {
            let others = own.iter().filter(|(other, _)| other != interface);
            let intra: Map<_, _> = others.map(|(other, _)| (other.to_string(), go_duration(INSIDE).into())).collect();
            latency.insert(interface.to_string(), json!({"Inter": go_duration(inter), "Intra": intra}));
        }
        if let Some(rate) = announced.bandwidth {
            let kbit = rate.bits_per_second() / 1000;
            bandwidth.insert(interface.to_string(), json!({"Inter": kbit, "Intra": {}}));
        }
    }
    json!({"Latency": latency, "Bandwidth": bandwidth})
}

/// As Go's parsers read it; they want whole numbers.
fn go_duration(time: Duration) -> String {
    format!("{}us", time.as_micros())
}
