//! The bytes of a whole handshake under fixed keys and draws: what a later version must still say.
//! They were made from docs/wire.md and the Noise specification by other means (Python), not by this
//! code.

use super::*;

/// The nth draw is of bytes n: no randomness, so that the vectors can be made by other means.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 += 1;
        bytes.fill(self.0);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_handshake_has_its_golden_bytes() {
    let mut pair = Pair::new(both(), offer(Protection::Authenticate, &[CHACHA]));
    pair.rng = Box::new(Counting(0xa0));
    let (mut initiator, message) = pair.start();
    let accepted = pair.accept(&message);
    let local = initiator.on_response(&accepted.response).expect("the right response");
    let mut datagram = plain(b"frames");
    local.keys.send.seal(PathId(1), PacketNumber(2), &mut datagram).expect("room");
    assert_eq!(
        hex(&message),
        concat!(
            "100000000bc306fb0ef2bf8b7f93bad98155fa37daec74db0c4cbeda6c6f1dba9d3655825249a67d",
            "c7350c14d6a975d4b929fc9033a978ba06d01b7c06cb919f07933eeae911bdeda9b076c325b63ea1",
            "09051c64df44c239ece10d5795007d5080328f3ec2afca1fc4488d23da99324f48f3234a01108508",
            "e56f315784e6eaaa118e622242f2fb7f2524707f6300000000000000000000000000000000",
        )
    );
    assert_eq!(
        hex(&accepted.response),
        concat!(
            "20000000160000000b3c5c6ce2dd99e10d2c3de05d773aa15e3e6d971ed4e41389c93b4bbdda1772",
            "12dcdef0882ac92912f9d4f282cc6c98df949e87c939de9322449fba179aed4afca6d1f63b677684",
            "a8da247a97ced5babc8b9fa3c5ff32963e00000000000000000000000000000000",
        )
    );
    assert_eq!(hex(&datagram), "4040404040404040403f59879d1960a888502a5cdaa829eadded841f3f4a21");
    assert_eq!(local.keys.send.label(PathId(1)).0, 0x7eef1fd3);
}

#[test]
fn a_cookie_reply_has_its_golden_bytes() {
    let mut pair = Pair::new(both(), both());
    pair.rng = Box::new(Counting(0xa0));
    let (_, message) = pair.start();
    let last = (0..51).map(|_| pair.judge(NOW, &message, address(1))).last();
    let Some(Verdict::Cookie(reply)) = last else { panic!("no cookie: {last:?}") };
    assert_eq!(
        hex(&reply),
        concat!(
            "300000000bd5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5d5e597932fc1f9f3e4b00ad8",
            "72dc2bc357c4a1c509d849cb2424b36536b810648c",
        )
    );
}
