//! What closes, in words, and what of that is recorded.

use super::*;

fn record(tun: &str, served: &[&str]) -> Record {
    Record { tun: tun.to_owned(), served: served.iter().map(|name| (*name).to_owned()).collect() }
}

#[test]
fn nothing_but_the_tunnel_the_links_own_traffic_and_the_neighbourhood_is_let_out() {
    let table = table(&record("hawser0", &["lan0"])).expect("names that can be quoted");
    let rules = &table.chains[0].rules;
    assert_eq!(table.name.to_string(), "hawser_hawser0_closed");
    assert_eq!(rules[0], "oifname { \"lo\", \"hawser0\", \"lan0\" } accept");
    assert_eq!(rules[1], "meta mark 0x4857f1a1 accept");
    assert_eq!(rules.last().map(String::as_str), Some("counter drop"));
    assert!(self::table(&record("hawser0", &["a\"b"])).is_err());
}

#[test]
fn the_rules_name_a_table_of_their_own_in_which_nothing_is_reached() {
    let closed = own::table("hawser0/closed");
    let said: Vec<String> = routing("hawser0", Family::V4, closed, [RulePriority(5), RulePriority(6)])
        .iter()
        .map(ToString::to_string)
        .collect();
    let want = [
        format!("unreachable route 0.0.0.0/0 out of interface 1 table {closed}"),
        "ipv4 rule 5: to table 254".to_owned(),
        format!("ipv4 rule 6: not mark 0x4857f1a1/0xffffffff to table {closed}"),
    ];
    assert_eq!(said, want);
    assert_ne!(closed, own::table("hawser0"));
}

#[test]
fn records_are_kept_and_read_back_and_others_files_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    assert_eq!(records(&state), []);
    for kept in [record("hawser1", &[]), record("hawser0", &["lan0"]), record("hawser0", &["lan1"])] {
        keep(&state, &kept).expect("it can be kept");
    }
    fs::write(state.join("hawser0.usage.json"), "{}").expect("a file");
    fs::write(state.join("broken.closed.json"), "{").expect("a file");
    assert_eq!(records(&state), [record("hawser0", &["lan1"]), record("hawser1", &[])]);
}

#[test]
fn a_record_that_is_there_already_needs_no_disk_that_can_be_written_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path();
    let kept = record("hawser0", &["lan0"]);
    keep(state, &kept).expect("it can be kept");
    // Nothing can be written beside it any more, by root neither.
    fs::create_dir(state.join("hawser0.closed.new")).expect("a folder");
    keep(state, &kept).expect("it is there");
    let other = keep(state, &record("hawser0", &["lan1"]));
    assert!(matches!(other, Err(KillSwitchError::Record { .. })), "{other:?}");
    assert_eq!(records(state), [kept]);
}

#[test]
fn of_a_faulty_configuration_as_much_is_read_as_can_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hawser.toml");
    let of = |text: &str| {
        fs::write(&file, text).expect("a file");
        state_dir(&file)
    };
    assert_eq!(of("[portal]\nstate_dir = \"/srv/state\"\nnoise = 1\n"), Path::new("/srv/state"));
    assert_eq!(of("[portal]\nstate_dir = \"/srv/state\"\n[tun\nname = "), Path::new("/srv/state"), "no TOML");
    assert_eq!(of("what is this"), Path::new(DEFAULT_STATE_DIR));
    assert_eq!(state_dir(&folder.path().join("missing")), Path::new(DEFAULT_STATE_DIR));
}
