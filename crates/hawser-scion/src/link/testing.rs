//! What the tests of this module make paths and packets of.

use std::sync::Arc;

use crate::addr::EndpointAddr;
use crate::path::Dataplane;

/// An endpoint as it is written.
pub(super) fn endpoint(text: &str) -> EndpointAddr {
    text.parse().expect("an endpoint")
}

/// A path of one segment in the direction of construction that crosses these interfaces, two a link between ASes; `mac`
/// fills its authenticators.
pub(super) fn dataplane(interfaces: &[u16], mac: u8) -> Dataplane {
    let ends = [&[0], interfaces, &[0]].concat();
    let (hops, _) = ends.as_chunks::<2>();
    let mut bytes = ((hops.len() as u32) << 12).to_be_bytes().to_vec();
    bytes.extend([1, 0, 0, mac, 0x70, 0, 0, 0]);
    for [ingress, egress] in hops {
        bytes.extend([0, 63]);
        bytes.extend(ingress.to_be_bytes());
        bytes.extend(egress.to_be_bytes());
        bytes.extend([mac; 6]);
    }
    Dataplane::Scion(Arc::from(bytes))
}
