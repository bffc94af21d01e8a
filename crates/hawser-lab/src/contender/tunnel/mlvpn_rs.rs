//! mlvpn-rs: links weighed by what it measures, order restored within a window. Its configuration: mlvpn.toml.example
//! of the project. Keys are Curve25519's, in base64, as Hawser's own are.
//!
//! It refuses to be root: setpriv(1) gives it the capabilities of the project's systemd unit, and lets it read our
//! files and /dev/net/tun, which may be root's alone.

use std::net::SocketAddr;

use hawser_config::PublicKey;
use ipnet::IpNet;

use super::{Adapter, Family, Ground, LOCAL, LabError, Options, Pair, REMOTE, StageLink, pair};
use crate::contender::links::device;
use crate::portals::new_key;

/// The device, and the first link's port. Source: mlvpn.toml.example.
const DEVICE: &str = "mlvpn0";
const FIRST_PORT: u16 = 51_000;
/// How long order is waited for, in milliseconds. Source: mlvpn.toml.example.
const REORDER_MS: u32 = 50;
/// Whom it runs as, and with what. Source: the project's mlvpn.service; capabilities(7).
const USER: &str = "65534";
const CAPABILITIES: &str = "+net_admin,+net_raw,+dac_override";

/// Its settings. Plain data.
pub(super) struct MlvpnRs {
    reorder_ms: u32,
    tunes_reordering: bool,
    is_redundant: bool,
}

impl MlvpnRs {
    /// What an end reads. Its addresses are IPv4's, and IPv6's where that is what it is to carry.
    fn text(
        &self,
        role: &str,
        (v4, v6): (IpNet, Option<IpNet>),
        [key_file, socket]: [&str; 2],
        peer: &PublicKey,
        links: &str,
    ) -> String {
        let mode = if role == LOCAL { "client" } else { "server" };
        let v6 = v6.map(|address| format!("address6 = \"{address}\"\n")).unwrap_or_default();
        let Self { reorder_ms, tunes_reordering, is_redundant } = self;
        format!(
            "mode = \"{mode}\"\n\n[tunnel]\nname = \"{DEVICE}\"\naddress = \"{v4}\"\n{v6}\n\
             [crypto]\nprivate_key_file = \"{key_file}\"\npeer_public_key = \"{peer}\"\n\n\
             [scheduler]\nreorder_window_ms = {reorder_ms}\nauto_tune_reorder_window = {tunes_reordering}\n\
             redundant_mode = {is_redundant}\n\n[control]\nsocket_path = \"{socket}\"\n{links}"
        )
    }
}

/// The section of a link by which the remote end is reached there; an end's interface has its name.
fn section(role: &str, name: &str, far: SocketAddr) -> String {
    let address =
        if role == LOCAL { format!("remote_addr = \"{far}\"") } else { format!("local_addr = \"{}\"", far.ip()) };
    let port = far.port();
    format!("\n[[links]]\nname = \"{name}\"\nbind_interface = \"{name}\"\nlocal_port = {port}\n{address}\n")
}

impl Adapter for MlvpnRs {
    const KIND: &'static str = "mlvpn-rs";
    const PROGRAM: Option<&'static str> = Some("mlvpnd");

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            reorder_ms: options.up_to("reorder-window-ms", 10_000)?.unwrap_or(REORDER_MS),
            tunes_reordering: options.yes("auto-reorder", false)?,
            is_redundant: options.yes("redundant", false)?,
        })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let missing = |_| LabError::missing("setpriv, to run mlvpnd without being root", "apt-get install util-linux");
        let setpriv = pair::find("setpriv", ("program", None), "setpriv").map_err(missing)?;
        let (local, remote) = (new_key()?, new_key()?);
        for (role, own, peer) in [(REMOTE, &remote, &local), (LOCAL, &local, &remote)] {
            let key_file = pair.write(&format!("{role}.key"), &own.to_base64())?;
            let [v4, v6] = device(usize::from(role == REMOTE));
            let socket = pair.folder.path().join(format!("{role}.sock"));
            let socket = socket.to_string_lossy();
            let addresses = (v4, (ground.stage.inner == Family::V6).then_some(v6));
            let section =
                |(link, port): (&StageLink, u16)| section(role, &link.name, SocketAddr::new(link.far_address, port));
            let links: String = ground.stage.links.iter().zip(FIRST_PORT..).map(section).collect();
            let text = self.text(role, addresses, [&key_file, &socket], &peer.public(), &links);
            let file = pair.write(&format!("{role}.toml"), &text)?;
            let words = unprivileged(&ground.program.to_string_lossy(), &file);
            pair.start(role, ground.namespace(role), &setpriv, words.iter().map(String::as_str))?;
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
        let files = ["/folder/key", "/folder/socket"];
        let adapter: MlvpnRs = parsed("redundant = true");
        let far = SocketAddr::from(([198, 51, 100, 7], FIRST_PORT));
        let links = section(LOCAL, "wifi", far);
        let text = adapter.text(LOCAL, (v4, Some(v6)), files, &peer, &links);
        assert_eq!(text, include_str!("golden/mlvpn-rs-local.toml"));
        let words = unprivileged("/bin/mlvpnd", "/folder/local.toml").join(" ");
        let expected = "--reuid 65534 --regid 65534 --clear-groups --pdeathsig TERM \
                        --inh-caps +net_admin,+net_raw,+dac_override --ambient-caps +net_admin,+net_raw,+dac_override \
                        -- /bin/mlvpnd run --config /folder/local.toml";
        assert_eq!(words, expected);
        let links = section(REMOTE, "wifi", far);
        let text = adapter.text(REMOTE, (remote, None), files, &peer, &links);
        assert_eq!(text, include_str!("golden/mlvpn-rs-remote.toml"));
    }
}
