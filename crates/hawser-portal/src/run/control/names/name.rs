//! One name: when it is asked for, and what is known of it.
//!
//! ```text
//!                  due                   addresses                   they are too old, or their peer is silent
//!   NEVER ASKED --------> ASKED FOR -----------------------> KNOWN -------------------------------------------> ASKED FOR
//!                           ^  |  no answer: after 1, 2, 4 .. 60 s; what was known stays
//!                           +--+
//! ```
//! While the peer is silent a name is asked for at once, and after 1, 2, 4 .. 60 s as long as the answer stays the
//! same.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::ask::Answer;

/// From one question to the next, while there is no answer or none that helps: at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long an answer counts at least and at most, whatever it says itself: a name server must not be asked all the
/// time, and a name that moved while its old address still answers is followed within the hour.
const COUNTS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(3600));
/// Addresses of a name that are used: each link tries all of them.
const ADDRESSES_MAX: usize = 8;

/// What is known of a name, and when it is asked for. Never asked at first, and due; [`super::Names`] owns it.
#[derive(Debug)]
pub struct Name {
    /// Of the last answer.
    addresses: Vec<IpAddr>,
    /// Of answers before it, while paths lead there.
    kept: Vec<IpAddr>,
    error: Option<String>,
    asking: bool,
    asked_at: Instant,
    due: Instant,
    /// From one question to the next, where that is too short.
    wait: Duration,
}

impl Name {
    pub fn new(now: Instant) -> Self {
        let (addresses, kept) = (Vec::new(), Vec::new());
        Self { addresses, kept, error: None, asking: false, asked_at: now, due: now, wait: AGAIN.0 }
    }

    /// Whether it is to be asked for.
    pub fn is_due(&self, now: Instant) -> bool {
        !self.asking && self.due <= now
    }

    /// It is asked for.
    pub fn on_asked(&mut self, now: Instant) {
        (self.asking, self.asked_at) = (true, now);
    }

    /// Whether an answer has other addresses than the last one.
    pub fn is_news(&self, answer: &Answer) -> bool {
        self.addresses != answer.addresses[..answer.addresses.len().min(ADDRESSES_MAX)]
    }

    /// What was answered; whether there are other addresses now.
    pub fn on_answer(&mut self, now: Instant, answer: Result<Answer, String>) -> bool {
        self.asking = false;
        let later = (self.wait * 2).min(AGAIN.1);
        match answer {
            Err(error) => {
                (self.error, self.due) = (Some(error), now + self.wait);
                self.wait = later;
                false
            }
            Ok(answer) => {
                let news = self.is_news(&answer);
                self.wait = if news { AGAIN.0 } else { later };
                (self.error, self.due) = (None, now + answer.ttl.clamp(COUNTS.0, COUNTS.1));
                if news {
                    let mut latest = answer.addresses;
                    latest.truncate(ADDRESSES_MAX);
                    self.kept.append(&mut self.addresses);
                    self.kept.retain(|address| !latest.contains(address));
                    self.addresses = latest;
                }
                news
            }
        }
    }

    /// Its peer does not answer: it may have moved.
    pub fn on_silence(&mut self) {
        self.due = self.due.min(self.asked_at + self.wait);
    }

    /// Its peer answers.
    pub fn on_word(&mut self) {
        self.wait = AGAIN.0;
    }

    /// Addresses of before that nothing leads to are let go; whether there were any.
    pub fn let_go(&mut self, unused: impl Fn(&IpAddr) -> bool) -> bool {
        let before = self.kept.len();
        self.kept.retain(|address| !unused(address));
        self.kept.len() != before
    }

    /// All that may lead there, those of the last answer first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.addresses.iter().chain(&self.kept).copied()
    }

    /// Why there was no answer last.
    pub fn error(&self) -> Option<&String> {
        self.error.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn said(addresses: &[&str], ttl: u64) -> Result<Answer, String> {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        Ok(Answer { addresses, ttl: seconds(ttl) })
    }

    /// When it is due next, in seconds.
    fn due(name: &Name, start: Instant) -> u64 {
        name.due.saturating_duration_since(start).as_secs()
    }

    #[test]
    fn a_name_without_an_answer_is_asked_for_ever_more_seldom_and_keeps_what_was_known() {
        let start = Instant::now();
        let mut name = Name::new(start);
        assert!(name.is_due(start));
        name.on_asked(start);
        assert!(!name.is_due(start + seconds(99)), "it is being asked for");
        assert!(name.on_answer(start, said(&["192.0.2.1"], 100)));
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            name.on_asked(start);
            assert!(!name.on_answer(start, Err("no answer".into())));
            assert_eq!(due(&name, start), wait);
        }
        assert_eq!((name.addresses().count(), name.error().is_some()), (1, true));
        name.on_asked(start);
        assert!(!name.on_answer(start, said(&["192.0.2.1"], 100)), "the same as before");
        assert_eq!(name.error(), None);
    }

    #[test]
    fn an_answer_counts_as_long_as_it_says_within_bounds() {
        let start = Instant::now();
        for (ttl, counts) in [(0, 30), (300, 300), (86_400, 3_600)] {
            let mut name = Name::new(start);
            name.on_answer(start, said(&["192.0.2.1"], ttl));
            assert_eq!(due(&name, start), counts, "{ttl}");
        }
    }

    #[test]
    fn a_silent_peer_s_name_is_asked_for_at_once_then_ever_more_seldom_until_the_answer_is_another() {
        let start = Instant::now();
        let at = |second| start + seconds(second);
        let mut name = Name::new(start);
        name.on_asked(start);
        name.on_answer(start, said(&["192.0.2.1"], 3_600));
        name.on_silence();
        assert!(name.is_due(at(100)), "it was asked for long ago");
        for (asked, next) in [(100, 102), (102, 106), (106, 114)] {
            name.on_asked(at(asked));
            name.on_answer(at(asked), said(&["192.0.2.1"], 3_600));
            name.on_silence();
            assert_eq!(due(&name, start), next);
        }
        name.on_asked(at(114));
        assert!(name.on_answer(at(114), said(&["192.0.2.2"], 3_600)));
        name.on_silence();
        assert_eq!(due(&name, start), 115, "it may have been a step on the way");
        name.on_word();
        assert_eq!(name.wait, AGAIN.0);
    }

    #[test]
    fn earlier_addresses_stay_while_they_are_used() {
        let start = Instant::now();
        let mut name = Name::new(start);
        name.on_answer(start, said(&["192.0.2.1", "192.0.2.2"], 60));
        name.on_answer(start, said(&["192.0.2.2", "192.0.2.3"], 60));
        let shown = |name: &Name| name.addresses().map(|address| address.to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&name), ["192.0.2.2", "192.0.2.3", "192.0.2.1"]);
        assert!(!name.let_go(|_| false));
        assert!(name.let_go(|_| true));
        assert_eq!(shown(&name), ["192.0.2.2", "192.0.2.3"], "what was answered last is not let go");
    }
}
