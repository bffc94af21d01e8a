//! What goes through the tunnel.

use hawser_portal::api::{PathState, Status};
use std::time::Duration;

use hawser_wire::{Direction, Moment, Namespace};

use crate::lab::{self, ENDPOINT, ENDPOINT_V6, LINKS, LOCAL, Lab, REMOTE, REMOTE_V6, ms, parse, paths, states};

/// Each link of the bond, in Mbit/s: what two cores carry while compilers take what is left of them.
const LINK_MBPS: f64 = 20.0;
/// Longest silence at the receiver when a link fails without a word: far more than is promised, as the machine is
/// shared.
const GAP_MAX: Duration = Duration::from_millis(800);
/// Least received in a transfer, in bytes: far below what any machine does in its time, far above a few first windows.
const TRANSFER_MIN: u64 = 5_000_000;

fn tcp(from: &Namespace, to: &Namespace, destination: &str) -> u64 {
    let transfer = lab::transfer(from, to, parse(&format!("{destination}:5001")), ms(700));
    transfer.run().expect("a transfer").total_bytes()
}

#[test]
fn ping_and_tcp_cross_the_tunnel_both_ways_over_both_links() {
    let lab = Lab::new("tun", "");
    let (local, remote) = lab.start_both();
    for destination in [REMOTE, REMOTE_V6] {
        lab.assert_none_lost(&lab.ping(destination, ms(10), ms(300)).run().expect("a ping"));
    }
    let up = tcp(&lab.local, &lab.remote, REMOTE);
    let down = tcp(&lab.remote, &lab.local, LOCAL);
    assert!(up > TRANSFER_MIN && down > TRANSFER_MIN, "{up} bytes up, {down} down");
    // The status is of up to a quarter of a second ago.
    // How much each link takes is the scheduler's: on links as fast as these, one may do.
    let carried = |min: u64| {
        move |status: &Status| {
            let peer = &status.peers[0];
            let both = peer.paths.len() == 2 && peer.paths.iter().all(|path| path.tx_bytes > 0 && path.rx_bytes > 0);
            both && peer.tx_bytes > min && peer.rx_bytes > min && peer.handshake_age_s.is_some()
        }
    };
    let status = local.wait_for("what was carried", carried(up.min(down)));
    assert_eq!(paths(&status).iter().map(|path| path.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    remote.wait_for("what was carried", carried(up.min(down)));
}

#[test]
fn portals_agree_on_the_stricter_protection_and_a_common_cipher() {
    let lab = Lab::new("prot", "[traffic]\nprotection = \"authenticate\"\ncipher = \"chacha20-poly1305\"\n");
    let (_local, _remote) = lab.start_both();
    lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
}

#[test]
fn the_tun_device_follows_what_the_paths_carry() {
    let lab = Lab::new("mtu", "");
    let (local, _remote) = lab.start_both();
    // 1500 less IPv4 and UDP headers less what Hawser adds (docs/wire.md).
    local.wait_for_log("tun mtu mtu=1441");
    // The least path that is active says what the device carries; the status is of up to a quarter of a second ago.
    local.wait_for("all that links carry, by both", |status| {
        states(status) == [PathState::Active; 2] && paths(status).iter().all(|path| path.mtu == 1472)
    });
}

#[test]
fn links_carry_the_tunnel_over_ipv6_too() {
    let lab = Lab::new("six", "");
    lab.edit("local.toml", &format!("{ENDPOINT}:4920"), &format!("[{ENDPOINT_V6}]:4920"));
    lab.edit("remote.toml", "0.0.0.0:4920", "[::]:4920");
    let (local, _remote) = lab.start_both();
    for destination in [REMOTE, REMOTE_V6] {
        lab.assert_none_lost(&lab.ping(destination, ms(10), ms(200)).run().expect("a ping"));
    }
    // 1500 less the headers of IPv6 and UDP less what Hawser adds (docs/wire.md).
    local.wait_for_log("tun mtu mtu=1421");
}

mod alone {
    use super::*;

    #[test]
    fn one_stream_is_faster_over_two_links_and_outlives_the_silent_loss_of_one() {
        let lab = Lab::new("bond", "");
        let links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(LINK_MBPS, ms(10), ms(100))));
        let (local, _remote) = lab.start_both();
        let transfer = lab::transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), ms(4_500));
        let start = Moment::now();
        let running = transfer.start().expect("a connection");
        let cut = start + ms(3_000);
        cut.sleep_until();
        links[0].black_hole(true).expect("a black hole");
        let got = running.finish().expect("a transfer");
        let bonded = got.mbps_between(start + ms(1_500), cut);
        assert!(bonded > 1.5 * LINK_MBPS, "{bonded} Mbit/s; {:#?}", local.status());
        let gap = got.longest_gap(cut, start + ms(4_400));
        assert!(gap < GAP_MAX, "{gap:?}; log:\n{}", local.log());
    }
}
