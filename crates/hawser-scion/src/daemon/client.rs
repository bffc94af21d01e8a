//! Asks a daemon.
//!
//! 1. A call connects if there is no connection.
//! 2. It is given up after [`REQUEST_TIMEOUT`].
//! 3. One that fails because the connection was lost, as when the daemon was started anew, is made once more.
//! 4. The answer is parsed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use super::address::{DaemonAddr, InvalidAddr};
use super::convert::{self, Malformed, MalformedPath};
use super::error::{DaemonError, DaemonFault, Request};
use super::proto::{
    self, AsRequest, Call, InterfacesRequest, NotifyInterfaceDownRequest, PathsRequest, PortRangeRequest,
};
use crate::addr::IsdAs;
use crate::conn::PortRange;
use crate::path::{InterfaceId, Path, PathInterface};

/// How long a connection may take: a daemon is on this host, or near (reference implementation, pkg/daemon).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an answer may take, if nothing else is said: a lookup may ask control services in other ISDs
/// (`scion showpaths`, --timeout).
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a daemon shall answer by what it knows, or ask anew. [`Refresh::No`] by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Refresh {
    /// By what it knows.
    #[default]
    No,
    /// Anew.
    Yes,
}

/// The paths to an AS. None by default. Plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookup {
    /// In the daemon's order.
    pub paths: Vec<Path>,
    /// Those that made no sense.
    pub malformed: Vec<MalformedPath>,
}

/// An AS. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsInfo {
    /// Its number.
    pub isd_as: IsdAs,
    /// Whether it is of its ISD's core.
    pub core: bool,
    /// Bytes that a packet inside it may have from its SCION header on.
    pub mtu: u16,
}

/// Asks a daemon. Connects with the first request. For several tasks of one tokio runtime; cheap to clone.
#[derive(Debug, Clone)]
pub struct DaemonClient {
    address: DaemonAddr,
    channel: Channel,
    timeout: Duration,
}

impl DaemonClient {
    /// A client of the daemon at an address. Must be made inside a tokio runtime.
    ///
    /// # Errors
    /// If the address is none that can be connected to.
    pub fn new(address: DaemonAddr) -> Result<DaemonClient, InvalidAddr> {
        DaemonClient::with_timeout(address, REQUEST_TIMEOUT)
    }

    /// The same, with a time after which requests are given up.
    ///
    /// # Errors
    /// As [`DaemonClient::new`].
    pub fn with_timeout(address: DaemonAddr, timeout: Duration) -> Result<DaemonClient, InvalidAddr> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| InvalidAddr { text: address.to_string() })?
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .timeout(timeout);
        Ok(DaemonClient { address, channel: endpoint.connect_lazy(), timeout })
    }

    /// Where it is.
    pub fn address(&self) -> &DaemonAddr {
        &self.address
    }

    /// The paths to an AS; inside the daemon's own AS the empty one. A malformed path is left out, and told of.
    pub async fn paths(&self, destination: IsdAs, refresh: Refresh) -> Result<Lookup, DaemonError> {
        let request = Request::Paths(destination);
        let asked = PathsRequest {
            source_isd_as: 0,
            destination_isd_as: destination.to_bits(),
            refresh: refresh == Refresh::Yes,
        };
        let answer = self.ask(request, asked).await?;
        let mut lookup = Lookup::default();
        for (index, told) in answer.paths.into_iter().enumerate() {
            match convert::path(told, destination) {
                Ok(path) => lookup.paths.push(path),
                Err(fault) => lookup.malformed.push(MalformedPath { index, fault }),
            }
        }
        Ok(lookup)
    }

    /// The daemon's own AS.
    pub async fn local_as(&self) -> Result<AsInfo, DaemonError> {
        let request = Request::LocalAs;
        let answer = self.ask(request, AsRequest { isd_as: 0 }).await?;
        let read = || {
            let isd_as = convert::isd_as(answer.isd_as)?;
            Ok(AsInfo { isd_as, core: answer.core, mtu: convert::mtu(answer.mtu, 0)? })
        };
        read().map_err(|source| self.malformed(request, source))
    }

    /// The border routers of the daemon's AS, by interface.
    pub async fn interfaces(&self) -> Result<BTreeMap<InterfaceId, SocketAddr>, DaemonError> {
        let request = Request::Interfaces;
        let answer = self.ask(request, InterfacesRequest {}).await?;
        let read =
            |(id, told): (u64, proto::Interface)| Ok((convert::interface_id(id)?, convert::underlay(Some(told))?));
        answer
            .interfaces
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map_err(|source| self.malformed(request, source))
    }

    /// The ports that routers of the daemon's AS send to directly; 0 to 0 if there are none.
    pub async fn port_range(&self) -> Result<PortRange, DaemonError> {
        let request = Request::PortRange;
        let answer = self.ask(request, PortRangeRequest {}).await?;
        let read = || {
            let first = convert::port(answer.dispatched_port_start)?;
            let last = convert::port(answer.dispatched_port_end)?;
            if first <= last { Ok(PortRange { first, last }) } else { Err(Malformed::PortRange(first, last)) }
        };
        read().map_err(|source| self.malformed(request, source))
    }

    /// Tells the daemon that an interface is down, so that it leaves out paths across it for a while.
    pub async fn report_down(&self, interface: PathInterface) -> Result<(), DaemonError> {
        let down = NotifyInterfaceDownRequest { isd_as: interface.isd_as.to_bits(), id: interface.id.0.into() };
        let request = Request::InterfaceDown(interface);
        self.ask(request, down).await.map(drop)
    }

    /// Steps 1 to 3. The channel keeps one connection, and makes a new one for the next call after it was lost.
    async fn ask<C: Call>(&self, request: Request, asked: C) -> Result<C::Answer, DaemonError> {
        let twice = async {
            match proto::call(self.channel.clone(), asked.clone()).await {
                Err(status) if DaemonFault::is_lost(&status) => proto::call(self.channel.clone(), asked).await,
                answer => answer,
            }
        };
        let address = self.address.clone();
        let fault = match tokio::time::timeout(self.timeout, twice).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => DaemonFault::of_status(address, &status, self.timeout),
            Err(_) => DaemonFault::TimedOut { address, after: self.timeout },
        };
        Err(DaemonError { request, fault })
    }

    fn malformed(&self, request: Request, source: Malformed) -> DaemonError {
        DaemonError { request, fault: DaemonFault::Malformed { address: self.address.clone(), source } }
    }
}
