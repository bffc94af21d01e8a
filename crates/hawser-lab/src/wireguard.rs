//! wireguard-go: built, and started at an end of a tunnel.
//!
//! 1. Go builds it from its module, at the exact version that go/go.mod names.
//! 2. A process makes its TUN device in a namespace.
//! 3. Keys, endpoint and allowed addresses go by its control socket (no `wg` program is needed).

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_config::PrivateKey;
use hawser_wire::Namespace;
use ipnet::IpNet;

use crate::cleanup::Folder;
use crate::error::LabError;
use crate::go::GoModule;
use crate::process::Process;
use crate::text::hex;
use crate::wait::until;

/// The program, which is a module of its own.
const MODULE: GoModule = GoModule {
    name: "wireguard-go",
    files: &[("go.mod", include_str!("../go/go.mod")), ("go.sum", include_str!("../go/go.sum"))],
    packages: &["golang.zx2c4.com/wireguard"],
};
/// What its package, and so its program, is called.
const PROGRAM: &str = "wireguard";
/// Where it listens for configuration, below its root; /var/run is /run. Source: wireguard's cross-platform
/// documentation.
const SOCKETS: &str = "run/wireguard";
/// Where the remote one listens for datagrams. Source: wg(8).
pub(crate) const PORT: u16 = 51820;
/// How long a process may take to open its socket, and how often we look.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(10);

/// Step 1: builds it into a cache, where it is not there yet, and gives its path.
///
/// # Errors
/// [`LabError::Missing`] where there is no Go, [`LabError::Build`] where it cannot build.
pub fn build(cache: &Path) -> Result<PathBuf, LabError> {
    Ok(MODULE.build(cache, &|line| tracing::info!("{line}"))?.join(PROGRAM))
}

/// The device of an end. Both ends' sockets lie in one folder: their devices' names tell them apart.
pub(crate) fn device(name: &str) -> String {
    format!("wg-{name}")
}

/// Steps 2 and 3 for one end, `local` or `remote`; its device is up.
///
/// # Errors
/// [`LabError::Process`] with what it said, where it does not come to work.
pub(crate) fn launch(
    name: &str,
    program: &Path,
    namespace: &Namespace,
    folder: &Folder,
    text: &str,
) -> Result<Process, LabError> {
    let device = device(name);
    let process = Process::start(&format!("{name} wireguard-go"), namespace, program, &["-f", &device], folder)?;
    let socket = folder.path().join(SOCKETS).join(format!("{device}.sock"));
    let mut refusal = String::new();
    let stream = until(PATIENCE, GLANCE, || {
        Ok(UnixStream::connect(&socket).inspect_err(|error| refusal = error.to_string()).ok())
    })?;
    let stream = stream.ok_or_else(|| process.fault(format!("it opened no control socket: {refusal}")))?;
    let answer = configure(stream, text).map_err(|error| process.fault(format!("it hung up: {error}")))?;
    if answer != "errno=0" {
        return Err(process.fault(format!("it refused its configuration: {answer}")));
    }
    namespace.set_up(&device)?;
    Ok(process)
}

/// Step 3: a set operation; its answer is one line. Source: wireguard's cross-platform documentation.
fn configure(mut stream: UnixStream, text: &str) -> std::io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

/// What a control socket is told: an end's own key, and its one peer.
pub(crate) fn configuration(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{ENDPOINT, SERVER_NETWORK};

    #[test]
    fn a_configuration_is_what_the_control_socket_takes() {
        let own = PrivateKey::parse(&("AQEB".repeat(10) + "AQE=")).expect("32 bytes of 1");
        let peer = PrivateKey::generate().expect("randomness");
        let text = configuration(&own, Some(PORT), &peer, Some((ENDPOINT, PORT).into()), &[SERVER_NETWORK.into()]);
        let public = hex(peer.public().as_bytes());
        let expected = format!(
            "set=1\nprivate_key={}\nlisten_port=51820\npublic_key={public}\nendpoint=198.51.100.7:51820\nallowed_ip=10.2.0.0/24\n\n",
            "01".repeat(32)
        );
        assert_eq!(text, expected);
    }
}
