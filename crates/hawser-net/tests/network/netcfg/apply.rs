//! Every change is set as ordered, and undone without a trace.

use std::fs;

use hawser_net::netcfg::{Applied, Change, Family, IfIndex, Mtu, NetConfigError, RouteSpec, RulePriority, SysctlKey};

use super::lab::{
    assert_restored, config, every_change, in_namespace, index, ip, shown, system, until_shown, veth, veth_up,
};

#[test]
fn every_change_is_applied_and_undone() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let before = system();
        let mut config = config(directory.path());
        assert!(config.recover().await.is_clean());
        let changes = every_change("v0");
        for (change, question, want) in &changes {
            assert!(!shown(question).contains(want), "{change} is there already");
            assert_eq!(config.apply(change.clone()).await.unwrap(), Applied::Set, "{change}");
            assert!(shown(question).contains(want), "{change}: {}", shown(question));
        }
        for (change, ..) in &changes {
            assert_eq!(config.apply(change.clone()).await.unwrap(), Applied::AlreadySo, "{change}");
        }
        assert_eq!(config.applied().count(), changes.len());
        let report = config.undo_all().await;
        assert!(report.is_clean() && report.gone.is_empty(), "{report:?}");
        let reversed: Vec<_> = changes.into_iter().rev().map(|(change, ..)| change).collect();
        assert_eq!(report.undone, reversed);
        assert_restored(&before);
        drop(config);
        assert_eq!(fs::read_dir(directory.path().join("hawser0")).unwrap().count(), 0);
    });
}

#[test]
fn each_change_alone_is_undone() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth_up("v0", "v1");
        until_shown("-6 route show table all", "ff00::/8 dev v0");
        let mut config = config(directory.path());
        for (change, ..) in every_change("v0") {
            if matches!(&change, Change::Route(route) if route.source.is_some()) {
                ip("addr add 10.77.0.1/24 dev v0");
            }
            let before = system();
            config.apply(change.clone()).await.unwrap();
            config.undo(&change).await.unwrap();
            assert_restored(&before);
            config.undo(&change).await.unwrap();
        }
        assert_eq!(config.applied().count(), 0);
    });
}

#[test]
fn a_route_gets_another_mtu_in_its_place_and_goes_whatever_it_has() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let mut config = config(directory.path());
        let interface = index("v0");
        config.apply(Change::LinkUp { interface }).await.unwrap();
        for (destination, question) in [("192.168.8.0/24", "-4 route"), ("fd88::/48", "-6 route")] {
            let before = system();
            let route = |mtu: Option<u32>| {
                Change::Route(RouteSpec { mtu: mtu.map(Mtu), ..RouteSpec::to(destination.parse().unwrap(), interface) })
            };
            for mtu in [None, Some(1_300), Some(1_290), None, Some(1_400)] {
                config.apply(route(mtu)).await.unwrap();
                let lines: Vec<String> =
                    shown(question).lines().filter(|line| line.contains(destination)).map(str::to_owned).collect();
                assert_eq!(lines.len(), 1, "{lines:?}");
                let wanted = mtu.map_or_else(|| "mtu".to_owned(), |mtu| format!("mtu {mtu}"));
                assert_eq!(lines[0].contains(&wanted), mtu.is_some(), "{mtu:?}: {lines:?}");
            }
            assert_eq!(config.applied().count(), 2);
            config.undo(&route(Some(1_400))).await.unwrap();
            assert_restored(&before);
        }
    });
}

#[test]
fn a_row_of_mtus_goes_back_to_the_first() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let (before, interface) = (system(), index("v0"));
        let mut config = config(directory.path());
        for mtu in [1400, 1300, 1350, 1500, 1280] {
            config.apply(Change::Mtu { interface, mtu: Mtu(mtu) }).await.unwrap();
        }
        assert!(shown("link show dev v0").contains("mtu 1280"));
        assert_eq!(config.applied().count(), 1);
        let refused = config.apply(Change::Mtu { interface, mtu: Mtu(7) }).await.unwrap_err();
        assert_eq!(refused.errno(), Some(libc::EINVAL), "{refused}");
        assert!(refused.to_string().starts_with("set mtu 7 on interface"), "{refused}");
        let kept: Vec<_> = config.applied().cloned().collect();
        assert_eq!(kept, [Change::Mtu { interface, mtu: Mtu(1280) }]);
        config.undo_all().await;
        assert_restored(&before);
    });
}

#[test]
fn what_others_set_stays() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let changes = every_change("v0");
        // All of it was there before, by somebody else's hand.
        for command in [
            "link set v0 up mtu 1400",
            "addr add 10.77.0.1/24 dev v0",
            "addr add fd77::1/64 dev v0",
            "route add 192.168.8.0/24 dev v0 scope link src 10.77.0.1",
            "route add default dev v0 scope link metric 7 table 4920",
            "-6 route add fd88::/48 dev v0",
            "-6 route add default dev v0 metric 7 table 4920",
            "-4 rule add not fwmark 0x48 lookup 4920 priority 100",
            "-4 rule add lookup main suppress_prefixlength 0 priority 99",
            "-6 rule add iif v0 lookup 4920 priority 100",
            "route add 192.168.9.0/24 via 10.77.0.9 dev v0",
            "route add local 10.66.0.0/16 dev v0 table 4920",
            "-4 rule add from 10.66.0.0/16 to 192.0.2.1 oif v0 ipproto 17 lookup 4920 priority 98",
            "-6 rule add from fd66::/64 lookup 4920 priority 98",
            "route add unreachable 10.67.0.0/16 table 4920 metric 4294967295",
            "-6 route add unreachable fd67::/64 table 4920 metric 4294967295",
            "route add blackhole 10.68.0.0/16 table 4920",
            "-4 rule add lookup local priority 5",
            "-4 rule del priority 0",
            "-6 rule add lookup local priority 5",
            "-6 rule del priority 0",
            "mptcp endpoint add 10.77.0.1 subflow backup",
            "mptcp endpoint add fd77::1 dev v0 signal",
            "mptcp limits set subflows 7 add_addr_accepted 3",
        ] {
            ip(command);
        }
        SysctlKey::rp_filter("v0").unwrap().write("2").unwrap();
        let before = system();
        let mut config = config(directory.path());
        for (change, ..) in changes {
            match config.apply(change.clone()).await {
                // The kernel keeps rules of another protocol number apart, alike as they may be; the table is Hawser's.
                Ok(Applied::Set) if matches!(change, Change::Rule(_) | Change::Nft(_)) => {}
                Ok(applied) => assert_eq!(applied, Applied::AlreadySo, "{change}"),
                Err(error) => {
                    assert_eq!(error.errno(), Some(libc::EEXIST), "{change}: {error}");
                    assert!(error.hint().is_some());
                }
            }
        }
        assert!(config.applied().all(|change| matches!(change, Change::Rule(_) | Change::Nft(_))));
        assert!(config.undo_all().await.is_clean());
        assert_restored(&before);
    });
}

#[test]
fn what_others_changed_since_is_left_to_them() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let mut config = config(directory.path());
        for (change, ..) in every_change("v0") {
            config.apply(change).await.unwrap();
        }
        let filter = SysctlKey::rp_filter("v0").unwrap();
        filter.write("1").unwrap();
        ip("link set v0 mtu 1390");
        ip("addr del 10.77.0.1/24 dev v0");
        ip("-4 rule del priority 100");
        let report = config.undo_all().await;
        assert!(report.is_clean(), "{report:?}");
        // With the address went the route that had it as its source.
        assert!(report.gone.len() >= 4, "{report:?}");
        assert_eq!(filter.read().unwrap(), "1");
        assert!(shown("link show dev v0").contains("mtu 1390"));
    });
}

#[test]
fn a_vanished_interface_leaves_nothing_to_undo() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        let before = system();
        veth("v0", "v1");
        let mut config = config(directory.path());
        for (change, ..) in every_change("v0") {
            config.apply(change).await.unwrap();
        }
        ip("link del v0");
        let report = config.undo_all().await;
        assert!(report.is_clean(), "{report:?}");
        assert_restored(&before);
    });
}

#[test]
fn routes_that_the_kernel_dropped_can_be_set_again() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let mut config = config(directory.path());
        let changes = every_change("v0");
        for (change, ..) in &changes {
            config.apply(change.clone()).await.unwrap();
        }
        ip("link set v0 down");
        ip("link set v0 up");
        for (change, question, want) in &changes {
            config.apply(change.clone()).await.unwrap();
            assert!(shown(question).contains(want), "{change}: {}", shown(question));
        }
        assert_eq!(config.applied().count(), changes.len(), "nothing is held twice");
    });
}

#[test]
fn a_refused_change_is_not_held() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        let nobody = IfIndex::new(4242).unwrap();
        for change in [
            Change::LinkUp { interface: nobody },
            Change::Mtu { interface: nobody, mtu: Mtu(1400) },
            Change::Address { interface: nobody, address: "10.0.0.1/24".parse().unwrap() },
            Change::Sysctl { key: SysctlKey::rp_filter("nobody").unwrap(), value: "2".into() },
            Change::Sysctl { key: SysctlKey::rp_filter("lo").unwrap(), value: "not a number".into() },
        ] {
            let error = config.apply(change.clone()).await.unwrap_err();
            assert!(
                matches!(
                    error,
                    NetConfigError::NoSuchInterface { .. } | NetConfigError::Kernel { .. } | NetConfigError::Sysctl(_)
                ),
                "{change}: {error}"
            );
            assert_eq!(config.applied().count(), 0, "{change}");
        }
    });
}

#[test]
fn an_address_refused_because_ipv6_is_off_comes_with_a_hint() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        let off = SysctlKey::new("net/ipv6/conf/v0/disable_ipv6").unwrap();
        off.write("1").unwrap();
        let mut config = config(directory.path());
        let address = Change::Address { interface: index("v0"), address: "fd77::1/64".parse().unwrap() };
        let error = config.apply(address).await.unwrap_err();
        assert!(error.hint().unwrap().contains("disable_ipv6"), "{error}");
        assert_eq!(config.applied().count(), 0);
    });
}

#[test]
fn a_setting_of_several_words_is_put_back() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        let key = SysctlKey::new("net/ipv4/ip_local_port_range").unwrap();
        let before = key.read().unwrap();
        let mut config = config(directory.path());
        let change = Change::Sysctl { key: key.clone(), value: "40000 50000".into() };
        assert_eq!(config.apply(change.clone()).await.unwrap(), Applied::Set);
        assert_eq!(config.apply(change).await.unwrap(), Applied::AlreadySo);
        config.undo_all().await;
        assert_eq!(key.read().unwrap(), before);
    });
}

#[test]
fn rp_filter_of_one_interface_is_loosened_and_put_back() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        veth("v0", "v1");
        for interface in ["all", "v0", "v1"] {
            SysctlKey::rp_filter(interface).unwrap().write("1").unwrap();
        }
        let key = SysctlKey::rp_filter("v0").unwrap();
        let mut config = config(directory.path());
        config.apply(Change::Sysctl { key: key.clone(), value: "2".into() }).await.unwrap();
        assert_eq!(key.read().unwrap(), "2");
        assert_eq!(SysctlKey::rp_filter("v1").unwrap().read().unwrap(), "1");
        config.apply(Change::Sysctl { key: key.clone(), value: "0".into() }).await.unwrap();
        assert_eq!(config.applied().count(), 1, "one entry a setting");
        config.undo_all().await;
        assert_eq!(key.read().unwrap(), "1");
    });
}

/// Whatever was done of it before a kill, undoing it ends with the rule where the kernel had it, and never without it.
#[test]
fn the_local_rule_comes_back_from_every_step_of_its_move() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        let change = Change::LocalRule { family: Family::V4, priority: RulePriority(1) };
        let moved: [&[&str]; 4] = [
            &[],
            &["rule add priority 0 lookup local proto kernel"],
            &["rule add priority 0 lookup local proto kernel", "rule del priority 1"],
            &["rule add priority 7 lookup local", "rule del priority 1"],
        ];
        let mut config = config(directory.path());
        for (steps, restored) in moved.into_iter().zip([true, true, true, false]) {
            let before = system();
            config.apply(change.clone()).await.unwrap();
            assert_eq!(ip("rule").lines().next(), Some("1:\tfrom all lookup local"));
            for step in steps {
                ip(step);
            }
            assert!(config.undo_all().await.is_clean());
            if restored {
                assert_restored(&before);
            } else {
                // Somebody else has put it elsewhere since: it is theirs.
                assert_eq!(ip("rule").lines().next(), Some("7:\tfrom all lookup local"));
            }
        }
    });
}
