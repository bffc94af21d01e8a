//! The yardstick in the place of the portals: the minimal forwarder of the crate hawser-yardstick, for comparison over one link.
//!
//! 1. A process each in the portals' namespaces makes its TUN device and brings it up.
//! 2. Routes by netlink. Both processes end on drop, and their devices with them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use ipnet::{IpNet, Ipv4Net};

use crate::cleanup::{self, Folder};
use crate::error::LabError;
use crate::process::Process;
use crate::topology::{Bond, CLIENT_NETWORK, ENDPOINT, SERVER_NETWORK};

/// Where both listen.
const PORT: u16 = 4921;
/// From what both derive their key. It guards nothing: the traffic is our own.
const SECRET: &str = "measured, not guarded";
/// How long a process may take to make its device, and how often we look.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(2);

/// Two yardsticks. Ended on drop; one owner.
#[derive(Debug)]
pub struct Yardstick {
    local: Process,
    remote: Process,
    _folder: Folder,
}

impl Yardstick {
    /// Both steps, in the place of the portals of a topology. `cipher` is `aes-128-gcm` or `chacha20-poly1305`.
    ///
    /// # Errors
    /// [`LabError::Build`] where there is no such program, [`LabError::Process`] with what a process said.
    pub fn start(program: &Path, bond: &Bond, cipher: &str) -> Result<Self, LabError> {
        if !program.exists() {
            let reason = format!("{} is not there", program.display());
            return Err(LabError::Build { tool: "yardstick", reason });
        }
        let _making = cleanup::making();
        let folder = Folder::new()?;
        let (home, endpoint) = (SocketAddr::new(home(bond)?, PORT), SocketAddr::new(ENDPOINT.into(), PORT));
        let start = |role, namespace, [bind, peer]: [SocketAddr; 2], far| {
            let device = format!("ys-{role}");
            let (bind, peer) = (bind.to_string(), peer.to_string());
            let arguments = [
                "--tun", &device, "--bind", &bind, "--peer", &peer, "--role", role, "--cipher", cipher, "--secret",
                SECRET,
            ];
            let process = Process::start(&format!("{role} yardstick"), namespace, program, &arguments, &folder)?;
            route(process, namespace, &device, far)
        };
        let remote = start("remote", &bond.remote, [endpoint, home], CLIENT_NETWORK)?;
        let local = start("local", &bond.local, [home, endpoint], SERVER_NETWORK)?;
        Ok(Self { local, remote, _folder: folder })
    }

    /// The processes: local, remote.
    pub(crate) fn processes(&self) -> [&Process; 2] {
        [&self.local, &self.remote]
    }
}

/// The address by which the local portal reaches the endpoint, as the kernel chooses it.
fn home(bond: &Bond) -> Result<IpAddr, LabError> {
    let ask = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((ENDPOINT, PORT))?;
        socket.local_addr()
    };
    let address = bond.local.run(ask)?.map_err(|error| LabError::system("ask for the way to the endpoint", error))?;
    Ok(address.ip())
}

/// Step 2, once the device is there.
fn route(mut process: Process, namespace: &Namespace, device: &str, far: Ipv4Net) -> Result<Process, LabError> {
    let late = Instant::now() + PATIENCE;
    while let Err(error) = namespace.set_up(device) {
        if let Some(status) = process.ended()? {
            return Err(process.fault(format!("it ended: {status}")));
        }
        if Instant::now() > late {
            return Err(process.fault(format!("it made no device: {error}")));
        }
        std::thread::sleep(GLANCE);
    }
    namespace.add_route(IpNet::V4(far), None, Some(device))?;
    Ok(process)
}
