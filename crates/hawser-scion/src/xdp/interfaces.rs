//! The interfaces of this network namespace and the XDP programs on them, by rtnetlink.
//!
//! Each question has a thread of its own, so that it may be asked from within a runtime too: a thread is born in its
//! maker's network namespace.

use std::io;
use std::{fmt, thread};

use futures_util::TryStreamExt;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp, XdpAttached};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec};

use super::XdpError;

/// Flags of IFLA_XDP_FLAGS (linux/if_link.h).
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const XDP_FLAGS_HW_MODE: u32 = 1 << 3;
/// Takes a program off (linux/if_link.h, IFLA_XDP_FD).
const NO_PROGRAM: i32 = -1;

/// Where an interface runs a program. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In its driver, before the kernel makes a packet of it.
    Native,
    /// In the kernel's own receive path; every interface has it.
    Generic,
    /// In the network card.
    Offloaded,
}

/// An interface's index. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Index(pub(super) u32);

/// An interface, and the program on it. There is no default. Plain data, as of the moment it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) index: Index,
    pub(super) name: String,
    pub(super) program: Option<Program>,
}

/// A program on an interface, by the kernel's number for it. There is no default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) id: u32,
    pub(super) mode: Mode,
}

/// All interfaces.
pub(super) fn list() -> Result<Vec<Interface>, XdpError> {
    ask("list interfaces", async |handle| {
        let messages: Vec<LinkMessage> = handle.link().get().execute().try_collect().await?;
        Ok(messages.iter().filter_map(interface).collect())
    })
}

/// Takes whatever program there is off an interface, unless it is held by a link.
pub(super) fn take_off(interface: &Interface, program: Program) -> Result<(), XdpError> {
    let flag = match program.mode {
        Mode::Native => XDP_FLAGS_DRV_MODE,
        Mode::Generic => XDP_FLAGS_SKB_MODE,
        Mode::Offloaded => XDP_FLAGS_HW_MODE,
    };
    let mut message: LinkMessage = LinkMessageBuilder::<LinkUnspec>::new().index(interface.index.0).build();
    message.attributes.push(LinkAttribute::Xdp(vec![LinkXdp::Fd(NO_PROGRAM), LinkXdp::Flags(flag)]));
    let operation = format!("take program {} off {}", program.id, interface.name);
    ask(&operation, async |handle| handle.link().set(message).execute().await)
}

/// Asks the kernel something, on a thread of its own.
fn ask<T: Send>(
    operation: &str,
    question: impl AsyncFnOnce(Handle) -> Result<T, rtnetlink::Error> + Send,
) -> Result<T, XdpError> {
    let work = || -> io::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            question(handle).await.map_err(|error| match error {
                rtnetlink::Error::NetlinkError(message) => message.to_io(),
                other => io::Error::other(other),
            })
        })
    };
    let answer = thread::scope(|scope| scope.spawn(work).join());
    let answer = answer.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    answer.map_err(|source| XdpError::Netlink { operation: operation.to_owned(), source })
}

/// What a link message says.
fn interface(message: &LinkMessage) -> Option<Interface> {
    let name = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })?;
    let program = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Xdp(said) => program(said),
        _ => None,
    });
    Some(Interface { index: Index(message.header.index), name, program })
}

/// The program that an interface runs; of several (one may be in the card) the first in the packet's way.
fn program(said: &[LinkXdp]) -> Option<Program> {
    let mode = said.iter().find_map(|part| match part {
        LinkXdp::Attached(XdpAttached::Driver) => Some(Mode::Native),
        LinkXdp::Attached(XdpAttached::SocketBuffer) => Some(Mode::Generic),
        LinkXdp::Attached(XdpAttached::Hardware | XdpAttached::Multiple) => Some(Mode::Offloaded),
        _ => None,
    })?;
    let id = said.iter().find_map(|part| match (part, mode) {
        (LinkXdp::ProgId(id), _) | (LinkXdp::HwProgId(id), Mode::Offloaded) => Some(*id),
        _ => None,
    })?;
    Some(Program { id, mode })
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Native => "native",
            Mode::Generic => "generic",
            Mode::Offloaded => "offloaded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_shows_its_program_and_where_it_runs() {
        let table = [
            (vec![LinkXdp::Attached(XdpAttached::None)], None),
            (vec![LinkXdp::Attached(XdpAttached::Driver), LinkXdp::ProgId(7)], Some((7, Mode::Native))),
            (vec![LinkXdp::Attached(XdpAttached::SocketBuffer), LinkXdp::ProgId(8)], Some((8, Mode::Generic))),
            (vec![LinkXdp::Attached(XdpAttached::Multiple), LinkXdp::HwProgId(9)], Some((9, Mode::Offloaded))),
            (vec![LinkXdp::Attached(XdpAttached::Driver)], None),
        ];
        for (said, expected) in table {
            assert_eq!(program(&said).map(|program| (program.id, program.mode)), expected, "{said:?}");
        }
    }

    #[test]
    fn loopback_is_among_the_interfaces() {
        let all = list().expect("the kernel answers");
        assert!(all.iter().any(|interface| interface.name == "lo"), "{all:?}");
    }

    #[test]
    fn it_may_be_asked_from_within_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async { list().expect("the kernel answers") });
    }
}
