//! Golden and hostile bytes of headers, numbers and handshake messages.

use super::handshake::{CookieReply, HandshakeIndex, Initiation, Response};
use super::*;
use crate::units::PacketNumber;

#[test]
fn varints_are_those_of_rfc_9000_section_a_1() {
    for (text, value) in
        [("c2197c5eff14e88c", 151_288_809_941_952_652), ("9d7f3e7d", 494_878_333), ("7bbd", 15_293), ("25", 37)]
    {
        assert_eq!(varint::decode(&hex(text)), Ok((value, text.len() / 2)));
        assert_eq!(written(|out| out.put_varint(value)), hex(text));
    }
    assert_eq!(varint::decode(&hex("4025")), Ok((37, 2)), "a longer form is read too");
    assert_eq!(varint::len(varint::MAX + 1), Err(EncodeError::OutOfRange));
}

#[test]
fn a_data_header_has_its_golden_bytes() {
    let header = DataHeader { label: Label(0xc0ff_ee01), number: TruncatedNumber::of(PacketNumber(0x5_0000_0102)) };
    assert_eq!(header.encode().to_vec(), hex("40 c0ffee01 00000102"));
    assert_eq!(DataHeader::decode(&mut Reader::new(&header.encode())), Ok(header));
    for (text, error) in [
        ("41 c0ffee01 00000102", WireError::Reserved),
        ("10 c0ffee01 00000102", WireError::UnknownType(1)),
        ("00 c0ffee01 00000102", WireError::UnknownType(0)),
        ("40 c0ffee01 000001", WireError::Truncated),
        ("", WireError::Truncated),
    ] {
        assert_eq!(DataHeader::decode(&mut Reader::new(&hex(text))), Err(error), "{text}");
    }
    assert_eq!((DATA_HEADER_LEN, DATA_FRAME_LEN, TAG_LEN, DATA_OVERHEAD), (9, 6, 16, 31));
}

#[test]
fn a_cut_packet_number_is_the_one_closest_to_the_expected() {
    for (largest, cut, wanted) in [
        (None, 0, 0),
        (None, 0x8000_0000, 0x8000_0000),
        (Some(0xffff_fffe), 0xffff_ffff, 0xffff_ffff),
        (Some(0xffff_ffff), 0, 0x1_0000_0000),
        (Some(0x1_0000_0000), 0xffff_ffff, 0xffff_ffff),
        (Some(0x5_0000_0000), 0x7fff_ffff, 0x5_7fff_ffff),
        (Some(0x5_8000_0000), 0, 0x6_0000_0000),
    ] {
        let expanded = TruncatedNumber(cut).expand(largest.map(PacketNumber));
        assert_eq!(expanded, PacketNumber(wanted), "{largest:x?} {cut:x}");
    }
}

#[test]
fn flow_sequences_wrap() {
    let last = FlowSequence::of(0xff_ffff);
    assert_eq!(last.next(), FlowSequence::of(0));
    assert!(last.precedes(FlowSequence::of(0)) && !FlowSequence::of(0).precedes(last));
    assert!(!last.precedes(last));
    for (cut, near, wanted) in [
        (0, 0xff_ffff, 0x100_0000),
        (0xff_ffff, 0x100_0000, 0xff_ffff),
        (0xff_ffff, 0, 0xff_ffff),
        (0x12_3456, 0x512_3456, 0x512_3456),
        (0x80_0000, 0x500_0000, 0x480_0000),
        (0x7f_ffff, 0x500_0000, 0x57f_ffff),
    ] {
        assert_eq!(FlowSequence::of(cut).expand(near), wanted, "{cut:x} near {near:x}");
    }
}

#[test]
fn handshake_messages_have_their_golden_bytes() {
    let initiation = Initiation::encode(HandshakeIndex(0x0102_0304), &[0xaa; handshake::INITIATION_NOISE_LEN]);
    let bytes = [hex("10 01020304"), vec![0xaa; 120], vec![0; 32]].concat();
    assert_eq!(initiation.to_vec(), bytes);
    assert_eq!(Initiation::decode(&bytes).map(|m| (m.index, m.noise[0])), Ok((HandshakeIndex(0x0102_0304), 0xaa)));

    let response = Response::encode(HandshakeIndex(5), HandshakeIndex(6), &[0xbb; handshake::RESPONSE_NOISE_LEN]);
    let bytes = [hex("20 00000005 00000006"), vec![0xbb; 72], vec![0; 32]].concat();
    assert_eq!(response.to_vec(), bytes);
    assert_eq!(
        Response::decode(&bytes).map(|m| (m.index, m.receiver, m.noise[71])),
        Ok((HandshakeIndex(5), HandshakeIndex(6), 0xbb))
    );

    let cookie = CookieReply { receiver: HandshakeIndex(7), salt: &[0xcc; 24], sealed: &[0xdd; 32] };
    let bytes = [hex("30 00000007"), vec![0xcc; 24], vec![0xdd; 32]].concat();
    assert_eq!(cookie.encode().to_vec(), bytes);
    assert_eq!(CookieReply::decode(&bytes), Ok(cookie));

    let lens = (handshake::INITIATION_LEN, handshake::RESPONSE_LEN, handshake::COOKIE_REPLY_LEN);
    assert_eq!(lens, (157, 113, 61));
}

#[test]
fn a_handshake_message_of_another_length_or_kind_is_refused() {
    let whole = Initiation::encode(HandshakeIndex(1), &[0; handshake::INITIATION_NOISE_LEN]);
    for len in 0..whole.len() {
        assert_eq!(Initiation::decode(&whole[..len]), Err(WireError::Truncated));
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(Initiation::decode(&longer), Err(WireError::Trailing(1)));
    assert_eq!(Response::decode(&whole), Err(WireError::UnknownType(1)));
    let mut response = Response::encode(HandshakeIndex(1), HandshakeIndex(2), &[0; handshake::RESPONSE_NOISE_LEN]);
    response[handshake::RESPONSE_LEN - 1] = 1;
    assert_eq!(Response::decode(&response), Err(WireError::Reserved));
}

#[test]
fn an_offer_has_its_golden_bytes() {
    let offer = Offer {
        protection: Protection::Authenticate,
        ciphers: CipherSet::for_machine(true),
        instance: InstanceId(0x0102_0304_0506_0708),
    };
    let bytes = hex("01 01 03 01 0102030405060708 000000000000000000000000");
    assert_eq!(offer.encode(Some(Cipher::ChaCha20Poly1305)).to_vec(), bytes);
    assert_eq!(Offer::decode(&bytes), Ok((offer, Cipher::ChaCha20Poly1305)));
    for (at, value, error) in [
        (0, 2, WireError::OutOfRange),
        (1, 2, WireError::OutOfRange),
        (3, 3, WireError::OutOfRange),
        (23, 1, WireError::Reserved),
    ] {
        let mut bad = bytes.clone();
        bad[at] = value;
        assert_eq!(Offer::decode(&bad), Err(error), "byte {at}");
    }
    assert_eq!(Offer::decode(&bytes[..23]), Err(WireError::Truncated));
    assert_eq!(Offer::decode(&[&bytes[..], &[0]].concat()), Err(WireError::Trailing(1)));
}

#[test]
fn an_offer_that_says_what_is_spoken_has_its_golden_bytes() {
    let offer = Offer {
        protection: Protection::Encrypt,
        ciphers: CipherSet::for_machine(true),
        instance: InstanceId(0x0102_0304_0506_0708),
    };
    assert_eq!(offer.version(), Version::UNSAID, "a portal from before this says nothing");
    let bytes = hex("01 00 83 00 02000f0405060708 000000000000000000000000");
    assert_eq!(offer.spoken().encode(None).to_vec(), bytes);
    let (read, _) = Offer::decode(&bytes).expect("an offer");
    assert_eq!((read, read.version()), (offer.spoken(), Version::OURS));
    assert_eq!(read.ciphers.best_common(offer.ciphers, Protection::Encrypt), Some(Cipher::Aes128Gcm), "no cipher more");
    let later = Version { revision: 9, capabilities: Capabilities::SKIPS };
    let other = offer.speaking(later).spoken().started_as(InstanceId(u64::MAX));
    assert_eq!((other.version(), other.instance.0), (later, 0x0900_01ff_ffff_ffff), "another start speaks the same");
    assert_eq!(offer.started_as(InstanceId(3)).version(), Version::UNSAID);
}

#[test]
fn the_best_common_cipher_is_chosen_and_the_stricter_protection() {
    let (aes, chacha) = (Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305);
    let both = CipherSet::of(&[aes, chacha]);
    let mac = CipherSet::of(&[Cipher::Blake2s]);
    assert_eq!((CipherSet::for_machine(true), CipherSet::for_machine(false)), (both, CipherSet::of(&[chacha])));
    assert_eq!(mac.best_common(mac.with(aes), Protection::Authenticate), Some(Cipher::Blake2s));
    assert_eq!(mac.best_common(mac.with(aes), Protection::Encrypt), None);
    for (one, other, wanted) in [
        (both, both, Some(aes)),
        (both, CipherSet::of(&[chacha]), Some(chacha)),
        (CipherSet::of(&[aes]), CipherSet::of(&[chacha]), None),
        (CipherSet::default(), both, None),
    ] {
        assert_eq!(one.best_common(other, Protection::Encrypt), wanted);
        assert_eq!(other.best_common(one, Protection::Authenticate), wanted);
    }
    assert_eq!(Protection::Encrypt.stricter(Protection::Authenticate), Protection::Encrypt);
    assert_eq!(Protection::Authenticate.stricter(Protection::Authenticate), Protection::Authenticate);
}
