//! What each path did: an hour by the second and a day by the minute, in memory that never grows.
//!
//! 1. [`History::write`] takes the row of a second; its minute is the mean of its seconds. Seconds without a row stay
//!    empty.
//! 2. [`History::read`] gives the newest rows of the paths that are asked for.
//!
//! There is room for [`PATHS`] paths. One that comes when all is taken has the room of the path that was not seen for
//! longest; where all were seen lately it gets none, and is counted.

use std::collections::BTreeSet;

use super::compact::Compact;
use crate::api::{self, HistoryQuestion, METRICS, PathHistory, SCHEMA, Span};

/// Paths that there is room for: 3.5 MiB where all of it is taken.
pub const PATHS: usize = 40;
/// Rows of a path, of both spans.
const ROWS: usize = (Span::Hour.rows() + Span::Day.rows()) as usize;
/// Figures of a path.
const FIGURES: usize = ROWS * METRICS.len();
/// A path that was not seen for this many seconds may lose its room.
const ABSENT_S: u64 = 60;
/// Rows of all paths together in one answer, 0.9 MB of text: those of four paths.
const ANSWER_ROWS: u64 = 4 * Span::Hour.rows();

/// The figures of a second, in the order of [`METRICS`].
pub type Row = [Option<u64>; METRICS.len()];

/// Whose history it is. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The peer.
    pub peer: String,
    /// The link.
    pub path: String,
    /// Which of its paths.
    pub place: usize,
}

/// A path that has room. Owned by its history.
#[derive(Debug)]
struct Slot {
    key: Key,
    /// The hour's rows, then the day's ([`place`]).
    figures: Box<[Compact]>,
    /// The first and the last second that were written.
    first: u64,
    last: u64,
    sums: Row,
    counts: [u64; METRICS.len()],
}

/// The history of all paths. Empty at first; the control thread owns it.
#[derive(Debug, Default)]
pub struct History {
    slots: Vec<Slot>,
    unrecorded: BTreeSet<Key>,
}

impl History {
    /// The row of a second, counted from the portal's start; seconds of a path never go back.
    pub fn write(&mut self, second: u64, key: &Key, row: &Row) {
        let Some(at) = self.slot(second, key) else {
            if self.unrecorded.len() < PATHS {
                self.unrecorded.insert(key.clone());
            }
            return;
        };
        let slot = &mut self.slots[at];
        if second <= slot.last && slot.last > slot.first {
            return;
        }
        for missed in (slot.last + 1..second).rev().take(Span::Hour.rows() as usize) {
            slot.figures[place(Span::Hour, missed)..][..METRICS.len()].fill(Compact::NONE);
        }
        let (before, minute) = (slot.last / Span::Day.step_s(), second / Span::Day.step_s());
        if minute > before {
            let mean = slot.mean();
            slot.figures[place(Span::Day, before)..][..METRICS.len()].copy_from_slice(&mean);
            for missed in (before + 1..minute).rev().take(Span::Day.rows() as usize) {
                slot.figures[place(Span::Day, missed)..][..METRICS.len()].fill(Compact::NONE);
            }
            (slot.sums, slot.counts) = Default::default();
        }
        for (at, figure) in row.iter().enumerate() {
            slot.figures[place(Span::Hour, second) + at] = (*figure).into();
            if let Some(figure) = figure {
                slot.sums[at] = Some(slot.sums[at].unwrap_or(0).saturating_add(*figure));
                slot.counts[at] += 1;
            }
        }
        slot.last = second;
    }

    /// The path's place: its own, a free one, or that of the path that was not seen for longest.
    fn slot(&mut self, second: u64, key: &Key) -> Option<usize> {
        if let Some(at) = self.slots.iter().position(|slot| slot.key == *key) {
            return Some(at);
        }
        if self.slots.len() < PATHS {
            self.slots.push(Slot::new(second, key));
            return Some(self.slots.len() - 1);
        }
        let (at, oldest) = self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.last)?;
        if oldest.last + ABSENT_S > second {
            return None;
        }
        self.slots[at] = Slot::new(second, key);
        self.unrecorded.remove(key);
        Some(at)
    }

    /// The newest rows until `second`, which ended at `end_unix_ms`.
    pub fn read(&self, question: &HistoryQuestion, second: u64, end_unix_ms: u64) -> api::History {
        let HistoryQuestion { span, peer, path, last } = question;
        let is_meant = |slot: &&Slot| {
            peer.as_ref().is_none_or(|peer| *peer == slot.key.peer)
                && path.as_ref().is_none_or(|path| *path == slot.key.path)
        };
        let meant: Vec<&Slot> = self.slots.iter().filter(is_meant).collect();
        let most = ANSWER_ROWS / (meant.len() as u64).max(1);
        let rows = last.unwrap_or(span.rows()).min(span.rows()).min(most).min(second / span.step_s() + 1);
        let end = second / span.step_s();
        let paths = meant.into_iter().map(|slot| slot.path(*span, end + 1 - rows..end + 1)).collect();
        api::History {
            schema: SCHEMA,
            step_s: span.step_s(),
            end_unix_ms,
            metrics: METRICS.map(str::to_owned).to_vec(),
            paths,
            unrecorded: self.unrecorded.len(),
        }
    }
}

impl Slot {
    fn new(second: u64, key: &Key) -> Self {
        let figures = vec![Compact::NONE; FIGURES].into();
        Self {
            key: key.clone(),
            figures,
            first: second,
            last: second,
            sums: Row::default(),
            counts: Default::default(),
        }
    }

    /// These rows of a span.
    fn path(&self, span: Span, rows: std::ops::Range<u64>) -> PathHistory {
        let seen = self.first / span.step_s()..self.last / span.step_s();
        let present = self.mean();
        let figure = |row: u64, metric: usize| match span {
            // The minute that is not over yet.
            Span::Day if row == seen.end => present[metric].get(),
            _ if row < seen.start || row > seen.end => None,
            _ => self.figures[place(span, row) + metric].get(),
        };
        let column = |metric| rows.clone().map(|row| figure(row, metric)).collect();
        let Key { peer, path, place } = self.key.clone();
        PathHistory { peer, path, place, columns: (0..METRICS.len()).map(column).collect() }
    }

    /// The mean of the minute's seconds so far.
    fn mean(&self) -> [Compact; METRICS.len()] {
        std::array::from_fn(|at| self.sums[at].map(|sum| sum / self.counts[at].max(1)).into())
    }
}

/// Where the figures of a second or minute begin, among those of its path.
fn place(span: Span, row: u64) -> usize {
    let before = if span == Span::Hour { 0 } else { Span::Hour.rows() };
    (before + row % span.rows()) as usize * METRICS.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: usize) -> Key {
        Key { peer: "hub".into(), path: format!("link{path}"), place: 0 }
    }

    fn row(figure: u64) -> Row {
        [Some(figure); METRICS.len()]
    }

    fn first_column(history: &History, span: Span, second: u64, last: u64) -> Vec<Option<u64>> {
        let question = HistoryQuestion { span, path: Some("link0".into()), last: Some(last), ..Default::default() };
        let read = history.read(&question, second, 0);
        read.paths.first().map(|path| path.columns[0].clone()).unwrap_or_default()
    }

    #[test]
    fn seconds_are_kept_for_an_hour_minutes_for_a_day_and_gaps_are_empty() {
        let mut history = History::default();
        for second in (0..7_200).filter(|second| !(100..110).contains(&(second % 3_600))) {
            history.write(second, &key(0), &row(second % 60));
        }
        let hour = first_column(&history, Span::Hour, 7_199, 10_000);
        assert_eq!(hour.len(), 3_600);
        assert_eq!((hour[0], hour[59], hour[100], hour[109], hour[110]), (Some(0), Some(59), None, None, Some(50)));
        let day = first_column(&history, Span::Day, 7_199, 10_000);
        assert_eq!((day.len(), day[0], day[119]), (120, Some(29), Some(29)), "means of 0 to 59");
        assert_eq!(first_column(&history, Span::Hour, 7_260, 62)[..2], [Some(59), None], "the path went");
    }

    #[test]
    fn a_suspended_host_leaves_nothing_of_the_hour_before() {
        let mut history = History::default();
        (0..3_600).for_each(|second| history.write(second, &key(0), &row(7)));
        history.write(100_000, &key(0), &row(8));
        let hour = first_column(&history, Span::Hour, 100_000, 3_600);
        assert_eq!(hour.iter().flatten().collect::<Vec<_>>(), [&8]);
        let day = first_column(&history, Span::Day, 100_000, 1_440);
        assert_eq!(day.iter().flatten().collect::<Vec<_>>(), [&8], "day by minute: only what is less than a day old");
    }

    #[test]
    fn the_path_that_was_not_seen_for_longest_makes_room_and_a_seen_one_does_not() {
        let mut history = History::default();
        for second in 0..10 {
            (0..=PATHS).for_each(|path| history.write(second, &key(path), &row(1)));
        }
        let all = history.read(&HistoryQuestion::default(), 9, 0);
        assert_eq!((all.paths.len(), all.unrecorded), (PATHS, 1));
        // All but the first are seen on; the one that came too late takes its room.
        for second in 10..100 {
            (1..=PATHS).for_each(|path| history.write(second, &key(path), &row(2)));
        }
        let all = history.read(&HistoryQuestion { last: Some(3), ..Default::default() }, 99, 0);
        assert_eq!((all.paths.len(), all.unrecorded), (PATHS, 0));
        assert!(first_column(&history, Span::Hour, 99, 1).is_empty(), "the first one's room is taken");
        let late = all.paths.iter().find(|path| path.path == format!("link{PATHS}")).expect("it has room");
        assert_eq!(late.columns[0], [Some(2); 3]);
    }

    #[test]
    fn an_answer_and_the_memory_are_bounded() {
        let mut history = History::default();
        for second in 0..4_000 {
            (0..PATHS).for_each(|path| history.write(second, &key(path), &row(u64::MAX)));
        }
        let read = history.read(&HistoryQuestion::default(), 3_999, 0);
        let rows: usize = read.paths.iter().map(|path| path.columns[0].len()).sum();
        assert!(rows as u64 <= ANSWER_ROWS && rows > 10_000, "{rows}");
        let memory: usize = history.slots.iter().map(|slot| size_of_val(&*slot.figures)).sum();
        assert!(memory <= 3_700_000, "{memory}");
    }
}
