//! The bytes of a whole handshake under fixed keys and randomness: what a later version must
//! still say.

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_handshake_has_its_golden_bytes() {
    let mut pair = Pair::new(both(), offer(Protection::Authenticate, &[CHACHA]));
    let (mut initiator, message) = pair.start();
    let accepted = pair.accept(&message);
    let local = initiator
        .on_response(&accepted.response)
        .expect("the right response");
    let mut datagram = plain(b"frames");
    local
        .keys
        .send
        .seal(PathId(1), PacketNumber(2), &mut datagram)
        .expect("room");
    assert_eq!(hex(&message), "INITIATION");
    assert_eq!(hex(&accepted.response), "RESPONSE");
    assert_eq!(hex(&datagram), "DATA");
    assert_eq!(local.keys.send.label(PathId(1)).0, 0);
}

#[test]
fn a_cookie_reply_has_its_golden_bytes() {
    let mut pair = Pair::new(both(), both());
    let (_, message) = pair.start();
    let last = (0..51)
        .map(|_| pair.judge(NOW, &message, address(1)))
        .last();
    let Some(Verdict::Cookie(reply)) = last else {
        panic!("no cookie: {last:?}")
    };
    assert_eq!(hex(&reply), "COOKIE");
}
