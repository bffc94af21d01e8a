//! Whatever a capture or a key log holds, decoding it ends, and with an answer.

use crate::support::*;
use hawser_decode::Keys;
use proptest::prelude::*;

/// A capture with every carrier in it.
fn whole() -> Vec<u8> {
    let log = key_log("hub", 1, true, "encrypt");
    let (frame, _) = data_frame(7, 1, 42);
    let record = |number| {
        let datagram = data(&log, 1, number, &frame);
        [&(datagram.len() as u16).to_be_bytes()[..], &datagram].concat()
    };
    let packets = [
        ipv4(17, &udp(1, 4920, &data(&log, 1, 1, &frame))),
        ipv6(253, &data(&log, 1, 2, &frame)),
        ipv4(6, &tcp(1, 4920, 9, true, &[])),
        ipv4(6, &tcp(1, 4920, 10, false, &record(3))),
        ipv4(6, &tcp(1, 4920, 10 + record(3).len() as u32, false, &record(4))),
    ];
    pcap(ETHERNET, &packets.map(|packet| ethernet(&packet)))
}

proptest! {
    #[test]
    fn a_damaged_capture_is_read_as_far_as_it_goes(
        damage in proptest::collection::vec((24usize..1_000, any::<u8>()), 0..8), cut in 0usize..1_000
    ) {
        let mut file = whole();
        for (at, byte) in damage {
            let at = at % file.len();
            file[at] = byte;
        }
        file.truncate(cut.max(24));
        let (got, summary, _) = decoded(&file, &key_log("hub", 1, true, "encrypt"));
        prop_assert_eq!(got.inner.len() as u64, summary.inner);
        prop_assert!(summary.opened <= 4);
    }

    #[test]
    fn a_damaged_key_log_is_refused_or_read(at in any::<prop::sample::Index>(), byte in 0x20u8..0x7f) {
        let mut log = key_log("hub", 1, true, "encrypt").into_bytes();
        let at = at.index(log.len());
        log[at] = byte;
        let _ = Keys::read(std::str::from_utf8(&log).expect("text"));
    }
}

#[test]
fn the_whole_capture_gives_all_of_it() {
    let (_, summary, result) = decoded(&whole(), &key_log("hub", 1, true, "encrypt"));
    assert!(result.is_ok() && summary.opened == 4, "{summary}");
}
