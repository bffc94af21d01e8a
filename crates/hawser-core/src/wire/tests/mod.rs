//! Golden vectors, round trips and hostile bytes for every format of this module.

mod frames;
mod messages;
mod properties;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn written(encode: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let mut out = Writer::new(&mut buffer);
    encode(&mut out).expect("fits");
    out.written().to_vec()
}

fn encode(frame: &Frame<'_>, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    match frame {
        Frame::Padding(len) => out.put_room(*len).map(|room| room.fill(0)),
        Frame::Ping => out.put_u8(FrameType::Ping as u8),
        Frame::Ack(ack) => {
            let AckFrame {
                path,
                delay_us,
                received_at_us,
                ecn,
                ..
            } = *ack;
            let head = AckHead {
                path,
                delay_us,
                received_at_us,
                ecn,
            };
            head.encode(ack.ranges(), usize::MAX >> 1, out).map(drop)
        }
        Frame::PathChallenge(frame) => frame.encode(out),
        Frame::PathResponse(frame) => frame.encode(out),
        Frame::PathInfo(frame) => frame.encode(out),
        Frame::Gone(frame) => frame.encode(out),
        Frame::Split(frame) => frame.encode(out),
        Frame::Data(frame) => frame.encode(out),
        Frame::Close(frame) => frame.encode(out),
        Frame::Hold(frame) => frame.encode(out),
    }
}

fn bucket(number: u16) -> FlowBucket {
    FlowBucket::new(number).expect("below 4096")
}
