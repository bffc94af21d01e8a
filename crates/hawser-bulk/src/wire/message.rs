//! Messages of the control stream: `type 1 | length 4 | body`.

use std::collections::BTreeSet;

use hawser_core::wire::{Reader, WireError};

use crate::digest::{DIGEST_LEN, Digest};
use crate::layout::{FileInfo, FileName, MOST_FILES, NameError, OfferedFile};

/// Bytes before a message's body.
pub const MESSAGE_HEAD: usize = 5;
/// Bytes of a body at most: the longest offer has 280 KiB.
pub const MOST_MESSAGE: usize = 512 << 10;
/// Runs of one answer at most; blocks beyond are sent once more.
const MOST_RUNS: usize = (MOST_MESSAGE - 7) / 8;

const OFFER: u8 = 1;
const DIGEST: u8 = 2;
const ANSWER: u8 = 3;
const RESULT: u8 = 4;

/// What becomes of a file. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Verdict {
    /// It is taken, or has arrived.
    #[error("good")]
    Good = 0,
    /// There is a file of this name.
    #[error("a file of this name exists there")]
    Exists = 1,
    /// The name is none.
    #[error("its name is not taken there")]
    Name = 2,
    /// The disk is full.
    #[error("there is no space for it")]
    Space = 3,
    /// Another transfer writes it.
    #[error("another transfer writes it")]
    Busy = 4,
    /// The receiver's system said no.
    #[error("the receiver cannot write it")]
    Failed = 5,
    /// It is not what was sent.
    #[error("its digest is wrong: it is not what was sent")]
    Digest = 6,
    /// The receiver stops.
    #[error("the receiver stops")]
    Stopped = 7,
}

/// Blocks of a file that are there, as runs: first, and how many. Nothing by default. Plain data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Have(pub Vec<(u32, u32)>);

/// A message. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// These files are to be sent, in chunks of this many bytes. A name that is none is told as such, for the answer.
    Offer {
        /// Bytes of a chunk.
        chunk: u16,
        /// The files, in order; the size and time of one whose name is not taken.
        files: Vec<OfferedFile>,
    },
    /// A file has this digest.
    Digest(u16, Digest),
    /// A file is taken, with what is there; or not.
    Answer(u16, Verdict, Have),
    /// A file is done with.
    Result(u16, Verdict),
}

impl Verdict {
    const ALL: [Verdict; 8] = [
        Verdict::Good,
        Verdict::Exists,
        Verdict::Name,
        Verdict::Space,
        Verdict::Busy,
        Verdict::Failed,
        Verdict::Digest,
        Verdict::Stopped,
    ];

    fn read(from: &mut Reader<'_>) -> Result<Verdict, WireError> {
        Verdict::ALL.get(usize::from(from.u8()?)).copied().ok_or(WireError::OutOfRange)
    }
}

impl Have {
    /// Whether a block is there.
    pub fn has(&self, block: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= block);
        after.checked_sub(1).is_some_and(|at| block - self.0[at].0 < self.0[at].1)
    }

    /// Of blocks in order, those that are there.
    pub fn of(there: impl IntoIterator<Item = bool>) -> Have {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for (block, _) in (0..).zip(there).filter(|(_, there)| *there) {
            let most = runs.len() == MOST_RUNS;
            match runs.last_mut() {
                Some((first, count)) if *first + *count == block => *count += 1,
                _ if most => break,
                _ => runs.push((block, 1)),
            }
        }
        Have(runs)
    }
}

impl Message {
    /// Appends it, with its head.
    pub fn write(&self, out: &mut Vec<u8>) {
        let head = out.len();
        out.extend([0; MESSAGE_HEAD]);
        let kind = match self {
            Message::Offer { chunk, files } => {
                out.extend(chunk.to_be_bytes());
                let files: Vec<&FileInfo> = files.iter().flatten().collect();
                out.extend((files.len() as u16).to_be_bytes());
                for file in files {
                    out.extend(file.size.to_be_bytes());
                    out.extend(file.modified.to_be_bytes());
                    out.push(file.name.as_str().len() as u8);
                    out.extend(file.name.as_str().bytes());
                }
                OFFER
            }
            Message::Digest(file, digest) => {
                out.extend(file.to_be_bytes());
                out.extend(digest.0);
                DIGEST
            }
            Message::Answer(file, verdict, have) => {
                out.extend(file.to_be_bytes());
                out.push(*verdict as u8);
                out.extend((have.0.len() as u32).to_be_bytes());
                have.0.iter().for_each(|(first, count)| {
                    out.extend(first.to_be_bytes());
                    out.extend(count.to_be_bytes());
                });
                ANSWER
            }
            Message::Result(file, verdict) => {
                out.extend(file.to_be_bytes());
                out.push(*verdict as u8);
                RESULT
            }
        };
        let len = (out.len() - head - MESSAGE_HEAD) as u32;
        out[head] = kind;
        out[head + 1..head + MESSAGE_HEAD].copy_from_slice(&len.to_be_bytes());
    }

    /// Reads a whole message, head and body.
    ///
    /// # Errors
    /// [`WireError`] for anything else.
    pub fn decode(bytes: &[u8]) -> Result<Message, WireError> {
        let mut from = Reader::new(bytes);
        let kind = from.u8()?;
        if from.u32()? as usize != from.remaining() {
            return Err(WireError::OutOfRange);
        }
        let message = match kind {
            OFFER => Message::Offer { chunk: from.u16()?, files: files(&mut from)? },
            DIGEST => Message::Digest(from.u16()?, Digest(*from.array::<DIGEST_LEN>()?)),
            ANSWER => Message::Answer(from.u16()?, Verdict::read(&mut from)?, have(&mut from)?),
            RESULT => Message::Result(from.u16()?, Verdict::read(&mut from)?),
            other => return Err(WireError::UnknownType(other)),
        };
        from.finish().map(|()| message)
    }
}

fn files(from: &mut Reader<'_>) -> Result<Vec<OfferedFile>, WireError> {
    let count = usize::from(from.u16()?);
    if count == 0 || count > MOST_FILES {
        return Err(WireError::OutOfRange);
    }
    let (mut files, mut names) = (Vec::with_capacity(count), BTreeSet::new());
    for _ in 0..count {
        let (size, modified) = (from.u64()?, from.u64()? as i64);
        let len = usize::from(from.u8()?);
        let bytes = from.bytes(len)?;
        let is_new = names.insert(bytes);
        let name = FileName::new(bytes).and_then(|name| is_new.then_some(name).ok_or(NameError::Twice));
        files.push(name.map(|name| FileInfo { name, size, modified }).map_err(|fault| (fault, size)));
    }
    Ok(files)
}

/// Runs must ascend and be apart.
fn have(from: &mut Reader<'_>) -> Result<Have, WireError> {
    let count = from.u32()? as usize;
    if count * 8 != from.remaining() {
        return Err(WireError::OutOfRange);
    }
    let (mut runs, mut end) = (Vec::with_capacity(count), None);
    for _ in 0..count {
        let (first, blocks) = (from.u32()?, from.u32()?);
        let next = first.checked_add(blocks).ok_or(WireError::OutOfRange)?;
        if blocks == 0 || end.is_some_and(|end| first <= end) {
            return Err(WireError::OutOfRange);
        }
        end = Some(next);
        runs.push((first, blocks));
    }
    Ok(Have(runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(message: &Message) -> Vec<u8> {
        let mut out = Vec::new();
        message.write(&mut out);
        out
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn messages_have_their_golden_bytes() {
        let name = FileName::new(b"ab").expect("a name");
        let file = FileInfo { name, size: 5, modified: -1 };
        let table = [
            (
                Message::Offer { chunk: 1396, files: vec![Ok(file)] },
                "01 00000017 0574 0001 0000000000000005 ffffffffffffffff 02 6162",
            ),
            (Message::Digest(1, Digest([7; 32])), &*format!("02 00000022 0001 {}", "07".repeat(32))),
            (
                Message::Answer(2, Verdict::Good, Have(vec![(0, 3), (9, 1)])),
                "03 00000017 0002 00 00000002 00000000 00000003 00000009 00000001",
            ),
            (Message::Result(3, Verdict::Digest), "04 00000003 0003 06"),
        ];
        for (message, golden) in table {
            let bytes = written(&message);
            assert_eq!(hex(&bytes), golden.replace(' ', ""));
            assert_eq!(Message::decode(&bytes), Ok(message));
            for short in 0..bytes.len() {
                assert!(Message::decode(&bytes[..short]).is_err(), "{short} of {golden}");
            }
        }
    }

    #[test]
    fn a_hostile_name_is_told_apart_from_a_hostile_message() {
        let file = FileInfo { name: FileName::new(b"okay").expect("a name"), size: 1, modified: 0 };
        let mut bytes = written(&Message::Offer { chunk: 600, files: vec![Ok(file)] });
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(b"../x");
        let Ok(Message::Offer { files, .. }) = Message::decode(&bytes) else { panic!("it is an offer") };
        assert_eq!(files, [Err((NameError::Component, 1))]);
    }

    #[test]
    fn the_second_file_of_a_name_is_told_apart() {
        let file = |name: &[u8], size| Ok(FileInfo { name: FileName::new(name).expect("a name"), size, modified: 0 });
        let files = vec![file(b"a", 1), file(b"b", 2), file(b"a", 3), file(b"aa", 4)];
        let decoded = Message::decode(&written(&Message::Offer { chunk: 600, files }));
        let Ok(Message::Offer { files, .. }) = decoded else { panic!("it is an offer") };
        assert_eq!(files, [file(b"a", 1), file(b"b", 2), Err((NameError::Twice, 3)), file(b"aa", 4)]);
    }

    #[test]
    fn runs_ascend_and_are_apart() {
        for (runs, good) in [
            (vec![(0, 1), (2, 1)], true),
            (vec![(0, 2), (2, 1)], false),
            (vec![(5, 1), (0, 1)], false),
            (vec![(0, 0)], false),
            (vec![(u32::MAX, 1)], false),
        ] {
            let message = Message::Answer(0, Verdict::Good, Have(runs.clone()));
            assert_eq!(Message::decode(&written(&message)).is_ok(), good, "{runs:?}");
        }
    }

    #[test]
    fn what_is_there_is_told_in_runs() {
        let have = Have::of([true, true, false, true]);
        assert_eq!(have, Have(vec![(0, 2), (3, 1)]));
        assert_eq!([0, 1, 2, 3, 4].map(|block| have.has(block)), [true, true, false, true, false]);
        assert_eq!(Have::of((0..200_000).map(|block| block % 2 == 0)).0.len(), MOST_RUNS);
    }
}
