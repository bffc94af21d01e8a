//! What the fuzz target `bulk`, and a test on machines without cargo-fuzz, run on any bytes.

use super::{Frame, Message};

/// Any bytes as a frame and as a message: what is read is written as the same bytes.
pub fn frames(bytes: &[u8]) {
    if let Ok(frame) = Frame::decode(bytes) {
        let mut out = vec![0; bytes.len()];
        assert_eq!(frame.encode(&mut out), Ok(bytes.len()));
        assert_eq!(out, bytes);
        if let Frame::Ack(ack) = frame {
            let mut last = None;
            for run in ack.runs() {
                assert!(run.start() <= run.end() && last.is_none_or(|last| run.start().0 > last + 1));
                assert!(run.start().0 >= ack.first);
                last = Some(run.end().0);
            }
        }
    }
    if let Ok(message) = Message::decode(bytes) {
        let hostile = matches!(&message, Message::Offer { files, .. } if files.iter().any(Result::is_err));
        let mut out = Vec::new();
        message.write(&mut out);
        assert!(hostile || out == bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(first in 0_u8..7, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            super::frames(&bytes);
            super::frames(&[&[first], &bytes[..]].concat());
            // As a message whose length is right.
            let len = (bytes.len() as u32).to_be_bytes();
            super::frames(&[&[first], &len[..], &bytes].concat());
        }
    }
}
