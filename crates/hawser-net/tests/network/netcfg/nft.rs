//! Hawser's table of nftables: replaced whole or not at all, and nobody else's is touched.

use hawser_net::netcfg::{Applied, Change, NetConfigError, NftChain, NftError, NftName, NftTable};

use super::lab::{assert_restored, config, in_namespace, nft, system};

fn table(rules: &[&str]) -> Change {
    let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let hook = Some("type filter hook forward priority filter".to_owned());
    let chains = vec![NftChain { name: "forward".into(), hook, rules }];
    Change::Nft(NftTable { name: NftName::of_tun("hawser0"), sets: Vec::new(), chains })
}

#[test]
fn a_row_of_tables_is_one_and_a_refused_one_leaves_the_last_in_force() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        nft("add table inet others");
        nft("add chain inet others forward { type filter hook forward priority 0; policy drop; }");
        let before = system();
        let mut config = config(directory.path());
        for mark in ["0x1", "0x2", "0x3"] {
            assert_eq!(config.apply(table(&[&format!("meta mark {mark} accept")])).await.unwrap(), Applied::Set);
        }
        let set = nft("list table inet hawser_hawser0");
        assert!(set.contains("0x00000003") && !set.contains("0x00000002"), "{set}");
        let error = config.apply(table(&["meta mark 0x4 accept", "no such words"])).await.unwrap_err();
        assert!(matches!(error, NetConfigError::Nft(NftError::Refused { .. })), "{error}");
        assert_eq!(nft("list table inet hawser_hawser0"), set, "not even its first rule");
        assert_eq!(config.applied().collect::<Vec<_>>(), [&table(&["meta mark 0x3 accept"])]);
        assert!(config.undo_all().await.is_clean());
        assert_restored(&before);
    });
}

#[test]
fn a_table_that_somebody_flushed_is_set_again_and_need_not_be_there_to_be_undone() {
    in_namespace(|| async {
        let directory = tempfile::tempdir().unwrap();
        let before = system();
        let mut config = config(directory.path());
        let change = table(&["accept"]);
        config.apply(change.clone()).await.unwrap();
        assert_eq!(config.apply(change.clone()).await.unwrap(), Applied::AlreadySo);
        nft("flush ruleset");
        assert_eq!(config.apply(change.clone()).await.unwrap(), Applied::Set);
        assert!(nft("list ruleset").contains("hawser_hawser0"));
        nft("flush ruleset");
        let report = config.undo_all().await;
        assert!(report.is_clean() && report.gone == [change], "{report:?}");
        assert_restored(&before);
    });
}
