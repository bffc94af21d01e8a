//! The number by which a portal's own traffic and its routing table are known: the same for both, and another for each
//! TUN device.

use hawser_net::netcfg::{Mark, TableId};

/// The numbers begin here: 'H' and 'W'. iproute2 names tables up to 255, and others' numbers are mostly below 65536.
const FIRST: u32 = 0x4857_0000;
/// Where journals are.
pub const JOURNALS: &str = "/run/hawser";
/// FNV-1a with 32 bits (draft-eastlake-fnv, section 5).
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The mark of everything that the portal with this TUN device sends by its links.
pub fn mark(tun: &str) -> Mark {
    Mark(number(tun))
}

/// The routing table of its default route.
pub fn table(tun: &str) -> TableId {
    TableId(number(tun))
}

/// The mark of packets that a rule leads past the tunnel.
pub fn direct_mark(tun: &str) -> Mark {
    Mark(number(&format!("{tun}/direct")))
}

/// The group that answers of name servers are logged to (nft(8), `log group`).
pub fn log_group(tun: &str) -> u16 {
    (number(&format!("{tun}/names")) & 0xffff) as u16
}

/// A name that a directory can have: an interface's may have other characters.
pub fn plain(tun: &str) -> String {
    tun.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Of a text that is not secret: the same on every machine.
pub fn hash(text: &str) -> u32 {
    text.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME))
}

fn number(tun: &str) -> u32 {
    let hash = hash(tun);
    FIRST | ((hash >> 16) ^ (hash & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tun_device_has_a_number_that_stays() {
        // docs/gateway.md names the first.
        assert_eq!(table("hawser0"), TableId(0x4857_f1a1));
        let numbers: Vec<u32> = (0..100).map(|n| number(&format!("hawser{n}"))).collect();
        for (at, number) in numbers.iter().enumerate() {
            assert!(number & 0xffff_0000 == FIRST && !numbers[..at].contains(number), "{number:#x}");
        }
    }
}
