//! `hawser hub status` against a control socket that answers.

use hawser_portal::api::{EtcdStatus, HubStatus, PeerStatus, Program, Status};
use serde_json::json;

use crate::asked::asked;

fn peer(name: &str, role: &str, epoch: u64, draining: bool) -> PeerStatus {
    let peer = json!({ "name": name, "rx_bytes": 0, "tx_bytes": 0, "paths": [] });
    let hub = (!role.is_empty()).then(|| HubStatus { role: role.into(), epoch, since_s: 61.5, draining });
    PeerStatus { hub, ..serde_json::from_value(peer).expect("the rest has defaults") }
}

fn shown(status: Status) -> (String, String, Option<i32>) {
    let out = asked(Program::Portal, status, &["hub", "status"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&out.stdout), text(&out.stderr), out.status.code())
}

#[test]
fn a_member_says_what_it_is_to_each_peer_and_who_is_asked_to_go() {
    let peers = vec![peer("home", "owner", 7, true), peer("branch", "standby", 12, false), peer("plain", "", 0, false)];
    let told = |draining| shown(Status { peers: peers.clone(), draining, ..Status::default() }).0;
    let table = "  peer    role     epoch        for\n  home    owner        7  1 min 1 s";
    assert_eq!(told(false), format!("{table}  is asked to go\n  branch  standby     12  1 min 1 s\n"));
    let all = format!("draining: all peers are asked to go\n{table}\n  branch  standby     12  1 min 1 s\n");
    assert_eq!(told(true), all);
    assert_eq!(shown(Status::default()).0, "no peers\n");
}

#[test]
fn a_member_says_whether_etcd_is_reached_and_what_it_takes() {
    let there =
        EtcdStatus { reached: true, since_s: 61.5, serving: true, members: 2, peers: 12, ..EtcdStatus::default() };
    let away = EtcdStatus { reached: false, why: Some("connect to https://a:2379: refused".into()), ..there.clone() };
    let told = |etcd: EtcdStatus| shown(Status { etcd: Some(etcd), ..Status::default() }).0;
    assert_eq!(told(there.clone()), "etcd reached for 1 min 1 s: members 2, peers 12, revoked 0\nno peers\n");
    assert_eq!(told(away.clone()), "etcd not reached for 1 min 1 s: connect to https://a:2379: refused\nno peers\n");
    let known = EtcdStatus { in_step_age_s: Some(63.0), ..away.clone() };
    assert!(told(known).contains(": connect to https://a:2379: refused; what is known is 1 min 3 s old\n"));
    let full = EtcdStatus { unwritten: Some("write load: no space".into()), ..there.clone() };
    let line = "etcd takes nothing from this member: write load: no space\n";
    assert!(told(full.clone()).contains(line), "{}", told(full));
    let taken = EtcdStatus { namesake: Some("member zurich is another portal, at b:1".into()), ..there.clone() };
    let line =
        "not among the hub's members in etcd: member zurich is another portal, at b:1\n  hint: give one of the two";
    assert!(told(taken.clone()).contains(line), "{}", told(taken));
    let strict = EtcdStatus { serving: false, ..away };
    assert!(told(strict.clone()).contains("not served until it is reached (etcd_strict)\n"), "{}", told(strict));
}

#[test]
fn who_is_no_member_is_told_where_to_look() {
    let (out, error, code) = shown(Status { peers: vec![peer("zurich", "active", 7, false)], ..Status::default() });
    let expected = "error: ask portal for its hub: it is no member of one, or none of its peers has come\n\
                    hint: a member has [hub] in its configuration; what a hub's peer sees: hawser status\n";
    assert_eq!((out.as_str(), error.as_str(), code), ("", expected, Some(1)));
}
