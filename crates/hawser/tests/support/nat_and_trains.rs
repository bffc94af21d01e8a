//! A NAT on the local portal's own host that changes ports: the kernel then spoils every segment that it cuts of a
//! train. Uploads as long as is asked.

use std::time::Duration;

use hawser_portal::api::PathState;
use hawser_wire::traffic::Sample;
use hawser_wire::{Direction, Rate};

use crate::lab::{LINKS, Lab, REMOTE, ms, parse, paths, states, transfer};

/// What the link carries, in Mbit/s, and how long one way takes.
const LINK_MBPS: f64 = 40.0;
/// From this long after its start on, a transfer must have its rate.
const BY: Duration = Duration::from_secs(2);
/// Of what the same transfer has without a NAT.
pub const SHARE: f64 = 0.9;

fn masquerade(lab: &Lab) {
    let rules = "add table ip nat; add chain ip nat out { type nat hook postrouting priority srcnat; }; \
                 add rule ip nat out oifname \"one\" masquerade random";
    let output = lab.local.command("nft").arg(rules).output().expect("run nft (nftables)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The median rate of the half seconds from two seconds after the start on, in Mbit/s, of an upload; and what local log
/// and status say of it.
pub fn upload(nat: bool, spell: Duration) -> (f64, usize, bool) {
    let lab = Lab::new("nat", "");
    lab.edit("local.toml", "[[link]]\nname = \"two\"\ninterface = \"two\"\n", "");
    let _link = lab.emulate(
        LINKS[0],
        &Direction { rate: Some(Rate::mbit(LINK_MBPS)), ..Direction::shaped(LINK_MBPS, ms(10), ms(100)) },
    );
    if nat {
        masquerade(&lab);
    }
    let (remote, local) = (lab.start("remote"), lab.start("local"));
    local.wait_for("the path to be active", |status| states(status) == [PathState::Active]);
    let timeline = transfer(&lab.local, &lab.remote, parse(&format!("{REMOTE}:5001")), spell).run();
    let timeline = timeline.expect("a transfer");
    let late = timeline.mbps_by(ms(500));
    let from = (BY.as_millis() / 500) as usize;
    let late = &late[from..late.len() - 1];
    let rate = late.iter().copied().collect::<Sample>().median().expect("half seconds");
    let status = local.wait_for("a status", |_| true);
    let told = local.log().matches("without udp gso").count();
    eprintln!("nat {nat}: {:?}, remote {:?}", timeline.mbps_by(ms(500)), remote.status().map(|status| status.drops));
    (rate, told, paths(&status)[0].without_gso)
}
