//! Thousands of routes at once, as a member of a hub has them when another one dies: each becomes what it would alone,
//! and ten times as many take some ten times as long. The times:
//!
//! ```text
//! sudo -E cargo test --release -p hawser-net --test network many -- --nocapture
//! ```

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use hawser_net::netcfg::{Applied, Change, IfIndex, Metric, Mtu, RouteSpec};
use ipnet::Ipv4Net;

use super::lab::{assert_restored, config, in_namespace, index, ip, shown, system, until_shown, veth, veth_up};

/// How many times as long ten times as many may take: ten, and what else the machine does. A hundred would be where
/// each looks through all others.
const TIMES_MOST: u32 = 35;
/// A moment that is too short to be compared.
const MOMENT: Duration = Duration::from_millis(5);

/// One of many, of a peer of its own.
fn route(interface: IfIndex, number: u32, metric: u32, mtu: Option<u32>) -> Change {
    let to = Ipv4Net::new(Ipv4Addr::from_bits(0x0a00_0000 + number), 32).unwrap();
    Change::Route(RouteSpec { metric: Some(Metric(metric)), mtu: mtu.map(Mtu), ..RouteSpec::to(to.into(), interface) })
}

fn routes(interface: IfIndex, count: u32, metric: u32, mtu: Option<u32>) -> Vec<Change> {
    (0..count).map(|number| route(interface, number, metric, mtu)).collect()
}

#[test]
fn many_routes_become_what_each_of_them_would_alone() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth_up("v0", "v1");
        until_shown("-6 route show table all", "ff00::/8 dev v0");
        ip("route add 10.0.0.7/32 dev v0 scope link metric 5");
        let before = system();
        let mut config = config(directory.path());
        let (plain, narrow) = (routes(index("v0"), 200, 5, None), routes(index("v0"), 200, 5, Some(1_300)));
        let lines = |word: &str| shown("-4 route").lines().filter(|line| line.contains(word)).count();

        let outcomes = config.apply_all(&plain).await;
        let refused: Vec<usize> = (0..200).filter(|place| outcomes[*place].is_err()).collect();
        assert_eq!(refused, [7], "somebody else has it");
        assert_eq!(outcomes[7].as_ref().unwrap_err().errno(), Some(libc::EEXIST));
        assert!(outcomes.iter().flatten().all(|applied| *applied == Applied::Set));
        assert_eq!((config.applied().count(), lines("proto 72")), (199, 199));

        let again = config.apply_all(&plain[8..]).await;
        assert!(
            again.iter().flatten().all(|applied| *applied == Applied::AlreadySo) && again.iter().all(Result::is_ok)
        );
        let replaced = config.apply_all(&narrow[8..]).await;
        assert!(
            replaced.iter().flatten().all(|applied| *applied == Applied::Set) && replaced.iter().all(Result::is_ok)
        );
        assert_eq!((config.applied().count(), lines("proto 72"), lines("mtu 1300")), (199, 199, 192));

        // Those with another MTU are others.
        assert!(config.undo_each(&plain).await.iter().all(Result::is_ok));
        assert_eq!((config.applied().count(), lines("proto 72")), (192, 192));
        ip("route del 10.0.0.9/32 metric 5");
        for _ in 0..2 {
            assert!(config.undo_each(&narrow).await.iter().all(Result::is_ok));
            assert_eq!(config.applied().count(), 0);
            assert_restored(&before);
        }
    });
}

#[test]
fn many_routes_out_of_an_interface_that_is_gone_are_refused_and_not_held() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        let nobody = IfIndex::new(4242).unwrap();
        let outcomes = config.apply_all(&routes(nobody, 100, 5, None)).await;
        assert!(outcomes.len() == 100 && outcomes.iter().all(Result::is_err), "{outcomes:?}");
        assert_eq!(config.applied().count(), 0);
    });
}

#[test]
fn ten_times_as_many_routes_take_some_ten_times_as_long() {
    in_namespace(|| async {
        veth("v0", "v1");
        ip("link set v0 up");
        let (few, many) = (moved(index("v0"), 1_000).await, moved(index("v0"), 10_000).await);
        for (what, few, many) in [("at once", few[0], many[0]), ("one by one", few[1], many[1])] {
            println!("routes that get another metric {what}: 1,000 in {few:?}, 10,000 in {many:?}");
            assert!(many < few.max(MOMENT) * TIMES_MOST, "{what}: 1,000 in {few:?}, 10,000 in {many:?}");
        }
    });
}

/// How long it takes until routes of a standby's are an owner's, all at once and then one by one.
async fn moved(interface: IfIndex, count: u32) -> [Duration; 2] {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    let [standby, owner, next] = [3, 2, 1].map(|metric| routes(interface, count, metric, None));
    assert!(config.apply_all(&standby).await.iter().all(Result::is_ok));
    let begun = Instant::now();
    assert!(config.apply_all(&owner).await.iter().all(Result::is_ok));
    assert!(config.undo_each(&standby).await.iter().all(Result::is_ok));
    let at_once = begun.elapsed();
    let begun = Instant::now();
    for (new, old) in next.iter().zip(&owner) {
        config.apply(new.clone()).await.unwrap();
        config.undo(old).await.unwrap();
    }
    let one_by_one = begun.elapsed();
    assert_eq!(config.applied().count(), next.len());
    assert!(config.undo_each(&next).await.iter().all(Result::is_ok));
    assert_eq!(config.applied().count(), 0);
    [at_once, one_by_one]
}
