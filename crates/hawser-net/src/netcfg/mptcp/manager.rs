//! Endpoints and limits, asked for and set.

use rustix::io::Errno;

use super::encode::{
    ADD_ADDR, ATTR_ADDR, DEL_ADDR, FLUSH_ADDRS, GET_ADDR, GET_LIMITS, MPTCP_FAMILY, MPTCP_VERSION, SET_FLAGS,
    SET_LIMITS, encode_address, endpoint, endpoint_of, limits, limits_of,
};
use super::{EndpointFlags, EndpointId, MptcpEndpoint, MptcpLimits};
use crate::{
    genetlink::{Attributes, Generic, Message},
    netcfg::{error::NetConfigError, features::Feature},
};

/// The path manager of the network namespace of the thread that opened it.
/// There is no default. One owner; what it sets stays when it drops, and answers come within microseconds.
#[derive(Debug)]
pub struct PathManager(Generic);

impl PathManager {
    /// Opens a connection to it.
    ///
    /// # Errors
    /// [`NetConfigError::MissingFeature`] where the kernel has no MPTCP.
    pub fn open() -> Result<Self, NetConfigError> {
        Generic::open(MPTCP_FAMILY, MPTCP_VERSION).map(Self).map_err(|errno| match errno {
            Errno::NOENT => NetConfigError::lacking("reach", "path manager of mptcp", Feature::Mptcp),
            errno => NetConfigError::refused("reach", "path manager of mptcp", errno),
        })
    }

    /// The endpoints there are, by their ids.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn endpoints(&self) -> Result<Vec<(EndpointId, MptcpEndpoint)>, NetConfigError> {
        let answers = self.0.list(GET_ADDR);
        let answers = answers.map_err(|errno| NetConfigError::refused("list", "mptcp endpoints", errno))?;
        Ok(answers.iter().filter_map(endpoint_of).collect())
    }

    /// Adds an endpoint. Connections that live learn of it at once.
    ///
    /// # Errors
    /// [`NetConfigError::MissingFeature`] for a flag that this kernel is too old for; `EEXIST` where the address is
    /// one.
    pub fn add(&self, new: &MptcpEndpoint) -> Result<(), NetConfigError> {
        if let Some(feature) = new.flags.missing(Release::running()) {
            return Err(NetConfigError::lacking("add", new.to_string(), feature));
        }
        self.ask("add", new.to_string(), ADD_ADDR, &endpoint(new, None)).map(drop)
    }

    /// Removes an endpoint, and the subflows from it; peers are told. False where there is none of its address and
    /// port.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove(&self, old: &MptcpEndpoint) -> Result<bool, NetConfigError> {
        let Some(id) = self.id_of(old)? else { return Ok(false) };
        match self.ask("remove", old.to_string(), DEL_ADDR, &endpoint(old, Some(id))) {
            // Somebody else was faster: the kernel finds no endpoint of this id.
            Err(error) if error.errno() == Some(libc::EINVAL) && self.id_of(old)?.is_none() => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// Removes all endpoints, whoever added them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn flush(&self) -> Result<(), NetConfigError> {
        self.ask("remove", "all mptcp endpoints".into(), FLUSH_ADDRS, &Attributes::default()).map(drop)
    }

    /// Makes an endpoint a backup, or none any more, and its subflows too: peers are told. The flag that says whether
    /// it reaches every address of the peer can be changed alike, since linux 5.18.
    ///
    /// # Errors
    /// [`NetConfigError::MissingFeature`] before linux 5.12; what the kernel says.
    pub fn set_flags(&self, id: EndpointId, of: &MptcpEndpoint, flags: EndpointFlags) -> Result<(), NetConfigError> {
        let inner = encode_address(of.address, Some(id.0), of.port, flags);
        let mut attributes = Attributes::default();
        attributes.nested(ATTR_ADDR, &inner);
        match self.0.ask(SET_FLAGS, &attributes) {
            Ok(_) => Ok(()),
            Err(Errno::OPNOTSUPP) => {
                Err(NetConfigError::lacking("set flags of", of.to_string(), Feature::MptcpEndpointChanges))
            }
            Err(errno) => Err(NetConfigError::refused("set flags of", of.to_string(), errno)),
        }
    }

    /// The limits now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn limits(&self) -> Result<MptcpLimits, NetConfigError> {
        let answers = self.ask("read", "mptcp limits".into(), GET_LIMITS, &Attributes::default())?;
        answers.first().and_then(limits_of).ok_or_else(|| NetConfigError::Protocol {
            operation: "read",
            subject: "mptcp limits".into(),
            what: format!("{answers:?}"),
        })
    }

    /// Sets the limits.
    ///
    /// # Errors
    /// `EINVAL` for more than the kernel can have (8 in linux 6.18).
    pub fn set_limits(&self, new: MptcpLimits) -> Result<(), NetConfigError> {
        self.ask("set", new.to_string(), SET_LIMITS, &limits(new)).map(drop)
    }

    fn id_of(&self, wanted: &MptcpEndpoint) -> Result<Option<EndpointId>, NetConfigError> {
        Ok(self.endpoints()?.iter().find(|(_, there)| there.is_place_of(wanted)).map(|(id, _)| *id))
    }

    fn ask(
        &self,
        operation: &'static str,
        subject: String,
        command: u8,
        attributes: &Attributes,
    ) -> Result<Vec<Message>, NetConfigError> {
        self.0.ask(command, attributes).map_err(|errno| NetConfigError::refused(operation, subject, errno))
    }
}

/// The first two numbers of a kernel's release. There is no default. Plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release(pub u32, pub u32);

impl Release {
    /// First kernels with flags that older ones take without a word, and do nothing about (linux/mptcp_pm.h).
    const FULLMESH: Release = Release(5, 15);
    const LAMINAR: Release = Release(6, 18);

    fn running() -> Option<Self> {
        Self::parse(rustix::system::uname().release().to_str().ok()?)
    }

    pub(super) fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some(Self(numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

impl EndpointFlags {
    /// What a kernel of this release lacks for these flags; of an unknown one nothing is known.
    pub(super) fn missing(self, kernel: Option<Release>) -> Option<Feature> {
        let older = |than: Release| kernel.is_some_and(|kernel| kernel < than);
        if self.has(Self::LAMINAR) && older(Release::LAMINAR) {
            return Some(Feature::MptcpLaminar);
        }
        (self.has(Self::FULLMESH) && older(Release::FULLMESH)).then_some(Feature::MptcpFullmesh)
    }
}
