//! One way to a destination: the header that goes before each payload, and who takes it next.

use std::net::SocketAddr;
use std::time::{Instant, SystemTime};

use hawser_net::link::{Ecn, MAX_DATAGRAM_BYTES, Route};

use super::error::RouteError;
use super::opts::{END_HOST_PORT, LEAST_MTU, PortRange};
use crate::addr::EndpointAddr;
use crate::packet::{FlowId, Template};
use crate::path::{Dataplane, Fingerprint, Path};

/// Both clocks, read once for a batch: paths expire by the wall's, deaths end by the monotonic one. Plain data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: SystemTime,
    pub(super) mono: Instant,
}

impl Now {
    pub(super) fn read() -> Now {
        Now { wall: SystemTime::now(), mono: Instant::now() }
    }
}

/// Who sends: what all ways from one socket have in common. Plain data.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) endpoint: EndpointAddr,
    /// Bytes of a packet inside the AS.
    pub(super) mtu: u16,
    pub(super) dispatched: Option<PortRange>,
    pub(super) traffic_class: u8,
    pub(super) flow: FlowId,
}

/// What every packet to a destination has in common, for as long as its path holds.
/// Never changes; another takes its place. For several threads.
#[derive(Debug)]
pub(super) struct Way {
    /// Which path it is; empty inside the AS, and where an answer goes back.
    pub(super) path: Fingerprint,
    pub(super) template: Template,
    pub(super) route: Route,
    pub(super) mtu: u16,
    /// Bytes a payload may have.
    pub(super) max_payload: usize,
    /// `None` if it never expires.
    pub(super) expiry: Option<SystemTime>,
}

impl Local {
    /// The way along a path, which may carry less than it says.
    pub(super) fn along(&self, destination: EndpointAddr, path: &Path, mtu: u16) -> Result<Way, RouteError> {
        let next_hop = path.next_hop.unwrap_or_else(|| self.underlay_of(destination.host));
        let way = self.way(destination, &path.dataplane, next_hop, mtu.min(path.mtu))?;
        Ok(Way { path: path.interfaces.clone(), expiry: Some(path.expiry), ..way })
    }

    /// The way to a host of the own AS.
    pub(super) fn inside(&self, destination: EndpointAddr) -> Result<Way, RouteError> {
        self.way(destination, &Dataplane::Empty, self.underlay_of(destination.host), self.mtu)
    }

    /// The way to an endpoint by any path and next hop.
    pub(super) fn way(
        &self,
        destination: EndpointAddr,
        dataplane: &Dataplane,
        next_hop: SocketAddr,
        mtu: u16,
    ) -> Result<Way, RouteError> {
        let local = self.endpoint.host;
        if next_hop.is_ipv4() != local.is_ipv4() {
            return Err(RouteError::Family { destination, next_hop, local });
        }
        let mut template = Template::new(self.endpoint, destination, dataplane, self.flow)
            .map_err(|source| RouteError::Template { destination, source })?;
        template.set_traffic_class(self.traffic_class);
        Ok(Way {
            path: Fingerprint::default(),
            max_payload: template.max_payload(mtu).min(MAX_DATAGRAM_BYTES - template.headroom()),
            template,
            route: Route { remote: next_hop, source: None, ecn: Ecn::NotEct },
            mtu,
            expiry: None,
        })
    }

    /// Whether this host can send along a path now.
    pub(super) fn can_use(&self, path: &Path, now: SystemTime) -> bool {
        let reached = path.next_hop.is_some_and(|next_hop| next_hop.is_ipv4() == self.endpoint.host.is_ipv4());
        reached && now < path.expiry && path.source == self.endpoint.isd_as
    }

    /// Where a host of the own AS takes packets for one of its ports.
    pub(super) fn underlay_of(&self, host: SocketAddr) -> SocketAddr {
        let direct = self.dispatched.is_none_or(|range| range.contains(host.port()));
        if direct { host } else { SocketAddr::new(host.ip(), END_HOST_PORT) }
    }

    /// What this host is reached by, in words.
    pub(super) fn family(&self) -> &'static str {
        if self.endpoint.host.is_ipv4() { "IPv4" } else { "IPv6" }
    }
}

impl Way {
    /// The same, for packets no longer than `mtu`; `None` if it took no longer ones anyway, or `mtu` is less than
    /// SCION's least.
    pub(super) fn lowered(&self, mtu: u16) -> Option<Way> {
        if mtu >= self.mtu || mtu < LEAST_MTU {
            return None;
        }
        let max_payload = self.template.max_payload(mtu);
        let (path, template) = (self.path.clone(), self.template.clone());
        Some(Way { path, template, mtu, max_payload, ..*self })
    }
}
