//! mlvpn-rs: links weighed by what it measures, order restored within a window. Its configuration: mlvpn.toml.example
//! of the project. Keys are Curve25519's, in base64, as Hawser's own are.
//!
//! It refuses to be root: setpriv(1) gives it the capabilities of the project's systemd unit, and lets it read our
//! files and /dev/net/tun, which may be root's alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use hawser_config::PublicKey;
use ipnet::IpNet;

use super::{
    Adapter, ContenderPlan, Family, Ground, LOCAL, LabError, Options, Pair, Programs, REMOTE, StageLink, program,
};
use crate::contender::links::device;
use crate::portals::new_key;

/// The device, and the first link's port. Source: mlvpn.toml.example.
const DEVICE: &str = "mlvpn0";
const FIRST_PORT: u16 = 51_000;
/// How long order is waited for, in milliseconds. Source: mlvpn.toml.example.
const REORDER_MS: u32 = 50;
const MOST_REORDER_MS: u32 = 10_000;
/// Whom it runs as, and with what. Source: the project's mlvpn.service; capabilities(7).
const USER: &str = "65534";
const CAPABILITIES: &str = "+net_admin,+net_raw,+dac_override";

/// Its settings. Plain data.
pub(super) struct MlvpnRs {
    program: Option<PathBuf>,
    reorder_ms: u32,
    tunes_reordering: bool,
    is_redundant: bool,
}

/// What a configuration is written from. Borrowed.
struct End<'a> {
    role: &'static str,
    /// IPv4, and IPv6 where that is what it is to carry.
    addresses: (IpNet, Option<IpNet>),
    key_file: &'a str,
    peer: &'a PublicKey,
    socket: &'a str,
}

impl MlvpnRs {
    fn text(&self, end: &End<'_>, links: &str) -> String {
        let End { role, addresses: (v4, v6), key_file, peer, socket } = end;
        let mode = if *role == LOCAL { "client" } else { "server" };
        let v6 = v6.map(|address| format!("address6 = \"{address}\"\n")).unwrap_or_default();
        let Self { reorder_ms, tunes_reordering, is_redundant, .. } = self;
        format!(
            "mode = \"{mode}\"\n\n[tunnel]\nname = \"{DEVICE}\"\naddress = \"{v4}\"\n{v6}\n\
             [crypto]\nprivate_key_file = \"{key_file}\"\npeer_public_key = \"{peer}\"\n\n\
             [scheduler]\nreorder_window_ms = {reorder_ms}\nauto_tune_reorder_window = {tunes_reordering}\n\
             redundant_mode = {is_redundant}\n\n[control]\nsocket_path = \"{socket}\"\n{links}"
        )
    }
}

/// Sections of all links, of one end.
fn sections<'a>(role: &str, links: impl IntoIterator<Item = &'a StageLink>) -> String {
    let section = |(link, port): (&StageLink, u16)| {
        let far = SocketAddr::new(link.far_address, port);
        let (interface, more) = if role == LOCAL {
            (&link.name, format!("remote_addr = \"{far}\"\n"))
        } else {
            (&link.far_interface, format!("local_addr = \"{}\"\n", link.far_address))
        };
        section(&link.name, interface, port, &more)
    };
    links.into_iter().zip(FIRST_PORT..).map(section).collect()
}

fn section(name: &str, interface: &str, port: u16, more: &str) -> String {
    format!("\n[[links]]\nname = \"{name}\"\nbind_interface = \"{interface}\"\nlocal_port = {port}\n{more}")
}

impl Adapter for MlvpnRs {
    const KIND: &'static str = "mlvpn-rs";

    fn parse(_: &ContenderPlan, options: &mut Options, _: &Programs) -> Result<Self, LabError> {
        Ok(Self {
            program: options.path("program")?,
            reorder_ms: options.up_to("reorder-window-ms", MOST_REORDER_MS)?.unwrap_or(REORDER_MS),
            tunes_reordering: options.yes("auto-reorder", false)?,
            is_redundant: options.yes("redundant", false)?,
        })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let program = program::find(Self::KIND, ("program", self.program.as_deref()), "mlvpnd")?;
        let missing = |_| LabError::missing("setpriv, to run mlvpnd without being root", "apt-get install util-linux");
        let setpriv = program::find("setpriv", ("program", None), "setpriv").map_err(missing)?;
        let (local, remote) = (new_key()?, new_key()?);
        for (role, own, peer) in [(REMOTE, &remote, &local), (LOCAL, &local, &remote)] {
            let key_file = pair.write(&format!("{role}.key"), &own.to_base64())?;
            let [v4, v6] = device(usize::from(role == REMOTE));
            let socket = pair.folder.path().join(format!("{role}.sock"));
            let end = End {
                role,
                addresses: (v4, (ground.stage.inner == Family::V6).then_some(v6)),
                key_file: &key_file.to_string_lossy(),
                peer: &peer.public(),
                socket: &socket.to_string_lossy(),
            };
            let file = pair.write(&format!("{role}.toml"), &self.text(&end, &sections(role, ground.links)))?;
            let words = unprivileged(&program.to_string_lossy(), &file.to_string_lossy());
            pair.start(role, ground.namespace(role), &setpriv, words.iter().map(String::as_str))?;
            pair.bring_up(role, ground.namespace(role), DEVICE)?;
            ground.route(role, DEVICE, pair)?;
        }
        Ok(())
    }
}

/// What setpriv is told, so that it becomes the program.
fn unprivileged(program: &str, file: &str) -> Vec<String> {
    let [user, capabilities] = [USER, CAPABILITIES];
    let words = format!(
        "--reuid {user} --regid {user} --clear-groups --pdeathsig TERM --inh-caps {capabilities} \
         --ambient-caps {capabilities}"
    );
    let rest = ["--", program, "run", "--config", file];
    words.split(' ').chain(rest).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use hawser_config::PrivateKey;

    use super::super::parsed;
    use super::*;

    #[test]
    fn configurations_are_those_of_its_examples() {
        let own = PrivateKey::parse(&("AQEB".repeat(10) + "AQE=")).expect("32 bytes");
        let peer = own.public();
        let ([v4, v6], [remote, _]) = (device(0), device(1));
        let end = |role| End {
            role,
            addresses: if role == LOCAL { (v4, Some(v6)) } else { (remote, None) },
            key_file: "/folder/key",
            peer: &peer,
            socket: "/folder/socket",
        };
        let adapter: MlvpnRs = parsed("redundant = true");
        let links = section("wifi", "wifi", 51_000, "remote_addr = \"198.51.100.7:51000\"\n");
        assert_eq!(adapter.text(&end(LOCAL), &links), include_str!("golden/mlvpn-rs-local.toml"));
        let words = unprivileged("/bin/mlvpnd", "/folder/local.toml").join(" ");
        let expected = "--reuid 65534 --regid 65534 --clear-groups --pdeathsig TERM \
                        --inh-caps +net_admin,+net_raw,+dac_override --ambient-caps +net_admin,+net_raw,+dac_override \
                        -- /bin/mlvpnd run --config /folder/local.toml";
        assert_eq!(words, expected);
        let links = section("wifi", "far0", 51_000, "local_addr = \"198.51.100.7\"\n");
        assert_eq!(adapter.text(&end(REMOTE), &links), include_str!("golden/mlvpn-rs-remote.toml"));
    }
}
