//! What the fuzz target of `fuzz/` and the tests run on any bytes: nothing panics, and what is read lies within them.

use super::{MptcpOption, Segment};

/// An IP packet, or what claims to be one.
pub fn segment(packet: &[u8]) {
    let Ok(segment) = Segment::parse(packet) else { return };
    assert!(usize::from(segment.tcp_at) + segment.options_len() <= packet.len());
    assert!(segment.options().count() <= segment.options_len());
    for option in segment.mptcp() {
        if let Ok(MptcpOption::RemoveAddr(ids)) = option {
            assert!(!ids.is_empty());
        }
    }
    assert!(segment.window_scale().is_none_or(|shift| shift <= 14));
}
