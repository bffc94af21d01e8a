//! Keys are told outside only where that was asked for.

use crate::support;
use hawser_core::endpoint::Event;
use hawser_core::handshake::IDLE_REKEY;
use hawser_core::handshake::secrets::SessionSecrets;
use hawser_core::transport::Transport;
use hawser_core::units::Time;
use std::time::Duration;
use support::{Portal, link, step};

/// Two portals, their session made, and its keys replaced once; `ask` says who tells.
fn after_a_rekey(ask: bool) -> (Portal, Portal) {
    let mut local = Portal::new(1, 2, &["198.51.100.1:4920"], "10.0.0.1/32");
    let mut remote = Portal::new(2, 1, &[], "10.0.0.2/32");
    if ask {
        local.endpoint.tell_keys();
        remote.endpoint.tell_keys();
    }
    let mut now = Time::from_nanos(1_000_000_000);
    local.endpoint.add_link(now, link(0, Transport::Udp, true));
    remote.endpoint.add_link(now, link(0, Transport::Udp, false));
    let end = now + IDLE_REKEY + Duration::from_secs(2);
    while now < end {
        step(now, &mut local, &mut remote);
        now = now + Duration::from_millis(20);
    }
    (local, remote)
}

fn told(portal: &mut Portal) -> Vec<(bool, SessionSecrets)> {
    let events = std::iter::from_fn(|| portal.endpoint.poll_event());
    let keys = events.filter_map(|event| match event {
        Event::Keys { new, secrets, .. } => Some((new, *secrets)),
        _ => None,
    });
    keys.collect()
}

#[test]
fn both_portals_tell_the_same_keys_of_a_session_and_of_its_next_ones() {
    let (mut local, mut remote) = after_a_rekey(true);
    let (local, remote) = (told(&mut local), told(&mut remote));
    assert_eq!(local.iter().map(|(new, _)| *new).collect::<Vec<_>>(), [true, false]);
    let mirrored = |(new, keys): &(bool, SessionSecrets)| {
        (*new, SessionSecrets { sent: keys.received.clone(), received: keys.sent.clone() })
    };
    assert_eq!(local, remote.iter().map(mirrored).collect::<Vec<_>>());
    assert_ne!(local[0].1, local[1].1);
    assert_ne!(local[0].1.sent, local[0].1.received);
}

#[test]
fn nothing_is_told_unasked() {
    let (mut local, mut remote) = after_a_rekey(false);
    assert_eq!(told(&mut local), []);
    assert_eq!(told(&mut remote), []);
}
