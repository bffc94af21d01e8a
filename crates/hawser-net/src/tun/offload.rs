//! Agreeing with the kernel on what may cross the TUN device unfinished.
//!
//! 1. Ask for checksums, TCP and UDP segmentation.
//! 2. Refused: the same without UDP segmentation (Linux before 6.2).
//! 3. Refused: checksums alone. 4. Refused: nothing; each packet comes finished.

use std::io;
use std::mem;

use libc::{TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6, TUN_F_USO4, TUN_F_USO6};

use super::kernel_release;

// TUN_F_TSO_ECN stays off: the kernel then cuts a train that carries CWR itself, so that CWR is
// on its first segment only (RFC 3168 section 6.1.2) and no cutter of ours has to know of it.

/// First kernel with UDP segmentation on TUN devices (Linux 6.2, `TUN_F_USO4` and `TUN_F_USO6`).
const USO_SINCE: &str = "6.2";

/// First kernel with TCP segmentation on TUN devices (Linux 2.6.27, `TUN_F_TSO4` and `TUN_F_TSO6`).
const TSO_SINCE: &str = "2.6.27";

/// Offloads of a TUN device: those asked for, or those it has. By default none.
/// Set once, when the device is made. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Packets may lack the checksum of their transport header.
    pub checksum: bool,
    /// TCP trains may come as one packet, over IPv4 and IPv6; needs `checksum`.
    pub tcp_segmentation: bool,
    /// UDP trains may come as one packet, over IPv4 and IPv6; needs `checksum`.
    pub udp_segmentation: bool,
}

impl Features {
    /// Every offload there is.
    pub const ALL: Features = Features { checksum: true, tcp_segmentation: true, udp_segmentation: true };

    /// The argument of TUNSETOFFLOAD.
    fn bits(self) -> u32 {
        let bit = |on: bool, bits: u32| if on && self.checksum { bits } else { 0 };
        bit(true, TUN_F_CSUM) | bit(self.tcp_segmentation, TSO) | bit(self.udp_segmentation, USO)
    }
}

/// An offload that the kernel refused: the portal works, and slower.
/// Made when the device is. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TunFinding {
    /// No UDP segmentation: QUIC and the like cross packet by packet.
    #[error("tun device without udp segmentation: Linux {kernel} refuses it (it came with {USO_SINCE})")]
    NoUdpSegmentation {
        /// The running kernel's release.
        kernel: String,
    },
    /// No TCP segmentation: TCP crosses packet by packet.
    #[error("tun device without tcp segmentation: Linux {kernel} refuses it (it came with {TSO_SINCE})")]
    NoTcpSegmentation {
        /// The running kernel's release.
        kernel: String,
    },
    /// No checksum offload: the host computes every checksum.
    #[error("tun device without checksum offload: Linux {kernel} refuses it")]
    NoChecksum {
        /// The running kernel's release.
        kernel: String,
    },
}

const TSO: u32 = TUN_F_TSO4 | TUN_F_TSO6;
const USO: u32 = TUN_F_USO4 | TUN_F_USO6;

/// Asks `set` for all that is wanted, then for less, and says what was refused.
pub(super) fn negotiate(wanted: Features, mut set: impl FnMut(u32) -> io::Result<()>) -> (Features, Vec<TunFinding>) {
    let mut features = Features {
        tcp_segmentation: wanted.tcp_segmentation && wanted.checksum,
        udp_segmentation: wanted.udp_segmentation && wanted.checksum,
        ..wanted
    };
    let mut findings = Vec::new();
    while set(features.bits()).is_err() {
        let kernel = kernel_release();
        if mem::take(&mut features.udp_segmentation) {
            findings.push(TunFinding::NoUdpSegmentation { kernel });
        } else if mem::take(&mut features.tcp_segmentation) {
            findings.push(TunFinding::NoTcpSegmentation { kernel });
        } else if mem::take(&mut features.checksum) {
            findings.push(TunFinding::NoChecksum { kernel });
        } else {
            // A new device has no offload on, so there is nothing to take back.
            break;
        }
    }
    (features, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel_that_knows(known: u32) -> (Features, usize, u32) {
        let mut last = 0;
        let (features, findings) = negotiate(Features::ALL, |bits| {
            if bits & !known != 0 {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            last = bits;
            Ok(())
        });
        (features, findings.len(), last)
    }

    #[test]
    fn each_age_of_kernel_gets_the_most_it_knows() {
        for (known, checksum, tcp, udp, findings) in [
            (TUN_F_CSUM | TSO | USO, true, true, true, 0),
            (TUN_F_CSUM | TSO, true, true, false, 1),
            (TUN_F_CSUM, true, false, false, 2),
            (0, false, false, false, 3),
        ] {
            let (features, found, set) = kernel_that_knows(known);
            let expected = Features { checksum, tcp_segmentation: tcp, udp_segmentation: udp };
            assert_eq!(features, expected, "kernel that knows {known:#x}");
            assert_eq!((found, set), (findings, known));
        }
    }

    #[test]
    fn nothing_is_asked_for_that_is_not_wanted() {
        let no_checksum = Features { checksum: false, ..Features::ALL };
        let no_udp = Features { udp_segmentation: false, ..Features::ALL };
        for (wanted, got, bits) in [
            (Features::default(), Features::default(), 0),
            (no_checksum, Features::default(), 0),
            (no_udp, no_udp, TUN_F_CSUM | TSO),
        ] {
            let mut asked = Vec::new();
            let (features, findings) = negotiate(wanted, |bits| {
                asked.push(bits);
                Ok(())
            });
            assert_eq!((features, findings, asked), (got, vec![], vec![bits]));
        }
    }

    #[test]
    fn a_finding_names_the_kernel() {
        let (_, findings) = negotiate(Features::ALL, |_| Err(io::Error::from_raw_os_error(libc::EINVAL)));
        assert_eq!(findings.len(), 3);
        for finding in findings {
            assert!(finding.to_string().contains(&kernel_release()), "{finding}");
        }
    }
}
