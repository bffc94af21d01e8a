//! mlvpn: weighted round robin over UDP, one port for each link. Its configuration: mlvpn.conf(5).
//!
//! It runs without its status script: what that would do to the device (MTU, address) is done from here. A process
//! without privileges does its work, below the one that is started.

use std::net::IpAddr;
use std::path::PathBuf;

use super::{Adapter, ContenderPlan, Ground, LOCAL, LabError, Options, Pair, Programs, REMOTE, StageLink, program};
use crate::contender::links::rates;
use crate::contender::undo::ip;

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
const MOST_REORDER: u32 = 65_536;
const MOST_PERCENT: u32 = 100;
const MOST_LATENCY_MS: u32 = 1000;
/// Bits of a byte: it counts rates in bytes.
const BYTE_BITS: u64 = 8;

/// Its settings. Plain data.
pub(super) struct Mlvpn {
    program: Option<PathBuf>,
    reorder: u32,
    loss_tolerance: u32,
    latency_tolerance: Option<u32>,
    /// Whether it is told the links' rates, as its weights.
    rates: bool,
}

impl Mlvpn {
    fn text(&self, role: &str, links: &[Link]) -> String {
        let mode = if role == LOCAL { "client" } else { "server" };
        let Self { reorder, loss_tolerance, .. } = self;
        let mut text = format!(
            "[general]\nmode = \"{mode}\"\ntuntap = \"tun\"\ninterface_name = \"{DEVICE}\"\nmtu = {MTU}\n\
             timeout = {TIMEOUT}\npassword = \"{PASSWORD}\"\nreorder_buffer_size = {reorder}\n\
             loss_tolerence = {loss_tolerance}\n"
        );
        if let Some(latency) = self.latency_tolerance {
            text += &format!("latency_tolerence = {latency}\n");
        }
        for (link, port) in links.iter().zip(FIRST_PORT..) {
            let Link { name, near, far, rates: [up, down] } = link;
            let (ends, rate) = if role == LOCAL {
                (format!("bindhost = \"{near}\"\nremotehost = \"{far}\"\nremoteport = {port}\n"), up)
            } else {
                (format!("bindhost = \"{far}\"\nbindport = {port}\n"), down)
            };
            text += &format!("\n[{name}]\n{ends}");
            if let Some(rate) = rate.filter(|_| self.rates) {
                text += &format!("bandwidth_upload = {}\n", rate / BYTE_BITS);
            }
        }
        text
    }
}

/// What a configuration says of a link. Plain data.
struct Link {
    name: String,
    near: IpAddr,
    far: IpAddr,
    /// Bits a second, up and down, where it is shaped; of a recording its mean.
    rates: [Option<u64>; 2],
}

impl From<&StageLink> for Link {
    fn from(link: &StageLink) -> Self {
        Self { name: link.name.clone(), near: link.address, far: link.far_address, rates: rates(link) }
    }
}

impl Adapter for Mlvpn {
    const KIND: &'static str = "mlvpn";

    fn parse(_: &ContenderPlan, options: &mut Options, _: &Programs) -> Result<Self, LabError> {
        Ok(Self {
            program: options.path("program")?,
            reorder: options.up_to("reorder-buffer", MOST_REORDER)?.unwrap_or(REORDER),
            loss_tolerance: options.up_to("loss-tolerance", MOST_PERCENT)?.unwrap_or(MOST_PERCENT),
            latency_tolerance: options.up_to("latency-tolerance", MOST_LATENCY_MS)?,
            rates: options.yes("rates", true)?,
        })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let program = program::find(Self::KIND, ("program", self.program.as_deref()), "mlvpn")?;
        let links: Vec<Link> = ground.links.iter().map(Link::from).collect();
        for role in [REMOTE, LOCAL] {
            let file = pair.write(&format!("{role}.conf"), &self.text(role, &links))?;
            let file = file.to_string_lossy();
            let arguments = ["--config", &file, "--debug", "--natural-title", "--user", "root", "--yes-run-as-root"];
            pair.start(role, ground.namespace(role), &program, arguments)?;
            ground.configure(role, DEVICE, pair)?;
            ip(ground.namespace(role), &format!("link set dev {DEVICE} mtu {MTU}"))?;
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
        let link = |name: &str, last: u8, rates| Link {
            name: name.to_owned(),
            near: [10, 1, last, 2].into(),
            far: [198, 51, 100, 7].into(),
            rates,
        };
        let links = [link("wifi", 1, [Some(8_000_000), Some(16_000_000)]), link("eth", 2, [None, None])];
        let mlvpn: Mlvpn = parsed("reorder-buffer = 64\nlatency-tolerance = 250");
        assert_eq!(mlvpn.text(LOCAL, &links), include_str!("golden/mlvpn-local.conf"));
        assert_eq!(mlvpn.text(REMOTE, &links), include_str!("golden/mlvpn-remote.conf"));
    }
}
