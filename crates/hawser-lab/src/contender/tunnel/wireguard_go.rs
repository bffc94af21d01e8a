//! wireguard-go on one link; and with engarde, which sends every packet of WireGuard on every link.
//!
//! 1. Go builds it from its module into the cache, once, at the exact version that go/go.mod names.
//! 2. On one link, what goes to its port is steered over that, whatever the other links' metrics.
//! 3. A process at each end makes its TUN device; keys, endpoint and allowed addresses go by its control socket (no
//!    `wg` program is needed).
//! 4. With engarde the local one calls engarde's client on its own host. That sends by every interface that it is not
//!    told to leave out: all that are no links. Its configuration: engarde.yml.sample of the project.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_config::PrivateKey;
use ipnet::IpNet;

use super::{Adapter, Ground, LOCAL, LabError, Options, Pair, REMOTE, Stage, pair};
use crate::contender::links::steer;
use crate::go::GoModule;
use crate::portals::{any_of, new_key};
use crate::process::Process;
use crate::text::hex;
use crate::wait::until;

/// The program, which is a module of its own.
const MODULE: GoModule = GoModule {
    name: "wireguard-go",
    files: &[("go.mod", include_str!("../../../go/go.mod")), ("go.sum", include_str!("../../../go/go.sum"))],
    packages: &["golang.zx2c4.com/wireguard"],
};
/// Where it listens for configuration, below its root; /var/run is /run. Source: wireguard's cross-platform
/// documentation.
const SOCKETS: &str = "run/wireguard";
/// Where the remote one listens for datagrams. Source: wg(8).
const PORT: u16 = 51820;
/// Where engarde's client and its server listen. Source: engarde.yml.sample.
const CLIENT_PORT: u16 = 59_401;
const SERVER_PORT: u16 = 59_501;
/// How long a process may take to open its socket, and how often we look.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(10);

/// Its settings: none of its own.
pub(super) struct WireGuardGo;

impl Adapter for WireGuardGo {
    const KIND: &'static str = "wireguard-go";
    const ON_ONE_LINK: bool = true;

    fn parse(_: &mut Options) -> Result<Self, LabError> {
        Ok(Self)
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let (program, link) = (build(ground)?, ground.used[0]);
        steer(ground.stage, link, PORT, &mut pair.undo)?;
        wire(ground, pair, &program, SocketAddr::new(ground.stage.links[link].far_address, PORT))
    }
}

/// engarde's settings. Plain data.
pub(super) struct Engarde {
    /// The client and the server, where they are told.
    programs: [Option<PathBuf>; 2],
}

impl Adapter for Engarde {
    const KIND: &'static str = "engarde";

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self { programs: [options.path("client")?, options.path("server")?] })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let [client, server] = &self.programs;
        let client = pair::find("engarde-client", ("client", client.as_deref()), "engarde-client")?;
        let server = pair::find("engarde-server", ("server", server.as_deref()), "engarde-server")?;
        let wireguard = build(ground)?;
        let others = others(ground.stage)?;
        let at = |address| SocketAddr::new(address, SERVER_PORT);
        let links = ground.stage.links.iter();
        let overrides: Vec<_> = links.map(|link| (link.name.as_str(), at(link.far_address))).collect();
        let (call, listen) = (at(ground.stage.endpoint), at(any_of(ground.stage.endpoint)));
        let ends = [(REMOTE, server, server_text(listen)), (LOCAL, client, client_text(call, &others, &overrides))];
        for (role, program, text) in ends {
            let file = pair.write(&format!("{role}.yml"), &text)?;
            pair.start(role, ground.namespace(role), &program, [file.as_str()])?;
        }
        wire(ground, pair, &wireguard, SocketAddr::from((Ipv4Addr::LOCALHOST, CLIENT_PORT)))
    }
}

/// Step 4: the local end's interfaces that are no links.
fn others(stage: &Stage) -> Result<Vec<String>, LabError> {
    let listing = |error| LabError::system("list interfaces", error);
    // Source: proc_pid_net(5).
    let told = stage.local.run(|| fs::read_to_string("/proc/thread-self/net/dev"))?.map_err(listing)?;
    let all = told.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    let others = all.filter(|name| stage.links.iter().all(|link| link.name != *name));
    Ok(others.map(str::to_owned).chain([device(LOCAL)]).collect())
}

/// Step 1; gives its path.
fn build(ground: &Ground<'_>) -> Result<PathBuf, LabError> {
    Ok(MODULE.build(&ground.programs.cache, &|line| tracing::info!("{line}"))?.join("wireguard"))
}

/// The device of an end. Both ends' sockets lie in one folder: their devices' names tell them apart.
fn device(role: &str) -> String {
    format!("wg-{role}")
}

/// Step 3: WireGuard between both ends; the local one calls this address.
fn wire(ground: &Ground<'_>, pair: &mut Pair, program: &Path, call: SocketAddr) -> Result<(), LabError> {
    let (local_key, remote_key) = (new_key()?, new_key()?);
    let remote = configuration(&remote_key, Some(PORT), &local_key, None, &ground.behind(|ends| ends.client));
    let local = configuration(&local_key, None, &remote_key, Some(call), &ground.behind(|ends| ends.server));
    for (role, text) in [(REMOTE, remote), (LOCAL, local)] {
        let device = device(role);
        let name = format!("{role} wireguard-go");
        let process = Process::start(&name, ground.namespace(role), program, &["-f", &device], &pair.folder)?;
        tell(&process, &pair.folder.path().join(SOCKETS).join(format!("{device}.sock")), &text)?;
        pair.programs.push((role, process));
        ground.configure(role, &device, pair)?;
    }
    Ok(())
}

/// Tells an end its configuration, by its control socket.
fn tell(process: &Process, socket: &Path, text: &str) -> Result<(), LabError> {
    let mut refusal = String::new();
    let stream = until(PATIENCE, GLANCE, || {
        Ok(UnixStream::connect(socket).inspect_err(|error| refusal = error.to_string()).ok())
    })?;
    let stream = stream.ok_or_else(|| process.fault(format!("it opened no control socket: {refusal}")))?;
    let answer = set(stream, text).map_err(|error| process.fault(format!("it hung up: {error}")))?;
    if answer == "errno=0" { Ok(()) } else { Err(process.fault(format!("it refused its configuration: {answer}"))) }
}

/// A set operation; its answer is one line. Source: wireguard's cross-platform documentation.
fn set(mut stream: UnixStream, text: &str) -> std::io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

/// What a control socket is told: an end's own key, and its one peer.
fn configuration(
    own: &PrivateKey,
    listen: Option<u16>,
    peer: &PrivateKey,
    endpoint: Option<SocketAddr>,
    allowed: &[IpNet],
) -> String {
    let listen = listen.map(|port| format!("listen_port={port}\n")).unwrap_or_default();
    let endpoint = endpoint.map(|address| format!("endpoint={address}\n")).unwrap_or_default();
    let allowed: String = allowed.iter().map(|network| format!("allowed_ip={network}\n")).collect();
    let (private, public) = (hex(own.as_bytes()), hex(peer.public().as_bytes()));
    format!("set=1\nprivate_key={private}\n{listen}public_key={public}\n{endpoint}{allowed}\n")
}

fn client_text(call: SocketAddr, others: &[String], overrides: &[(&str, SocketAddr)]) -> String {
    let others: String = others.iter().map(|name| format!("    - \"{name}\"\n")).collect();
    let one =
        |(name, address): &(&str, SocketAddr)| format!("    - ifName: \"{name}\"\n      dstAddr: \"{address}\"\n");
    let overrides: String = overrides.iter().map(one).collect();
    format!(
        "client:\n  listenAddr: \"127.0.0.1:{CLIENT_PORT}\"\n  dstAddr: \"{call}\"\n  excludedInterfaces:\n{others}  \
         dstOverrides:\n{overrides}"
    )
}

fn server_text(listen: SocketAddr) -> String {
    format!("server:\n  listenAddr: \"{listen}\"\n  dstAddr: \"127.0.0.1:{PORT}\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ENDPOINT, SERVER_NETWORK};

    #[test]
    fn a_configuration_is_what_the_control_socket_takes() {
        let own = PrivateKey::parse(&("AQEB".repeat(10) + "AQE=")).expect("32 bytes of 1");
        let peer = PrivateKey::generate().expect("randomness");
        let text = configuration(&own, Some(PORT), &peer, Some((ENDPOINT, PORT).into()), &[SERVER_NETWORK.into()]);
        let (private, public) = ("01".repeat(32), hex(peer.public().as_bytes()));
        let expected = format!(
            "set=1\nprivate_key={private}\nlisten_port=51820\npublic_key={public}\nendpoint=198.51.100.7:51820\n\
             allowed_ip=10.2.0.0/24\n\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn configurations_of_engarde_are_those_of_its_sample() {
        let call = SocketAddr::from(([198, 51, 100, 7], SERVER_PORT));
        let text = client_text(call, &["lo".to_owned(), "wg-local".to_owned()], &[("wifi", call)]);
        assert_eq!(text, include_str!("golden/engarde-client.yml"));
        let any = SocketAddr::from(([0, 0, 0, 0], SERVER_PORT));
        assert_eq!(server_text(any), include_str!("golden/engarde-server.yml"));
    }
}
