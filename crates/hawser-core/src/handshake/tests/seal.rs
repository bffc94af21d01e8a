//! Sealing and opening, in place and out of place.

use std::collections::BTreeSet;

use super::*;

fn all_kinds() -> impl Iterator<Item = (TransportKeys, TransportKeys)> {
    KINDS.into_iter().map(|(cipher, wish, _)| {
        let offer = offer(wish, &[cipher]);
        let (local, remote) = Pair::new(offer, offer).finish();
        (local.keys, remote.keys)
    })
}

/// Each cipher and what it can do, and whether that hides the frames.
const KINDS: [(Cipher, Protection, bool); 5] = [
    (AES, Protection::Encrypt, true),
    (CHACHA, Protection::Encrypt, true),
    (AES, Protection::Authenticate, false),
    (CHACHA, Protection::Authenticate, false),
    (BLAKE2S, Protection::Authenticate, false),
];
const PATH: PathId = PathId(3);
const NUMBER: PacketNumber = PacketNumber(77);

#[test]
fn in_place_and_out_of_place_agree() {
    for (local, remote) in all_kinds() {
        for (head_len, body_len) in [(9, 0), (9, 1), (15, 1), (15, 1400), (15, 1385), (71, 1340), (55, 65_000)] {
            let frames: Vec<u8> = (0..head_len - 9 + body_len).map(|at| at as u8).collect();
            let mut sealed = plain(&frames);
            local.send.seal(PATH, NUMBER, &mut sealed).expect("room");

            let mut apart = plain(&frames);
            apart[head_len..].fill(0xee);
            let body = &frames[head_len - 9..];
            local.send.seal_from(PATH, NUMBER, &mut apart, head_len, body).expect("room");
            assert_eq!(apart, sealed, "head {head_len}, body {body_len}");

            let mut out = vec![0xee; frames.len() + 3];
            let opened = remote.recv.open_into(PATH, NUMBER, &sealed, &mut out);
            assert_eq!(opened, Ok(frames.len()));
            assert_eq!((&out[..frames.len()], &out[frames.len()..]), (&frames[..], &[0xee; 3][..]));
            assert_eq!(remote.recv.open(PATH, NUMBER, &mut sealed), Ok(&frames[..]));
        }
    }
}

#[test]
fn only_encryption_hides_the_frames() {
    for (cipher, protection, hidden) in KINDS {
        let offer = offer(protection, &[cipher]);
        let (local, _) = Pair::new(offer, offer).finish();
        let mut datagram = plain(b"an inner packet");
        local.keys.send.seal(PATH, NUMBER, &mut datagram).expect("room");
        assert_eq!(&datagram[..9], &[0x40; 9], "the header stays");
        assert_eq!(&datagram[9..24] != b"an inner packet", hidden);
    }
}

#[test]
fn every_flipped_bit_path_and_number_is_refused() {
    for (local, remote) in all_kinds() {
        let mut sealed = plain(b"frames");
        local.send.seal(PATH, NUMBER, &mut sealed).expect("room");
        let mut out = [0; 64];
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(remote.recv.open_into(PATH, NUMBER, &forged, &mut out), Err(OpenError::Unauthentic));
            assert_eq!(remote.recv.open(PATH, NUMBER, &mut forged), Err(OpenError::Unauthentic));
        }
        for (path, number) in [(PathId(4), NUMBER), (PATH, PacketNumber(78)), (PATH, PacketNumber(77 + (1 << 32)))] {
            assert_eq!(remote.recv.open_into(path, number, &sealed, &mut out), Err(OpenError::Unauthentic));
        }
        assert_eq!(remote.recv.open_into(PATH, NUMBER, &sealed, &mut out), Ok(6));
    }
}

#[test]
fn wrong_lengths_are_errors() {
    for (local, remote) in all_kinds() {
        for len in 0..DATA_HEADER_LEN + TAG_LEN {
            assert_eq!(local.send.seal(PATH, NUMBER, &mut vec![0; len]), Err(SealError::Length));
            assert_eq!(remote.recv.open(PATH, NUMBER, &mut vec![0; len]), Err(OpenError::TooShort));
            assert_eq!(remote.recv.open_into(PATH, NUMBER, &vec![0; len], &mut []), Err(OpenError::TooShort));
        }
        for (len, head_len) in [(40, 9), (41, 8), (42, 15), (0, 9), (45, 15)] {
            let sealed = local.send.seal_from(PATH, NUMBER, &mut vec![0; len], head_len, &[0; 15]);
            assert_eq!(sealed.is_ok(), len == head_len + 15 + TAG_LEN && head_len >= 9, "{len} {head_len}");
        }
        let mut datagram = plain(b"frames");
        local.send.seal(PATH, NUMBER, &mut datagram).expect("room");
        let opened = remote.recv.open_into(PATH, NUMBER, &datagram, &mut [0; 5]);
        assert_eq!(opened, Err(OpenError::NoRoom));
    }
}

#[test]
fn no_two_paths_and_numbers_share_a_nonce() {
    // The sealed bytes of one plaintext differ with the nonce alone.
    for (local, _) in all_kinds() {
        let numbers = [0, 1, 2, 255, 256, 1 << 31, 1 << 32, 1 << 40, 1 << 61].map(PacketNumber);
        let paths = [0, 1, 2, 255, 256, 1 << 16, 1 << 31, u32::MAX].map(PathId);
        let mut seen = BTreeSet::new();
        for (path, number) in paths.iter().flat_map(|path| numbers.map(|number| (*path, number))) {
            let mut datagram = plain(b"the same");
            local.send.seal(path, number, &mut datagram).expect("room");
            assert!(seen.insert(datagram), "{path:?} {number:?}");
        }
        assert_eq!(seen.len(), numbers.len() * paths.len());
    }
}

#[test]
fn keys_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<SealKey>();
    shared::<OpenKey>();
}
