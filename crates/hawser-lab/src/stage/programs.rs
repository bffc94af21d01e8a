//! What the system's programs set, which read it from their standard input.
//!
//! 1. iproute2 sets routes and rules: one process all of a namespace's ([`batch`]).
//! 2. nftables has a router translate the client's address ([`translate`]): what leaves by the uplink gets the router's
//!    address, and a port of a range.
//! 3. [`rebind`]: the range becomes another one, and the kernel forgets every translation: what follows comes from
//!    another port, as after a router's restart.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use hawser_wire::Namespace;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use super::build::UPLINK;
use crate::error::LabError;
use crate::scenario::Family;

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

/// Runs commands of `ip`, one a line, as `route replace 10.0.0.0/8 via 10.1.0.1`; stops at the first that fails. It
/// takes the family from the addresses.
pub(super) fn batch(namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    run("set routes", &[], namespace, lines)
}

/// The same of rules, which do not tell their family.
pub(super) fn batch_of(family: Family, namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    run("set rules", &[if family == Family::V4 { "-4" } else { "-6" }], namespace, lines)
}

/// The same, where some of it may be gone already: goes on after a line that fails.
pub(super) fn batch_where_there(namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    match run("undo routes", &["-force"], namespace, lines) {
        Err(LabError::System { source, .. }) if source.kind() == io::ErrorKind::Other => Ok(()),
        other => other,
    }
}

fn run(action: &str, options: &[&str], namespace: &Namespace, lines: &[String]) -> Result<(), LabError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = namespace.command("ip");
    command.args(options).args(["-batch", "-"]);
    feed(&format!("{action} in {}", namespace.name()), command, &format!("{}\n", lines.join("\n")))
}

/// Runs a program that reads what to do from its standard input. Where it fails, the error's kind is `Other`, with what
/// it said.
pub(crate) fn feed(action: &str, mut command: Command, input: &str) -> Result<(), LabError> {
    let system = |error| LabError::system(action, error);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(system)?;
    // It is closed at the statement's end, and so the program ends. Where it does not read, it says why.
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(system)?;
    if output.status.success() {
        return written.map_err(system);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(system(io::Error::other(said)))
}

/// Step 2.
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

/// Step 3.
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
