//! Routers that translate the client's address, by nftables.
//!
//! 1. [`translate`]: what leaves by the uplink gets the router's address, and a port of a range.
//! 2. [`rebind`]: the range becomes another one, and the kernel forgets every translation: what follows comes from
//!    another port, as after a router's restart.

use std::ops::RangeInclusive;

use hawser_wire::Namespace;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

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
/// nlmsghdr of the answer, its errno, and the header it answers.
const ANSWER_BYTES: usize = 16 + 4 + 16;

/// Step 1.
pub(super) fn translate(router: &Namespace, rebound: u16) -> Result<(), LabError> {
    let ports = range(rebound);
    let rules = format!(
        "table inet lab\ndelete table inet lab\ntable inet lab {{ chain out {{\n\
         type nat hook postrouting priority srcnat\n\
         oifname \"{UPLINK}\" meta l4proto {{ tcp, udp }} masquerade to :{}-{}\n\
         oifname \"{UPLINK}\" masquerade\n}}\n}}\n",
        ports.start(),
        ports.end(),
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

fn range(rebound: u16) -> RangeInclusive<u16> {
    let first = FIRST_PORT + rebound % RANGES * RANGE;
    first..=first + (RANGE - 1)
}

/// Forgets what the calling thread's namespace translates.
fn flush() -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))?;
    let [kind, flags] = [FLUSH_TYPE, FLUSH_FLAGS].map(u16::to_ne_bytes);
    let mut message = [&FLUSH_BYTES.to_ne_bytes()[..], &kind, &flags].concat();
    // Sequence, port; then any family, version 0, no resource.
    message.resize(FLUSH_BYTES as usize, 0);
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; ANSWER_BYTES];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let code =
        answer.get(16..20).filter(|_| length >= 20).map_or([0xff; 4], |code| [code[0], code[1], code[2], code[3]]);
    match i32::from_ne_bytes(code) {
        0 => Ok(()),
        code => Err(rustix::io::Errno::from_raw_os_error(-code)),
    }
}
