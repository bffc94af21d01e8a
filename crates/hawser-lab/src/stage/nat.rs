//! Routers that translate the client's address, by nftables.
//!
//! 1. [`translate`]: what leaves by the uplink gets the router's address, and a port of a range.
//! 2. [`rebind`]: the range becomes another one, and the kernel forgets every translation: what follows comes from
//!    another port, as after a router's restart.

use std::io;

use hawser_wire::Namespace;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use super::build::UPLINK;
use super::ip::feed;
use crate::error::LabError;

/// Ports of a range, and where the first range begins.
const RANGE: u16 = 4000;
const FIRST_PORT: u16 = 20_000;
/// Ranges there are; then the first comes again.
const RANGES: u16 = 10;

/// Flushing the table of translations, with the system's answer asked for. Source: linux/netfilter/nfnetlink.h and
/// nfnetlink_conntrack.h: `NFNL_SUBSYS_CTNETLINK` 1, `IPCTNL_MSG_CT_DELETE` 2; linux/netlink.h: `NLM_F_REQUEST` 1,
/// `NLM_F_ACK` 4.
const FLUSH_TYPE: u16 = (1 << 8) | 2;
const FLUSH_FLAGS: u16 = 1 | 4;
/// nlmsghdr and nfgenmsg, in bytes.
const FLUSH_BYTES: u32 = 16 + 4;

/// Step 1.
pub(super) fn translate(router: &Namespace, rebound: u16) -> Result<(), LabError> {
    let first = FIRST_PORT + rebound % RANGES * RANGE;
    let last = first + (RANGE - 1);
    let rules = format!(
        "table inet lab\ndelete table inet lab\ntable inet lab {{ chain out {{\n\
         type nat hook postrouting priority srcnat\n\
         oifname \"{UPLINK}\" meta l4proto {{ tcp, udp }} masquerade to :{first}-{last}\n\
         oifname \"{UPLINK}\" masquerade\n}}\n}}\n",
    );
    let mut command = router.command("nft");
    command.args(["-f", "-"]);
    feed(&format!("translate addresses in {}", router.name()), command, &rules)
}

/// Step 2.
pub(super) fn rebind(router: &Namespace, rebound: u16) -> Result<(), LabError> {
    translate(router, rebound)?;
    let flushed = router.run(flush)?;
    flushed.map_err(|error| LabError::system(format!("forget translations in {}", router.name()), error))
}

/// Forgets what the calling thread's namespace translates.
fn flush() -> io::Result<()> {
    let [kind, flags] = [FLUSH_TYPE, FLUSH_FLAGS].map(u16::to_ne_bytes);
    let mut message = [&FLUSH_BYTES.to_ne_bytes()[..], &kind, &flags].concat();
    // Sequence, port; then any family, version 0, no resource.
    message.resize(FLUSH_BYTES as usize, 0);
    let socket = Socket::new(NETLINK_NETFILTER)?;
    socket.send_to(&message, &SocketAddr::new(0, 0), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    // Its errno follows nlmsghdr.
    match answer.get(16..20).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code.unwrap_or(-1))),
    }
}
