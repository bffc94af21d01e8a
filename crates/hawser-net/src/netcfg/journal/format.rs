//! The journal's lines: JSON, one an event, appended.
//!
//! ```text
//! {"owner":{"format":2,"pid":…,"started":…,"boot":"…","netns":{"cookie":…}}}     always the first
//! {"set":{"id":1,"change":{…},"interface":"…","before":{…}}}                      about to be set
//! {"undone":{"id":1}}                                                             undone again, or never came about
//! ```

use std::{collections::BTreeMap, io};

use serde::{Deserialize, Serialize};

use super::super::{change::Change, mptcp::MptcpLimits, types::Mtu};
use super::owner::Owner;

/// The format written here; a reader that meets another one leaves the journal alone.
pub(crate) const FORMAT: u32 = 2;

/// What was there before a change. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Before {
    /// Nothing: undoing is removing.
    Absent,
    /// The interface was down.
    Down,
    /// The interface's MTU.
    Mtu(Mtu),
    /// The setting's value.
    Value(String),
    /// The limits of MPTCP.
    MptcpLimits(MptcpLimits),
}

/// A change that is to be undone some day. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its number in this journal; a later line with the same one takes its place.
    pub id: u64,
    /// What is set.
    pub change: Change,
    /// The name of the interface it is set on, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What to go back to.
    pub before: Before,
    /// Our own change whose place it takes: a process killed between journalling and setting leaves that one's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Change>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Owner {
        format: u32,
        #[serde(flatten)]
        owner: Owner,
    },
    Set(Box<Entry>),
    Undone {
        id: u64,
    },
}

/// What a journal says. Initially nothing, which an empty file says too. Plain data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Whose it is; none if not even the first line was written.
    pub owner: Option<Owner>,
    /// What is still to be undone, oldest first.
    pub entries: Vec<Entry>,
    /// Numbers of lines, from 1, that could not be read though a newline ends them.
    pub unreadable: Vec<usize>,
}

pub(crate) fn owner_line(owner: &Owner) -> io::Result<Vec<u8>> {
    line(&Line::Owner { format: FORMAT, owner: owner.clone() })
}

pub(crate) fn set_line(entry: &Entry) -> io::Result<Vec<u8>> {
    line(&Line::Set(Box::new(entry.clone())))
}

pub(crate) fn undone_line(id: u64) -> io::Result<Vec<u8>> {
    line(&Line::Undone { id })
}

fn line(line: &Line) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a journal. A last line without its newline was torn: what it announces was never set, so it is passed over.
/// `Err` holds the number of another format.
pub(crate) fn parse(journal: &[u8]) -> Result<Contents, u32> {
    let mut contents = Contents::default();
    let mut entries = BTreeMap::new();
    let whole = journal.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = journal[..whole].split_inclusive(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate() {
        match serde_json::from_slice(line) {
            Ok(Line::Owner { format, .. }) if format != FORMAT => return Err(format),
            Ok(Line::Owner { owner, .. }) => contents.owner = Some(owner),
            Ok(Line::Set(entry)) => {
                entries.insert(entry.id, *entry);
            }
            Ok(Line::Undone { id }) => {
                entries.remove(&id);
            }
            Err(_) => contents.unreadable.push(number + 1),
        }
    }
    contents.entries = entries.into_values().collect();
    Ok(contents)
}
