//! What the reference services read: certificates, keys, topology and settings of each AS, in a folder of its own.
//!
//! 1. `scion-pki testcrypto` makes all certificates; each AS gets the trust roots and its own.
//! 2. Each AS: `topology.json`, `staticInfoConfig.json`, `br.toml`, `cs.toml`.
//! 3. Each host: `sdN.toml`, and `dispN.toml` for the shim. Daemons share the AS's folder: what they keep has names of
//!    its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hawser_scion::IsdAs;
use serde_json::{Map, Value, json};

use super::layout::{AsLayout, Layout};
use super::services::Services;
use super::topology::{Announced, AsPlan, LinkKind, Topology};
use crate::error::LabError;

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
pub(super) fn write(topology: &Topology, layout: &Layout, services: &Services, root: &Path) -> Result<(), LabError> {
    let crypto = certificates(topology, services, root)?;
    for (plan, addresses) in topology.ases.iter().zip(&layout.ases) {
        let folder = folder_of(root, plan.id);
        as_folder(topology, layout, plan, addresses, &folder, &crypto)
            .map_err(|error| LabError::system(format!("configure AS {}", plan.id), error))?;
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
fn certificates(topology: &Topology, services: &Services, root: &Path) -> Result<PathBuf, LabError> {
    let (plan, made) = (root.join("crypto.topo"), root.join("crypto"));
    fs::write(&plan, crypto_plan(topology)).map_err(|error| LabError::system("plan certificates", error))?;
    let mut pki = Command::new(services.program("scion-pki"));
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
        let core = topology.ases.iter().find(|other| other.core && other.id.isd() == plan.id.isd());
        let issuer = core.map_or_else(String::new, |core| core.id.to_string());
        let value = match plan.core {
            true => json!({"core": true, "voting": true, "authoritative": true, "issuing": true}),
            false => json!({"cert_issuer": issuer}),
        };
        (plan.id.to_string(), value)
    };
    json!({"ASes": topology.ases.iter().map(of).collect::<Map<_, _>>()}).to_string()
}

fn as_folder(
    topology: &Topology,
    layout: &Layout,
    plan: &AsPlan,
    addresses: &AsLayout,
    folder: &Path,
    crypto: &Path,
) -> io::Result<()> {
    for part in ["certs", "crypto/as", "keys", "db"] {
        fs::create_dir_all(folder.join(part))?;
    }
    copy_all(&crypto.join("trcs"), &folder.join("certs"))?;
    let own = crypto.join(format!("AS{}/crypto/as", plan.id.asn().to_string().replace(':', "_")));
    copy_all(&own, &folder.join("crypto/as"))?;
    for key in ["master0.key", "master1.key"] {
        let mut bytes = [0; KEY_BYTES];
        let random = getrandom::fill(&mut bytes);
        random.map_err(|_| io::Error::other("no random bytes"))?;
        fs::write(folder.join("keys").join(key), STANDARD.encode(bytes))?;
    }
    let write = |name: &str, text: String| fs::write(folder.join(name), text);
    write("topology.json", topology_json(topology, layout, plan, addresses).to_string())?;
    write("staticInfoConfig.json", static_info(topology, layout, plan.id).to_string())?;
    write("br.toml", router_toml(folder))?;
    write("cs.toml", control_toml(folder))?;
    for host in 1..=addresses.hosts.len() {
        write(&format!("sd{host}.toml"), daemon_toml(topology, plan, folder, host))?;
        if plan.shim {
            write(&format!("disp{host}.toml"), shim_toml(addresses, host))?;
        }
    }
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn topology_json(topology: &Topology, layout: &Layout, plan: &AsPlan, addresses: &AsLayout) -> Value {
    let mut interfaces = Map::new();
    for (link, places) in topology.links.iter().zip(&layout.links) {
        for (near, far) in [(0, 1), (1, 0)].into_iter().filter(|&(near, _)| link.ends[near] == plan.id) {
            let link_to = match (link.kind, near) {
                (LinkKind::Core, _) => "core",
                (LinkKind::Peer, _) => "peer",
                (LinkKind::Child, 0) => "child",
                (LinkKind::Child, _) => "parent",
            };
            let mut interface = json!({
                "underlay": {
                    "local": places.ends[near].underlay().to_string(),
                    "remote": places.ends[far].underlay().to_string(),
                },
                "isd_as": link.ends[far].to_string(),
                "link_to": link_to,
                "mtu": link.mtu,
                "bfd": {
                    "desired_min_tx_interval": go_duration(link.bfd),
                    "required_min_rx_interval": go_duration(link.bfd),
                },
            });
            if link.kind == LinkKind::Peer {
                interface["remote_interface_id"] = places.ends[far].interface.into();
            }
            interfaces.insert(places.ends[near].interface.to_string(), interface);
        }
    }
    let service = json!({"cs": {"addr": addresses.control().to_string()}});
    json!({
        "attributes": if plan.core { vec!["core"] } else { Vec::new() },
        "isd_as": plan.id.to_string(),
        "mtu": plan.mtu,
        "dispatched_ports": plan.dispatched.to_string(),
        "control_service": service,
        "discovery_service": service,
        "border_routers": {"br": {"internal_addr": addresses.internal().to_string(), "interfaces": interfaces}},
    })
}

/// What the AS announces of its links, and of the ways between them.
fn static_info(topology: &Topology, layout: &Layout, id: IsdAs) -> Value {
    let mut own: Vec<(u16, Announced)> = Vec::new();
    for (link, places) in topology.links.iter().zip(&layout.links) {
        for end in [0, 1].into_iter().filter(|&end| link.ends[end] == id) {
            own.push((places.ends[end].interface, link.announced[end]));
        }
    }
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

fn general(id: &str, folder: &Path) -> String {
    let folder = toml::Value::from(folder.to_string_lossy().into_owned());
    format!("[general]\nid = \"{id}\"\nconfig_dir = {folder}\n[log.console]\nlevel = \"error\"\n")
}

fn database(section: &str, folder: &Path, file: &str) -> String {
    let file = folder.join("db").join(file).to_string_lossy().into_owned();
    format!("[{section}]\nconnection = {}\n", toml::Value::from(file))
}

fn router_toml(folder: &Path) -> String {
    let buffers = format!("receive_buffer_size = {ROUTER_BUFFER}\nsend_buffer_size = {ROUTER_BUFFER}\n");
    general("br", folder) + "[router]\nnum_processors = 1\n" + &buffers
}

fn control_toml(folder: &Path) -> String {
    let databases =
        ["trust", "beacon", "path"].map(|kind| database(&format!("{kind}_db"), folder, &format!("cs.{kind}.db")));
    let beaconing =
        ["origination", "propagation", "registration"].map(|what| format!("{what}_interval = \"{INTERVAL}\"\n"));
    let query = format!("[path]\nquery_interval = \"{INTERVAL}\"\n");
    general("cs", folder) + &databases.concat() + "[beaconing]\n" + &beaconing.concat() + &query
}

fn daemon_toml(topology: &Topology, plan: &AsPlan, folder: &Path, host: usize) -> String {
    let databases =
        ["trust", "path"].map(|kind| database(&format!("{kind}_db"), folder, &format!("sd{host}.{kind}.db")));
    let listen = match (topology.remote_daemons, plan.family) {
        (false, _) => format!("127.0.0.1:{DAEMON_PORT}"),
        (true, super::topology::Family::V4) => format!("0.0.0.0:{DAEMON_PORT}"),
        (true, super::topology::Family::V6) => format!("[::]:{DAEMON_PORT}"),
    };
    let service = format!("[sd]\naddress = \"{listen}\"\nquery_interval = \"{INTERVAL}\"\n");
    general(&format!("sd{host}"), folder) + &databases.concat() + &service
}

fn shim_toml(addresses: &AsLayout, host: usize) -> String {
    let underlay = if addresses.router.is_ipv4() { "0.0.0.0" } else { "::" };
    format!(
        "[dispatcher]\nid = \"disp{host}\"\nlocal_udp_forwarding = true\nunderlay_addr = \"{underlay}\"\n\
         [log.console]\nlevel = \"error\"\n"
    )
}
