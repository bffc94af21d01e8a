//! `hawser shim address`: the addresses of a shim.
//!
//! 1. Whose: of the SCION end that is named, else of the configuration's own; its AS is then asked of the daemon where
//!    the configuration leaves it out. 2. In which range of IPv4: the configuration's, else the usual one. 3. They are
//!    printed, one a line, IPv6 first.

use std::path::{Path, PathBuf};

use clap::Args;
use hawser_scion::daemon::{DaemonAddr, DaemonClient, InvalidAddr};
use hawser_scion::{EndpointAddr, IsdAs};
use hawser_shim::config::{self, Config, DEFAULT_FILE};
use hawser_shim::route::{Addresses, DEFAULT_RANGE, InterfaceIndex, MAX_EGRESS};

use crate::cmd::output::print;
use crate::failure::Failure;

/// Print the addresses by which servers behind a shim are reached
#[derive(Debug, Args)]
pub struct Address {
    /// The shim's SCION end, such as 1-ff00:0:120,10.120.0.10:31000 [default: that of the configuration]
    #[arg(value_name = "ISD-AS,IP:PORT")]
    end: Option<EndpointAddr>,
    /// The configuration: whose addresses if no other end is named, and where IPv4 addresses are derived
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Of which interface: 0 for what servers are reached by, 1 to 8 for what clients connect from
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=i64::from(MAX_EGRESS)))]
    interface: u8,
}

impl Address {
    /// Prints them.
    pub fn run(self) -> Result<(), Failure> {
        let config = match (&self.config, self.end) {
            (None, Some(_)) => None,
            (Some(file), _) => Some(config::load(file)?),
            (None, None) => Some(config::load(Path::new(DEFAULT_FILE))?),
        };
        let end = match (self.end, &config) {
            (Some(end), _) => end,
            (None, Some(config)) => config.end(own_as(config)?),
            (None, None) => return Err(Failure::wrong("print addresses: nothing says whose")),
        };
        if end.isd_as.is_wildcard() || end.host.port() == 0 {
            return Err(Failure::wrong(format!("print addresses: {end} is no single shim")));
        }
        let range = config.map_or(Some(DEFAULT_RANGE), |config| config.ipv4);
        let interface = InterfaceIndex::new(self.interface).unwrap_or_default();
        let addresses = Addresses::of(end, range, interface)
            .map_err(|error| Failure::failed(error).hint("leave out ipv4 = false in the configuration"))?;
        print(&addresses.iter().map(|address| format!("{address}\n")).collect::<String>())
    }
}

/// The configuration's AS, or that of its daemon.
fn own_as(config: &Config) -> Result<IsdAs, Failure> {
    if let Some(isd_as) = config.local.isd_as {
        return Ok(isd_as);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("start to ask the daemon: {error}")))?;
    runtime.block_on(async {
        let address = config.daemon.clone().map_or_else(DaemonAddr::from_environment, Ok).map_err(no_address)?;
        let client = DaemonClient::new(address).map_err(no_address)?;
        let local = client.local_as().await.map_err(|error| {
            Failure::failed(error).hint("or write the AS into the configuration: local = \"ISD-AS,IP:PORT\"")
        })?;
        Ok(local.isd_as)
    })
}

fn no_address(error: InvalidAddr) -> Failure {
    Failure::wrong(error).hint(format!("in {}", hawser_scion::daemon::ENVIRONMENT))
}
