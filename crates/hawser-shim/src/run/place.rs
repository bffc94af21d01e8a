//! Where the shim is in SCION, as configuration and daemon say.
//!
//! 1. [`Place::find`] asks the daemon for its AS, MTU and ports. With its AS configured the shim starts without the
//!    daemon.
//! 2. [`Place::bind`] opens the port for what peers begin.
//! 3. [`Place::bind_tcp`] opens those to which routers deliver TCP, where that is SCION's layer 4: that of the
//!    dispatcher (v0.12.0, and where a port is not dispatched), and a server's own (v0.14.0 to v0.15.1).

use std::collections::BTreeSet;
use std::sync::Arc;

use hawser_net::netcfg::{Feature, SysctlKey};
use hawser_scion::EndpointAddr;
use hawser_scion::conn::{ConnOpts, END_HOST_PORT, PathTable, ScionSocket, TcpPackets};
use hawser_scion::daemon::{DaemonAddr, DaemonClient};
use ipnet::Ipv4Net;

use super::RunError;
use crate::config::Config;
use crate::route::{Addresses, InterfaceIndex, NoAddress};
use crate::translate::Layer4;

/// The interface that stands for all of them in sysctls.
const ALL_INTERFACES: &str = "all";

/// Where the shim is. Found once; plain data.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its end.
    pub end: EndpointAddr,
    /// Whom it asks for paths.
    pub daemon: DaemonAddr,
    /// How sockets are opened here; their port is the shim's own.
    pub conn: ConnOpts,
    /// Where IPv4 addresses are derived.
    ipv4: Option<Ipv4Net>,
    /// Whether this host's kernel has IPv6.
    has_ipv6: bool,
}

impl Place {
    /// Step 1, inside a tokio runtime.
    pub async fn find(config: &Config) -> Result<Self, RunError> {
        let daemon = config.daemon.clone().map_or_else(DaemonAddr::from_environment, Ok)?;
        let client = DaemonClient::new(daemon.clone())?;
        let info = client.local_as().await;
        let (isd_as, mtu) = match (config.local.isd_as, info) {
            (Some(configured), Ok(info)) if configured != info.isd_as => {
                return Err(RunError::OtherAs { configured, daemons: info.isd_as });
            }
            (_, Ok(info)) => (info.isd_as, Some(info.mtu)),
            (Some(configured), Err(error)) => {
                tracing::warn!(%daemon, %error, "the daemon does not answer: there are no paths to other ASes until it does");
                (configured, None)
            }
            (None, Err(source)) => return Err(RunError::Daemon { address: daemon, source }),
        };
        let end = config.end(isd_as);
        let mut conn = ConnOpts::new(end);
        // Of jumbo frames inside the AS nothing is known but by the daemon.
        conn.mtu = mtu.unwrap_or(conn.mtu);
        // A daemon of another version may not know: then all ports are taken for good.
        conn.dispatched = client.port_range().await.ok();
        let has_ipv6 = SysctlKey::forwarding_v6(ALL_INTERFACES).is_ok_and(|key| key.exists());
        if !has_ipv6 {
            tracing::warn!(lacking = %Feature::Ipv6, "there are no surrogate addresses: servers are reached by the map alone");
        }
        Ok(Self { end, daemon, conn, ipv4: config.ipv4, has_ipv6 })
    }

    /// The addresses of an interface, as far as this host can have them.
    pub fn addresses(&self, interface: InterfaceIndex) -> Result<Addresses, NoAddress> {
        match Addresses::of(self.end, self.ipv4, interface)? {
            all if self.has_ipv6 => Ok(all),
            Addresses { ipv4: None, .. } => Err(NoAddress(self.end)),
            ipv4 => Ok(Addresses { ipv6: None, ..ipv4 }),
        }
    }

    /// Step 2. Peers' ways are learnt from what comes: nothing is looked up.
    pub fn bind(&self) -> Result<ScionSocket, RunError> {
        // Whether segments of TCP are taken, the engine says, who counts those that are not.
        let opts = ConnOpts { tcp: TcpPackets::Taken, ..self.conn.clone() };
        let socket = ScionSocket::bind(opts, Arc::new(PathTable::default()))?;
        for finding in socket.findings() {
            tracing::warn!(%finding, "scion socket works, and worse");
        }
        Ok(socket)
    }

    /// Step 3. One that somebody else has is done without: routers of one kind deliver nothing there.
    pub fn bind_tcp(&self, config: &Config) -> Vec<ScionSocket> {
        if config.layer4 != Layer4::Tcp {
            return Vec::new();
        }
        let own = self.end.host.port();
        let servers = config.server_ports.iter().map(|port| port.0.get());
        let wanted: BTreeSet<u16> = servers.chain([END_HOST_PORT]).filter(|port| *port != own).collect();
        let mut sockets = Vec::new();
        for port in wanted {
            let mut opts = ConnOpts { tcp: TcpPackets::Only, ..self.conn.clone() };
            opts.local.host.set_port(port);
            match ScionSocket::bind(opts, Arc::new(PathTable::default())) {
                Ok(socket) => sockets.push(socket),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(port, error, "udp port not opened: tcp that routers deliver there does not come");
                }
            }
        }
        sockets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_ipv6_there_are_derived_addresses_alone() {
        let end: EndpointAddr = "1-ff00:0:110,10.110.0.10:31000".parse().expect("an endpoint");
        let place = |ipv4: Option<Ipv4Net>, has_ipv6| Place {
            end,
            daemon: DaemonAddr::default(),
            conn: ConnOpts::new(end),
            ipv4,
            has_ipv6,
        };
        let range = crate::route::DEFAULT_RANGE;
        let ingress = InterfaceIndex::INGRESS;
        let both = place(Some(range), true).addresses(ingress).expect("addresses");
        assert!(both.ipv6.is_some() && both.ipv4.is_some());
        let derived = place(Some(range), false).addresses(ingress).expect("addresses");
        assert_eq!(derived, Addresses { ipv6: None, ..both });
        assert!(place(None, true).addresses(ingress).expect("addresses").ipv4.is_none());
        assert_eq!(place(None, false).addresses(ingress), Err(NoAddress(end)));
    }
}
