//! A SCION path to an endpoint, as a link that calls is told of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_core::alias::Alias;
use hawser_core::units::LinkId;

use super::key::Key;
use crate::addr::EndpointAddr;
use crate::packet::{DataplaneView, FlowId, Template, TemplateError};
use crate::path::Path;

/// A path to an endpoint, and the alias that it has in a session. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    alias: Alias,
    endpoint: EndpointAddr,
    path: Path,
}

/// Why a path cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WayError {
    /// Its hop fields are none.
    #[error("use path")]
    Path(#[from] TemplateError),
    /// Headers that cannot be told to a session.
    #[error("use path: its headers of {0} bytes are too long")]
    Header(usize),
    /// The border router has no address of the link's IP version.
    #[error("use path: its border router {router} is not reached by {family}")]
    Family {
        /// The router, or the endpoint itself within one AS.
        router: SocketAddr,
        /// The link's IP version.
        family: &'static str,
    },
}

impl Way {
    /// The `name`th way of `link`, from a host with an address of this IP version.
    pub fn new(link: LinkId, name: u32, ipv6: bool, endpoint: EndpointAddr, path: Path) -> Result<Way, WayError> {
        let unspecified: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let router = path.next_hop.unwrap_or(endpoint.host);
        if router.is_ipv6() != ipv6 {
            return Err(WayError::Family { router, family: if ipv6 { "IPv6" } else { "IPv4" } });
        }
        let source = EndpointAddr::new(path.source, SocketAddr::new(unspecified, 0));
        let template = Template::new(source, endpoint, &path.dataplane, FlowId::default())?;
        let header = template.headroom();
        let largest = u16::try_from(template.max_payload(path.mtu)).unwrap_or(u16::MAX);
        let alias = u16::try_from(header).ok().and_then(|len| Alias::new(link, largest, ipv6, len, name, 1));
        let alias = alias.ok_or(WayError::Header(header))?;
        Ok(Way { alias, endpoint, path })
    }

    /// What stands for it in a session.
    pub fn alias(&self) -> Alias {
        self.alias
    }

    /// Where it leads.
    pub fn endpoint(&self) -> EndpointAddr {
        self.endpoint
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same way with hop fields that are good for longer; none where it is another, or has become larger or
    /// smaller.
    pub fn renewed(&self, path: Path) -> Option<Way> {
        let same = |one: &Path| (one.interfaces.clone(), one.dataplane.len(), one.mtu, one.destination, one.next_hop);
        (same(&self.path) == same(&path)).then(|| Way { path, ..self.clone() })
    }
}

/// A way ready for use from one address.
#[derive(Debug)]
pub(super) struct Laid {
    pub(super) alias: Alias,
    pub(super) key: Key,
    pub(super) template: Template,
    pub(super) hop: SocketAddr,
}

impl Laid {
    pub(super) fn new(way: &Way, local: SocketAddr) -> Result<Laid, WayError> {
        let Way { alias, endpoint, path } = way;
        let source = EndpointAddr::new(path.source, local);
        let template = Template::new(source, *endpoint, &path.dataplane, FlowId::from_hash(alias.name()))?;
        let mut key = Key::default();
        key.set_goes(endpoint, &DataplaneView::of(&path.dataplane).map_err(TemplateError::from)?);
        Ok(Laid { alias: *alias, key, template, hop: path.next_hop.unwrap_or(endpoint.host) })
    }
}
