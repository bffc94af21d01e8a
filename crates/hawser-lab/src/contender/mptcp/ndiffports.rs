//! Several subflows between the same two addresses, by the userspace path manager.
//!
//! 1. A thread hears of each connection that the client has established.
//! 2. It opens this many subflows beside the first, from the same address to the same one and port.
//!
//! Ended on drop.

use std::time::Duration;

use hawser_net::genetlink::{Generic, Message, find, u32_of};
use hawser_wire::Namespace;

use super::LabError;
use super::manager::{EVENTS, FAMILY, Manager, Subflow, VERSION, address};
use crate::background::{Background, Stop};

/// An established connection, and what an event tells of it. Source: linux/mptcp.h, MPTCP_EVENT_*, MPTCP_ATTR_*.
const ESTABLISHED: u8 = 2;
const TOKEN: u16 = 1;
const FAMILY_ATTR: u16 = 2;
const SOURCE: [u16; 2] = [5, 6];
const DESTINATION: [u16; 2] = [7, 8];
const DESTINATION_PORT: u16 = 10;
const SERVER_SIDE: u16 = 18;
/// What the peer calls our address in subflows beside the first, which is 0. Source: RFC 8684 section 3.2.
const ADDRESS_ID: u8 = 1;
/// How often the thread looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);

/// Step 1, for connections of this many subflows.
pub(super) fn start(client: &Namespace, subflows: u32) -> Result<Background<()>, LabError> {
    let events = client.run(|| Generic::subscribe(FAMILY, VERSION, EVENTS))?;
    let events = events.map_err(|error| LabError::system("listen for connections of MPTCP", error))?;
    let manager = Manager::open(client)?;
    Background::start(client, "mptcp-ndiffports", move |stop| {
        run(&events, &manager, subflows, stop);
        Ok(())
    })
}

fn run(events: &Generic, manager: &Manager, subflows: u32, mut stop: Stop) {
    while !stop.is_told() {
        let happened = events.events(GLANCE).unwrap_or_else(|error| {
            tracing::warn!(%error, "listen for connections of MPTCP");
            Vec::new()
        });
        for further in happened.iter().filter_map(further) {
            // Step 2. A connection may have ended meanwhile: that is no fault.
            for error in (1..subflows).filter_map(|_| manager.open_subflow(&further).err()) {
                tracing::warn!(%error, "a connection has fewer subflows than asked for");
            }
        }
    }
}

/// A further subflow of the connection that an event tells of, where the client established it.
fn further(event: &Message) -> Option<Subflow> {
    let list = &event.attributes;
    let is_server = find(list, SERVER_SIDE).is_some_and(|side| side.first() == Some(&1));
    if event.command != ESTABLISHED || is_server {
        return None;
    }
    let port: [u8; 2] = find(list, DESTINATION_PORT)?.try_into().ok()?;
    Some(Subflow {
        token: u32_of(find(list, TOKEN)?)?,
        local: address(list, FAMILY_ATTR, SOURCE)?,
        id: ADDRESS_ID,
        remote: address(list, FAMILY_ATTR, DESTINATION)?,
        port: u16::from_be_bytes(port),
    })
}

#[cfg(test)]
mod tests {
    use super::super::manager::INET;
    use super::*;
    use hawser_net::genetlink::Attributes;

    fn event(command: u8, server_side: u8) -> Message {
        let mut list = Attributes::default();
        list.bytes(TOKEN, &7_u32.to_ne_bytes()).bytes(FAMILY_ATTR, &INET.to_ne_bytes());
        list.bytes(SOURCE[0], &[10, 0, 0, 1]).bytes(DESTINATION[0], &[10, 0, 0, 2]);
        list.bytes(DESTINATION_PORT, &5001_u16.to_be_bytes()).bytes(SERVER_SIDE, &[server_side]);
        Message { command, attributes: list.into_bytes() }
    }

    #[test]
    fn only_a_connection_that_the_client_established_counts() {
        let (local, remote) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let subflow = Subflow { token: 7, local, id: 1, remote, port: 5001 };
        assert_eq!(further(&event(ESTABLISHED, 0)), Some(subflow));
        assert_eq!(further(&event(ESTABLISHED, 1)), None, "the peer made it");
        assert_eq!(further(&event(1, 0)), None, "it is only begun");
    }
}
