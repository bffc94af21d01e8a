//! SCION paths as links of a bond.

use std::path::Path;
use std::time::{Duration, Instant};

use hawser_lab::localnet::Topology;
use hawser_lab::scion_bond::{ScionBond, ScionPlan};
use hawser_wire::traffic::Towards;
use hawser_wire::{Direction, Moment};

const ENDS: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
/// Each link, in Mbit/s.
const MBPS: f64 = 20.0;
/// What three links carry together takes one of two processors: 50.6 to 52.5 Mbit/s in 28 streams with nothing beside,
/// 32 to 52 beside other tests.
const TOGETHER: f64 = 2.3 * MBPS;
/// What is promised of a gap after a cut; 33 to 82 ms in ten.
const GAP: Duration = Duration::from_millis(300);
/// How long a stream may take to find its rate.
const WARM: Duration = Duration::from_secs(2);
/// How long anything may take to happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn start(links: u8, link: &str, beside: Option<Direction>) -> ScionBond {
    let mut topology = Topology::named("two-cores", Some(links)).expect("it comes along");
    topology.shape(&way());
    let plan = ScionPlan { topology: &topology, ends: ENDS, paths: 2, link, beside, traffic: "" };
    ScionBond::start(Path::new(env!("CARGO_BIN_EXE_hawser")), &plan).expect("portals over SCION (needs root and go)")
}

fn way() -> Direction {
    Direction::shaped(MBPS, Duration::from_millis(5), Duration::from_millis(100))
}

/// What path goes by each link of the bond's SCION paths.
fn fingerprints(bond: &ScionBond) -> Vec<String> {
    bond.active_paths().into_iter().filter_map(|path| path.scion).map(|scion| scion.path).collect()
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let late = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < late, "waited for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

mod alone {
    use super::*;

    #[test]
    fn two_paths_and_a_udp_link_carry_a_stream_together_and_outlive_a_cut() {
        let bond = start(2, "", Some(way()));
        let paths = bond.active_paths();
        assert_eq!(paths.iter().filter(|path| path.transport == "scion").count(), 2, "{paths:?}");
        assert_eq!(paths.iter().filter(|path| path.transport == "udp").count(), 1, "{paths:?}");
        let scion: Vec<_> = paths.iter().filter_map(|path| path.scion.as_ref()).collect();
        assert!(scion.iter().all(|path| path.hops == 2 && path.mtu == 1472), "{scion:?}");
        assert_ne!(scion[0].path, scion[1].path);
        // 1472 bytes from the SCION header on, of which 36 are addresses, 36 the path and 8 UDP's.
        let datagrams: Vec<_> = paths.iter().filter(|path| path.transport == "scion").map(|path| path.mtu).collect();
        assert_eq!(datagrams, [1392; 2], "the path's MTU is used from the start");
        for towards in [Towards::Server, Towards::Client] {
            let transfer = bond.transfer(towards, 3 * WARM).start().expect("a stream");
            let start = Moment::now();
            (start + 2 * WARM).sleep_until();
            let cut = Moment::now();
            let link = bond.net.link("c1").expect("a link");
            link.cut().expect("it is cut");
            let got = transfer.finish().expect("the stream goes on");
            let before = got.mbps_between(start + WARM, cut);
            assert!(before > TOGETHER, "{before} Mbit/s {towards:?}");
            let gap = got.longest_gap(cut, start + 3 * WARM);
            assert!(gap < GAP, "{gap:?} {towards:?}");
            link.restore().expect("it is restored");
            wait_for("the path to be back", || bond.active_paths().len() == 3);
        }
    }
}

#[test]
fn a_path_that_breaks_gives_way_to_another() {
    let bond = start(3, "select = \"length\"\n", None);
    let before = fingerprints(&bond);
    assert_eq!(before.len(), 2, "{before:?}");
    let ping = bond.ping(Duration::from_millis(20), 2 * WARM).start().expect("a ping");
    // Interface numbers count from 1 in the order of the links.
    let used = (1..=3).find(|number| before[0].contains(&format!(" {number}>"))).expect("one of three links");
    bond.net.link(&format!("c{used}")).expect("a link").cut().expect("it is cut");
    wait_for("another path", || {
        let now = fingerprints(&bond);
        now.len() == 2 && !now.contains(&before[0]) && now.contains(&before[1])
    });
    let report = ping.finish().expect("a report");
    assert!(report.lost() * 2 < report.sent.len(), "{} of {} lost", report.lost(), report.sent.len());
}
