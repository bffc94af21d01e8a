//! What needs no kernel: names, numbers, and what older kernels lack.

use super::manager::Release;
use super::*;
use crate::{
    genetlink::Message,
    netcfg::{Change, Feature},
};

fn endpoint(flags: EndpointFlags) -> MptcpEndpoint {
    MptcpEndpoint::new([10, 0, 0, 1].into(), flags)
}

#[test]
fn an_endpoint_is_told_in_words() {
    let plain = endpoint(EndpointFlags::default());
    assert_eq!(plain.to_string(), "mptcp endpoint 10.0.0.1");
    let full = MptcpEndpoint {
        port: Some(4920),
        interface: IfIndex::new(3),
        ..endpoint(EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH | EndpointFlags::BACKUP)
    };
    assert_eq!(full.to_string(), "mptcp endpoint 10.0.0.1 port 4920 on interface 3 subflow backup fullmesh");
    assert_eq!(MptcpLimits { subflows: 7, accepted: 1 }.to_string(), "mptcp limits: 7 subflows, 1 addresses");
}

#[test]
fn what_is_encoded_is_read_again() {
    let full = MptcpEndpoint {
        address: "fd77::1".parse().unwrap(),
        port: Some(4920),
        interface: IfIndex::new(3),
        flags: EndpointFlags::SIGNAL,
    };
    for endpoint in [full, endpoint(EndpointFlags::LAMINAR), endpoint(EndpointFlags::default())] {
        let attributes = encode::endpoint(&endpoint, Some(EndpointId(9))).into_bytes();
        let answer = Message { command: 3, attributes };
        assert_eq!(encode::endpoint_of(&answer), Some((EndpointId(9), endpoint)));
    }
    let limits = MptcpLimits { subflows: 8, accepted: 3 };
    let answer = Message { command: 6, attributes: encode::limits(limits).into_bytes() };
    assert_eq!(encode::limits_of(&answer), Some(limits));
    assert_eq!(encode::limits_of(&Message { command: 6, attributes: vec![] }), None);
}

#[test]
fn a_journal_keeps_endpoints_and_limits() {
    let changes = [
        Change::MptcpEndpoint(MptcpEndpoint { interface: IfIndex::new(3), ..endpoint(EndpointFlags::SUBFLOW) }),
        Change::MptcpLimits(MptcpLimits { subflows: 8, accepted: 0 }),
    ];
    for change in changes {
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), change, "{text}");
    }
}

#[test]
fn flags_that_an_older_kernel_would_pass_over_are_refused_by_name() {
    let (mesh, laminar) = (EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH, EndpointFlags::LAMINAR);
    for (release, flags, missing) in [
        ("5.10.0-8-amd64", mesh, Some(Feature::MptcpFullmesh)),
        ("5.15.0", mesh, None),
        ("6.17.9-arch1", laminar, Some(Feature::MptcpLaminar)),
        ("6.18.1", laminar | mesh, None),
        ("7.0-rc1", laminar, None),
        ("5.6.0", EndpointFlags::SIGNAL, None),
        ("no numbers", laminar, None),
    ] {
        assert_eq!(flags.missing(Release::parse(release)), missing, "{release}");
    }
}
