//! mlvpn: weighted round robin over UDP, one port for each link. Its configuration: mlvpn.conf(5).
//!
//! It runs without its status script: what that would do to the device (MTU, address) is done from here. A process
//! without privileges does its work, below the one that is started.

use std::net::IpAddr;

use super::{Adapter, Ground, LOCAL, LabError, Options, Pair, REMOTE};
use crate::contender::links::rates;

/// The device, and the first link's port. Source: mlvpn.conf(5), its examples.
const DEVICE: &str = "mlvpn0";
const FIRST_PORT: u16 = 5080;
/// Its overhead is 48 bytes and those of IP; 1452 is the most it takes. Source: its example configuration.
const MTU: u32 = 1428;
/// It guards nothing: the traffic is our own.
const PASSWORD: &str = "measured, not guarded";
/// Packets held for their order: none unless it is told; its examples have 64. Source: mlvpn.conf(5).
const REORDER: u32 = 0;
/// How long a silent link is kept, in seconds: the least it takes.
const TIMEOUT: u32 = 5;
const MOST_PERCENT: u32 = 100;

/// Its settings. Plain data.
pub(super) struct Mlvpn {
    reorder: u32,
    loss_tolerance: u32,
    latency_tolerance: Option<u32>,
    /// Whether it is told the links' rates, as its weights.
    rates: bool,
}

impl Mlvpn {
    /// What an end reads before the sections of links.
    fn general(&self, role: &str) -> String {
        let mode = if role == LOCAL { "client" } else { "server" };
        let Self { reorder, loss_tolerance, .. } = self;
        let latency = self.latency_tolerance.map(|latency| format!("latency_tolerence = {latency}\n"));
        format!(
            "[general]\nmode = \"{mode}\"\ntuntap = \"tun\"\ninterface_name = \"{DEVICE}\"\nmtu = {MTU}\n\
             timeout = {TIMEOUT}\npassword = \"{PASSWORD}\"\nreorder_buffer_size = {reorder}\n\
             loss_tolerence = {loss_tolerance}\n{}",
            latency.unwrap_or_default()
        )
    }

    /// A link's section: its addresses, near and far; its rates in bytes a second, up and down, where it is shaped.
    fn section(
        &self,
        role: &str,
        (name, port): (&str, u16),
        [near, far]: [IpAddr; 2],
        [up, down]: [Option<u64>; 2],
    ) -> String {
        let (ends, rate) = if role == LOCAL {
            (format!("bindhost = \"{near}\"\nremotehost = \"{far}\"\nremoteport = {port}\n"), up)
        } else {
            (format!("bindhost = \"{far}\"\nbindport = {port}\n"), down)
        };
        let rate = rate.filter(|_| self.rates).map(|rate| format!("bandwidth_upload = {rate}\n"));
        format!("\n[{name}]\n{ends}{}", rate.unwrap_or_default())
    }
}

impl Adapter for Mlvpn {
    const KIND: &'static str = "mlvpn";
    const PROGRAM: Option<&'static str> = Some("mlvpn");

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            reorder: options.up_to("reorder-buffer", 65_536)?.unwrap_or(REORDER),
            loss_tolerance: options.up_to("loss-tolerance", MOST_PERCENT)?.unwrap_or(MOST_PERCENT),
            latency_tolerance: options.up_to("latency-tolerance", 1000)?,
            rates: options.yes("rates", true)?,
        })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        for role in [REMOTE, LOCAL] {
            let mut text = self.general(role);
            for (link, port) in ground.stage.links.iter().zip(FIRST_PORT..) {
                let ends = [link.address, link.far_address];
                text += &self.section(role, (&link.name, port), ends, rates(link));
            }
            let file = pair.write(&format!("{role}.conf"), &text)?;
            let arguments = ["--config", &file, "--debug", "--natural-title", "--user", "root", "--yes-run-as-root"];
            pair.start(role, ground.namespace(role), &ground.program, arguments)?;
            ground.configure(role, DEVICE, pair)?;
            ground.namespace(role).set_mtu(DEVICE, MTU)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed;
    use super::*;

    #[test]
    fn configurations_are_those_of_its_manual() {
        let mlvpn: Mlvpn = parsed("reorder-buffer = 64\nlatency-tolerance = 250");
        let text = |role| {
            let ends = |last| [[10, 1, last, 2], [198, 51, 100, 7]].map(IpAddr::from);
            let wifi = mlvpn.section(role, ("wifi", 5080), ends(1), [Some(1_000_000), Some(2_000_000)]);
            mlvpn.general(role) + &wifi + &mlvpn.section(role, ("eth", 5081), ends(2), [None, None])
        };
        assert_eq!(text(LOCAL), include_str!("golden/mlvpn-local.conf"));
        assert_eq!(text(REMOTE), include_str!("golden/mlvpn-remote.conf"));
    }
}
