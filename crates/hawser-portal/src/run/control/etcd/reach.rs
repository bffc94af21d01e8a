//! Whether etcd is reached, as people are told of it: by an event and a line of the log when that changes.

use std::time::Duration;

use hawser_core::units::Time;
use hawser_etcd::driver::Reach;

use crate::api::EventKind;

/// What people know. Nothing at first; the store owns it.
#[derive(Debug, Default)]
pub struct Told {
    reached: Option<bool>,
    /// Since when; none before the first view.
    since: Option<Time>,
}

/// Something to tell. Owned data.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// It does not answer any more, after it did for so long; none: it never did.
    Away { reached_for: Option<Duration>, why: String },
    /// It answers, after it did not for so long.
    Back { away_for: Duration },
}

/// Whether it answers, since when, and why not.
pub fn parts(reach: &Reach) -> (bool, Time, Option<String>) {
    match reach {
        Reach::Asked(since) => (false, *since, Some("it has not answered yet".to_owned())),
        Reach::Reached(since) => (true, *since, None),
        Reach::Away(since, why) => (false, *since, Some(why.clone())),
    }
}

impl Told {
    /// What is to be told of this; nothing where it is known. Whether etcd is there is not known before it was asked.
    pub fn news(&mut self, reach: &Reach) -> Option<News> {
        let (reached, since, why) = parts(reach);
        let before = *self.since.get_or_insert(since);
        if matches!(reach, Reach::Asked(_)) || self.reached == Some(reached) {
            return None;
        }
        let was_reached = self.reached.replace(reached).is_some();
        self.since = Some(since);
        let lasted = since.since(before);
        Some(match why {
            None => News::Back { away_for: lasted },
            Some(why) => News::Away { reached_for: was_reached.then_some(lasted), why },
        })
    }
}

impl News {
    /// Tells the log; the event, and its cause.
    pub fn tell(self) -> (EventKind, String) {
        match self {
            Self::Away { reached_for, why } => {
                let reached_s = reached_for.map(|time| time.as_secs());
                tracing::warn!(error = why, reached_s, "etcd away: peers are served as before");
                let lasted = reached_for.map_or("since the start".to_owned(), |time| format!("after {}", shown(time)));
                (EventKind::EtcdAway, format!("{lasted}: {why}"))
            }
            Self::Back { away_for } => {
                tracing::info!(away_s = away_for.as_secs_f64(), "etcd reached");
                (EventKind::EtcdReached, format!("after {}", shown(away_for)))
            }
        }
    }
}

fn shown(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn each_change_is_told_once_with_how_long_the_other_state_lasted() {
        let mut told = Told::default();
        let away = |since| Reach::Away(at(since), "refused".to_owned());
        let table = [
            ("nobody knows yet", Reach::Asked(at(10)), None),
            ("it answers", Reach::Reached(at(12)), Some((EventKind::EtcdReached, "after 2.0 s"))),
            ("it still does", Reach::Reached(at(12)), None),
            ("it is lost", away(20), Some((EventKind::EtcdAway, "after 8.0 s: refused"))),
            ("another server is tried", away(20), None),
            ("it is back", Reach::Reached(at(65)), Some((EventKind::EtcdReached, "after 45.0 s"))),
        ];
        for (what, reach, expected) in table {
            let expected = expected.map(|(kind, cause)| (kind, cause.to_owned()));
            assert_eq!(told.news(&reach).map(News::tell), expected, "{what}");
        }
    }

    #[test]
    fn a_member_that_starts_without_etcd_says_so() {
        let mut told = Told::default();
        let news = told.news(&Reach::Away(at(10), "refused".to_owned()));
        assert_eq!(news.map(News::tell), Some((EventKind::EtcdAway, "since the start: refused".to_owned())));
    }
}
