//! Kinds and options, without a network.

use super::*;

/// A plan with these options, in TOML.
pub(super) fn plan(kind: &str, options: &str) -> ContenderPlan {
    let options = options.parse().unwrap_or_else(|error| panic!("options of a test: {error}\n{options}"));
    ContenderPlan { kind: kind.to_owned(), label: kind.to_owned(), options }
}

pub(super) fn programs() -> Programs {
    Programs { hawser: "/nowhere/hawser".into(), cache: "/nowhere".into() }
}

fn refusal(kind: &str, options: &str) -> String {
    match make(&plan(kind, options), &programs()) {
        Err(error @ LabError::Option { .. }) => error.to_string(),
        Err(error) => panic!("{kind} {options}: {error}"),
        Ok(_) => panic!("{kind} understands {options}"),
    }
}

#[test]
fn what_is_not_known_is_refused_and_what_exists_is_named() {
    let table = [
        (
            "tpc",
            "",
            "set up tpc: there is no kind \"tpc\", but: tcp, mptcp, hawser, ecmp, wireguard-go, mlvpn, mlvpn-rs, \
                     glorytun, engarde, openvpn, mqvpn, yardstick",
        ),
        ("ecmp", "link = \"eth\"", "set up ecmp: no option `link`, nor any other"),
        ("tcp", "links = \"eth\"", "set up tcp: no option `links`; there are: link"),
        ("tcp", "link = 1", "set up tcp: option `link` is 1, but takes a string"),
        (
            "mptcp",
            "path-manager = \"mesh\"",
            "set up mptcp: option `path-manager` is \"mesh\", but takes \"fullmesh\" | \"ndiffports\" | \"default\"",
        ),
        ("mptcp", "subflows = 3", "set up mptcp: subflows is for path-manager = \"ndiffports\""),
        (
            "mptcp",
            "path-manager = \"ndiffports\"\nsubflows = 9",
            "set up mptcp: option `subflows` is 9, but takes a whole number up to 8",
        ),
        ("mptcp", "checksums = 1", "set up mptcp: option `checksums` is 1, but takes true | false"),
        ("hawser", "transport = 1", "set up hawser: transport is neither a string nor a table of links"),
        ("hawser", "fec = \"on\"", "set up hawser: option `fec` is \"on\", but takes \"off\" | \"auto\""),
        ("openvpn", "protocol = \"ip\"", "set up openvpn: option `protocol` is \"ip\", but takes \"udp\" | \"tcp\""),
    ];
    for (kind, options, expected) in table {
        assert_eq!(refusal(kind, options), expected);
    }
}

#[test]
fn every_kind_is_made_without_options() {
    for (kind, _) in kinds() {
        assert!(make(&plan(kind, ""), &programs()).is_ok(), "{kind}");
    }
}
