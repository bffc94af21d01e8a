//! A datagram as a line of JSON.

use hawser_core::wire::{
    AckFrame, CloseReason, DataFlags, DataFrame, DataHeader, DatagramKind, FlowBucket, FlowSequence, Frame, Frames,
    LinkNameFrame, LinkState, Reader, ReservedFrame, SpeedFrame, SpeedWord,
};
use serde_json::{Map, Value, json};

use crate::{Sighting, Verdict};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// A datagram with its frames; times are seconds since 1970, with nine decimals.
pub fn line(sighting: &Sighting<'_>) -> Value {
    let Sighting { time, way, bytes, verdict } = sighting;
    let mut line = json!({
        "time": format!("{}.{:09}", time / SECOND, time % SECOND),
        "transport": way.transport.name(),
        "source": way.source.to_string(),
        "destination": way.destination.to_string(),
        "bytes": bytes.len(),
    });
    let kind = bytes.first().and_then(|first| DatagramKind::of(*first).ok());
    let more = match verdict {
        Verdict::Handshake(_) => json!({}),
        Verdict::Opened { peer, direction, path, number, frames } => json!({
            "peer": peer, "direction": direction.name(), "path": path.0, "number": number.0,
            "frames": Frames::new(frames).map(|frame| match frame {
                Ok(frame) => self::frame(&frame),
                Err(error) => json!({"type": "UNREADABLE", "error": error.to_string()}),
            }).collect::<Vec<_>>(),
        }),
        Verdict::Refused(refusal) => json!({"error": refusal.name()}),
    };
    merge(&mut line, json!({"type": kind.map_or("unknown", name)}));
    if let Some(header) = DataHeader::decode(&mut Reader::new(bytes)).ok().filter(|_| kind == Some(DatagramKind::Data))
    {
        merge(&mut line, json!({"label": format!("{:08x}", header.label.0)}));
    }
    merge(&mut line, more);
    line
}

fn name(kind: DatagramKind) -> &'static str {
    match kind {
        DatagramKind::Initiation => "initiation",
        DatagramKind::Response => "response",
        DatagramKind::CookieReply => "cookie reply",
        DatagramKind::Data => "data",
    }
}

/// A frame, by its name in docs/wire.md.
fn frame(frame: &Frame<'_>) -> Value {
    match frame {
        Frame::Padding(bytes) => json!({"type": "PADDING", "bytes": bytes}),
        Frame::Ping => json!({"type": "PING"}),
        Frame::Ack(frame) => ack(frame),
        Frame::PathChallenge(frame) => json!({"type": "PATH_CHALLENGE", "token": hex(&frame.token.0)}),
        Frame::PathResponse(frame) => json!({"type": "PATH_RESPONSE", "token": hex(&frame.token.0)}),
        Frame::PathInfo(info) => {
            let state = match info.state {
                LinkState::Usable => "usable",
                LinkState::Down => "down",
                LinkState::Closed => "closed",
            };
            json!({
                "type": "PATH_INFO", "path": info.path.0, "state": state, "metric": info.metric, "revision": info.revision,
            })
        }
        Frame::Gone(gone) => json!({"type": "GONE", "bucket": gone.bucket.get(), "upto": gone.upto.get()}),
        Frame::Split(piece) => {
            let mut value = json!({
                "type": "SPLIT", "id": piece.id.0, "offset": piece.offset, "more": piece.more, "bytes": piece.bytes.len(),
            });
            merge(&mut value, place(piece.bucket, piece.flags, piece.sequence));
            value
        }
        Frame::Data(data) => packet("DATA", data),
        Frame::Protected(frame) => {
            let mut value = packet("PROTECTED", &frame.data);
            merge(&mut value, json!({"symbol": frame.symbol.0}));
            value
        }
        Frame::Repair(repair) => json!({
            "type": "REPAIR", "first": repair.first.0, "count": repair.count, "row": repair.row, "bytes": repair.symbol.len(),
        }),
        Frame::Terms(terms) => json!({
            "type": "TERMS", "path": terms.path.0, "barred": terms.barred, "weight": terms.weight,
            "max_kbit": terms.max_kbit, "revision": terms.revision,
        }),
        Frame::Close(close) => {
            let reason = match close.reason {
                CloseReason::Shutdown => json!("shutdown"),
                CloseReason::PeerRemoved => json!("peer removed"),
                CloseReason::Violation => json!("violation"),
                CloseReason::Other(code) => json!(code),
            };
            json!({"type": "CLOSE", "reason": reason})
        }
        Frame::Reserved(frame) => match LinkNameFrame::of(frame) {
            Some(said) => json!({"type": "LINK_NAME", "path": said.path.0, "name": format!("{:016x}", said.name.0)}),
            None => reserved(frame),
        },
        Frame::Hold(hold) => json!({"type": "HOLD", "us": hold.hold_us}),
    }
}

/// A frame of the range that may be skipped, which is no LINK_NAME.
fn reserved(frame: &ReservedFrame<'_>) -> Value {
    let Some(said) = SpeedFrame::of(frame) else {
        return json!({"type": "RESERVED", "code": frame.kind(), "bytes": frame.bytes().len()});
    };
    let word = match said.word {
        SpeedWord::Begin => "begin",
        SpeedWord::End => "end",
        SpeedWord::Refused => "refused",
    };
    json!({
        "type": "SPEED", "run": said.run, "word": word, "link": format!("{:016x}", said.link.0),
        "ms": said.milliseconds, "bytes": said.bytes,
    })
}

fn packet(name: &str, data: &DataFrame<'_>) -> Value {
    let mut value = json!({"type": name, "bytes": data.packet.len()});
    merge(&mut value, place(data.bucket, data.flags, data.sequence));
    value
}

fn ack(ack: &AckFrame<'_>) -> Value {
    json!({
        "type": "ACK", "path": ack.path.0, "delay_us": ack.delay_us, "received_at_us": ack.received_at_us,
        "ranges": ack.ranges().map(|range| [range.start().0, range.end().0]).collect::<Vec<_>>(),
        "ect0": ack.ecn.ect0, "ect1": ack.ecn.ect1, "ce": ack.ecn.ce,
    })
}

fn place(bucket: FlowBucket, flags: DataFlags, sequence: FlowSequence) -> Value {
    json!({
        "bucket": bucket.get(), "sequence": sequence.get(),
        "partial": flags.partial, "continues": flags.continues, "unordered": flags.unordered,
    })
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        let more: Map<_, _> = more;
        into.extend(more);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
