//! What the fuzz targets of `fuzz/` and the test `fuzz_smoke` run on any bytes: nothing panics, and
//! what is read is written alike.

use super::handshake::{CookieReply, Initiation, Response};
use super::*;

/// Room for any datagram's frames, written in their longest form.
const ROOM: usize = 1 << 17;

/// An opened payload: each frame that is read is written and read again as the same.
pub fn frames(payload: &[u8]) {
    let mut buffer = vec![0; ROOM];
    for frame in Frames::new(payload).map_while(Result::ok) {
        let mut out = Writer::new(&mut buffer);
        // An ACK's count is written in two bytes: what counts more ranges loses the oldest.
        encode(&frame, &mut out).expect("what was read can be written");
        let again = Frames::new(out.written()).next();
        if let Frame::Reserved(reserved) = &frame
            && let Some(hub) = HubFrame::of(reserved)
        {
            let mut bytes = [0; 2 * HubFrame::MOST];
            let mut said = Writer::new(&mut bytes);
            hub.encode(&mut said).expect("it is short");
            assert_eq!(Frames::new(said.written()).next(), Some(Ok(frame.clone())));
        }
        assert_eq!(again, Some(Ok(frame)));
    }
}

/// A data datagram's header, and the numbers in it.
pub fn header(datagram: &[u8]) {
    if let Ok(header) = DataHeader::decode(&mut Reader::new(datagram)) {
        assert_eq!(header.encode(), datagram[..DATA_HEADER_LEN]);
        let number = header.number.expand(Some(crate::units::PacketNumber(u64::from(header.label.0) << 31)));
        assert_eq!(TruncatedNumber::of(number), header.number);
    }
}

/// A handshake message of any kind, or an offer.
pub fn messages(datagram: &[u8]) {
    if let Ok(message) = Initiation::decode(datagram) {
        let written = Initiation::encode(message.index, message.noise);
        assert_eq!(written[..5 + message.noise.len()], datagram[..5 + message.noise.len()]);
    }
    if let Ok(message) = Response::decode(datagram) {
        let written = Response::encode(message.index, message.receiver, message.noise);
        assert_eq!(written[..9 + message.noise.len()], datagram[..9 + message.noise.len()]);
    }
    if let Ok(message) = CookieReply::decode(datagram) {
        assert_eq!(message.encode(), datagram);
    }
    if let Ok((offer, chosen)) = Offer::decode(datagram) {
        assert_eq!(offer.encode(Some(chosen)), datagram);
    }
}

/// Writes any frame.
pub(super) fn encode(frame: &Frame<'_>, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    match frame {
        Frame::Padding(len) => out.put_room(*len).map(|room| room.fill(0)),
        Frame::Ping => out.put_u8(FrameType::Ping as u8),
        Frame::Ack(ack) => {
            let AckFrame { path, delay_us, received_at_us, ecn, .. } = *ack;
            let head = AckHead { path, delay_us, received_at_us, ecn };
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
        Frame::Repair(frame) => frame.encode(out),
        Frame::Protected(frame) => frame.encode(out),
        Frame::Terms(frame) => frame.encode(out),
        Frame::Reserved(frame) => frame.encode(out),
    }
}
