//! What the fuzz target `capture`, and a test on machines without cargo-fuzz, run on any bytes.

use std::io;

use super::{Keys, Marks, Sighting, Sink, Verdict, decode};

/// Keys that are known to whoever makes seeds: portal `hub`, every byte of each the same.
const KEYS: &str = "hawser-keys-1 hub new aes-128-gcm encrypt \
    sent 01010101010101010101010101010101 010101010101010101010101 \
    0101010101010101010101010101010101010101010101010101010101010101 \
    received 81818181818181818181818181818181 818181818181818181818181 \
    8181818181818181818181818181818181818181818181818181818181818181\n";

#[derive(Default)]
struct Seen {
    datagrams: u64,
    opened: u64,
    inner: u64,
}

impl Sink for Seen {
    fn datagram(&mut self, sighting: &Sighting<'_>) -> io::Result<()> {
        self.datagrams += 1;
        self.opened += u64::from(matches!(sighting.verdict, Verdict::Opened { .. }));
        Ok(())
    }

    fn inner(&mut self, _: u64, packet: &[u8]) -> io::Result<()> {
        assert!(!packet.is_empty(), "an inner packet of nothing");
        self.inner += 1;
        Ok(())
    }
}

/// Any bytes as a capture: it is read as far as it goes, and what is counted is what was told.
pub fn capture(bytes: &[u8]) {
    let mut seen = Seen::default();
    let keys = Keys::read(KEYS).expect("a key log");
    let (summary, _) = decode(bytes, keys, Marks::default(), &mut seen);
    assert_eq!((seen.datagrams, seen.opened), (summary.datagrams(), summary.opened), "{summary}");
    assert_eq!(seen.inner, summary.inner, "{summary}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::path::Path;

    fn seeds() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/capture");
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {folder:?}: {error}"));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "no seeds in {folder:?}");
        paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn captures_of_changed_seeds_are_read_as_far_as_they_go(
            seed in any::<prop::sample::Index>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let seeds = seeds();
            let mut bytes = seed.get(&seeds).clone();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            super::capture(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            super::capture(&bytes);
        }
    }
}
