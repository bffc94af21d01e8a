//! What hands packets on between the network and an end: dispatchers, or the program that bypasses them.
//!
//! 1. The classic dispatcher at both ends, each with a Unix socket; or the shim at the receiver, on its UDP port; or
//!    the XDP program on the receiver's interface, with the receiver's ports on its whitelist; or portals, by whose
//!    session streams of TCP go.
//! 2. Each is waited for. On drop processes end, and the XDP program is detached.

use std::fs;
use std::num::NonZeroU16;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_scion::conn::END_HOST_PORT;
use hawser_scion::xdp::{self, Bypass, Wanted, XdpError};
use hawser_wire::Namespace;

use super::ground::Ground;
use super::plan::Way;
use super::run::say;
use crate::cleanup::Folder;
use crate::error::LabError;
use crate::localnet::{CLASSIC, Host, SERVICES, dispatcher_settings};
use crate::portals::{LOCAL_TUN, Portals, REMOTE_TUN, Site, any_of, parsed};
use crate::process::Process;
use crate::text::told;
use crate::wait::{listens, until};

/// What a dispatcher's program is called: of v0.11.0 with a Unix socket, of v0.15.1 without.
const DISPATCHER: &str = "dispatcher";
/// How long a helper may take to listen, and how often we look.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(10);

/// What runs beside the ends. Ends on drop; one owner.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// The sender's dispatcher, and the receiver's.
    processes: [Option<Process>; 2],
    portals: Option<Portals>,
    _bypass: Option<Attached>,
    /// The sockets that the ends' applications are to use, where there are dispatchers of that kind.
    pub sockets: [Option<PathBuf>; 2],
}

impl Helpers {
    /// Steps 1 and 2. `ports` are those of the receiver.
    pub fn start(
        way: Way,
        ground: &Ground,
        ports: Range<u16>,
        cache: &Path,
        folder: &Folder,
    ) -> Result<Self, LabError> {
        match way {
            Way::Straight => Ok(Self::default()),
            Way::Dispatcher => Self::dispatchers(ground, &CLASSIC.build(cache, &say)?.join(DISPATCHER), folder),
            Way::Shim => Self::shim(ground, &SERVICES.build(cache, &say)?.join(DISPATCHER), folder),
            Way::Bypass => {
                let bypass = Attached::attach(&ground.receiver.namespace, ground.interfaces[1], ports)?;
                Ok(Self { _bypass: Some(bypass), ..Self::default() })
            }
        }
    }

    fn dispatchers(ground: &Ground, program: &Path, folder: &Folder) -> Result<Self, LabError> {
        let start = |name: &str, namespace: &Namespace| {
            let socket = folder.path().join(format!("{name}.sock"));
            let settings = format!("application_socket = \"{}\"\ndelete_socket = true", socket.display());
            let process = dispatcher(name, namespace, program, &settings, folder)?;
            wait(&process, "it opened no socket", || Ok(socket.exists()))?;
            Ok::<_, LabError>((Some(process), Some(socket)))
        };
        let (receiver, receivers) = start("receiver-dispatcher", &ground.receiver.namespace)?;
        let (sender, senders) = start("sender-dispatcher", &ground.sender.namespace)?;
        Ok(Self { processes: [sender, receiver], sockets: [senders, receivers], ..Self::default() })
    }

    fn shim(ground: &Ground, program: &Path, folder: &Folder) -> Result<Self, LabError> {
        let namespace = &ground.receiver.namespace;
        let any = any_of(ground.receiver.address);
        let settings = format!("local_udp_forwarding = true\nunderlay_addr = \"{any}\"");
        let receiver = dispatcher("shim", namespace, program, &settings, folder)?;
        wait(&receiver, "it does not listen", || listens(namespace, "udp", END_HOST_PORT))?;
        Ok(Self { processes: [None, Some(receiver)], ..Self::default() })
    }

    /// Portals, and the ground as it is inside their tunnel: each host has the address there. The sender's portal has a
    /// link over SCION for each connection, so that the session has a path for each: a socket of its own.
    pub fn portals(hawser: &Path, ground: &Ground, connections: u16) -> Result<(Self, Ground), LabError> {
        let Ground { sender, receiver, interfaces, .. } = ground;
        let link = |number| {
            format!(
                "[[link]]\nname = \"path{number}\"\ninterface = \"{}\"\ntransport = \"scion\"\n\
                 daemon = \"{}\"\npaths = 1\n\n",
                interfaces[0], sender.daemon
            )
        };
        let plain = Site::plain(receiver.address, (1..=connections).map(link).collect(), connections.into());
        let site = Site { scion: Some(ground.receiver_end(Way::Straight)), ..plain };
        let portals = Portals::join(hawser, [&sender.namespace, &receiver.namespace], &site)?;
        let inside = |host: &Host, network| Host { address: parsed(network).addr(), ..host.clone() };
        let (sender, receiver) = (inside(sender, LOCAL_TUN), inside(receiver, REMOTE_TUN));
        let ground = Ground { sender, receiver, interfaces: *interfaces, paths: None };
        Ok((Self { portals: Some(portals), ..Self::default() }, ground))
    }

    /// Processor time so far, of the sender's helper and the receiver's.
    pub fn cpu(&self) -> Result<[Duration; 2], LabError> {
        let [sender, receiver] = match &self.portals {
            Some(portals) => portals.processes().map(Some),
            None => self.processes.each_ref().map(Option::as_ref),
        };
        let cpu = |process: Option<&Process>| process.map_or(Ok(Duration::ZERO), |one| one.usage().map(|of| of.cpu));
        Ok([cpu(sender)?, cpu(receiver)?])
    }
}

/// A dispatcher of either version, with settings of its own.
fn dispatcher(
    name: &str,
    namespace: &Namespace,
    program: &Path,
    settings: &str,
    folder: &Folder,
) -> Result<Process, LabError> {
    let file = folder.path().join(format!("{name}.toml"));
    fs::write(&file, dispatcher_settings(name, settings)).map_err(LabError::file("write", &file))?;
    Process::start(name, namespace, program, &["--config", &file.to_string_lossy()], folder)
}

fn wait(process: &Process, fault: &str, is_there: impl Fn() -> Result<bool, LabError>) -> Result<(), LabError> {
    until(PATIENCE, GLANCE, || Ok(is_there()?.then_some(())))?.ok_or_else(|| process.fault(fault))
}

/// The XDP program on the receiver's interface. Detached on drop.
#[derive(Debug)]
struct Attached {
    namespace: Namespace,
    interface: &'static str,
}

impl Attached {
    /// Lets packets to the dispatchers' port through to these ports of the application.
    fn attach(namespace: &Namespace, interface: &'static str, ports: Range<u16>) -> Result<Self, LabError> {
        let attach = move || -> Result<(), XdpError> {
            let mut bypass = Bypass::load()?;
            for port in ports.filter_map(NonZeroU16::new) {
                bypass.allow(port)?;
            }
            // Native mode splits what the sender's GSO joined, on a veth: three times slower. Source: SCION.md, "XDP".
            bypass.attach(interface, Wanted::Generic, false).map(drop)
        };
        let done = Self { namespace: namespace.clone(), interface };
        namespace.run(attach)?.map_err(|error| LabError::refused("attach the bypass", told(&error)))?;
        Ok(done)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let names = [self.interface.to_owned()];
        let detached = self.namespace.run(move || xdp::detach(&names));
        let failed = |error: XdpError| LabError::refused("detach", told(&error));
        if let Err(error) = detached.map_err(LabError::from).and_then(|done| done.map_err(failed)) {
            tracing::warn!(%error, "the bypass was left");
        }
    }
}
