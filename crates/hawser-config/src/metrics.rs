//! `[metrics]`: where Prometheus scrapes the portal.

use std::net::SocketAddr;

use toml::de::DeValue;

use super::error::Fault;
use super::parsers::not_supported;
use super::reader::{Table, quoted, string};
use super::supported;

/// The address; none only where a fault was noted.
pub(super) fn read(mut table: Table<'_, '_, '_>) -> Option<SocketAddr> {
    let listen = table.required("listen", "listen = \"127.0.0.1:9492\"", address);
    table.finish();
    listen.map(|listen| listen.value)
}

fn address(value: &DeValue<'_>) -> Result<SocketAddr, Fault> {
    string(value, |text| {
        if !supported::value("metrics.listen", text) {
            return Err(not_supported("[metrics]").hint("this program was built without it: leave the section out"));
        }
        let address = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
        let fault = || Fault::new(format!("{} is not an address with a port", quoted(text)));
        address.ok_or_else(|| fault().hint("an address and a port, such as \"127.0.0.1:9492\" or \"[::1]:9492\""))
    })
}
