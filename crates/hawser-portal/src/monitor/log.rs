//! What happened: the newest events, each once however often it happens with nothing in between.

use std::collections::VecDeque;

use crate::api::{Event, EventKind, Events, SCHEMA};

/// Events that are remembered.
const EVENTS: usize = 512;
/// Bytes of a cause that are kept.
const CAUSE_MAX: usize = 200;

/// The newest events, oldest first. Empty at first; the control thread owns it.
#[derive(Debug, Default)]
pub struct EventLog {
    events: VecDeque<Event>,
    latest: u64,
}

impl EventLog {
    /// Remembers an event. Where the last one of the same peer and path was of this kind, that one is counted instead,
    /// and is the newest again.
    pub fn note(&mut self, time_unix_ms: u64, kind: EventKind, peer: &str, path: &str, cause: &str) {
        self.latest += 1;
        let last = self.events.iter().rposition(|event| event.peer == peer && event.path == path);
        let again = last.filter(|&at| self.events[at].kind == kind).and_then(|at| self.events.remove(at));
        let count = again.map_or(1, |event| event.count.saturating_add(1));
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        let cause = cause[..cause.floor_char_boundary(CAUSE_MAX)].to_owned();
        let (peer, path) = (peer.to_owned(), path.to_owned());
        self.events.push_back(Event { seq: self.latest, time_unix_ms, kind, peer, path, cause, count });
    }

    /// The largest number there is.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Those with a larger number.
    pub fn since(&self, since: u64, started_unix_ms: u64) -> Events {
        let events = self.events.iter().filter(|event| event.seq > since).cloned().collect();
        Events { schema: SCHEMA, started_unix_ms, latest: self.latest, events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_again_with_nothing_between_is_counted_and_is_new() {
        let mut log = EventLog::default();
        log.note(1, EventKind::Rekey, "hub", "", "");
        log.note(2, EventKind::Cut, "hub", "dsl", "nothing comes back");
        log.note(3, EventKind::Rekey, "hub", "", "");
        log.note(4, EventKind::Comeback, "hub", "dsl", "");
        log.note(5, EventKind::Cut, "hub", "dsl", "");
        let told = |since| {
            let events = log.since(since, 0).events.into_iter();
            events.map(|event| (event.seq, event.time_unix_ms, event.kind, event.count)).collect::<Vec<_>>()
        };
        let cut = |seq, time| (seq, time, EventKind::Cut, 1);
        assert_eq!(told(0), [cut(2, 2), (3, 3, EventKind::Rekey, 2), (4, 4, EventKind::Comeback, 1), cut(5, 5)]);
        assert_eq!(told(4), [cut(5, 5)]);
        assert!(told(5).is_empty());
    }

    #[test]
    fn the_oldest_go_and_a_long_cause_is_cut() {
        let mut log = EventLog::default();
        for time in 0..2_000 {
            log.note(time, EventKind::Roaming, "hub", &format!("link{time}"), &"ä".repeat(500));
        }
        let all = log.since(0, 7);
        assert_eq!((all.events.len(), all.latest, all.started_unix_ms), (EVENTS, 2_000, 7));
        assert_eq!((all.events[0].time_unix_ms, all.events[0].cause.len()), (1_488, CAUSE_MAX));
    }
}
