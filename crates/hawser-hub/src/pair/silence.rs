//! Who is away, how long a member may be silent, and when the other one is asked: what a session knows of its paths
//! decides.

use hawser_core::session::Presence;
use hawser_core::units::Time;
use std::time::Duration;

/// A silence is no shorter: a member's thread may have to wait for a processor (three times BFD's usual 30 ms is what
/// routers take for a silence, RFC 5880 section 6.8.4).
const SILENCE_LEAST: Duration = Duration::from_millis(100);
/// Nor longer, whatever the paths' round trips: where nothing at all is acknowledged, initiations are due (hawser-core,
/// SILENCE).
const SILENCE_MOST: Duration = Duration::from_secs(1);
/// The standby is asked no sooner: one path may be late while others bring acknowledgements.
const ASK_LEAST: Duration = Duration::from_millis(25);

/// Whether a member has no session, or is silent: for as long as an owner may be, where there is need of it.
pub(super) fn is_away(now: Time, presence: &Presence, pressed: bool) -> bool {
    let patience = if pressed { silence(presence) } else { SILENCE_MOST };
    let silent = presence.unanswered_since.is_some_and(|since| now.since(since) >= patience);
    presence.answered_at.is_none() || silent
}

/// After how much of a silence the other member is asked: in no packet's usual round trip, and early enough that its
/// answer is there.
pub(super) fn ask(presence: &Presence, silence: Duration) -> Duration {
    let late = presence.unanswered_since.zip(presence.late_at).map(|(since, at)| at.since(since));
    late.map_or(silence / 2, |time| time.clamp(ASK_LEAST, silence))
}

/// How long a member may be silent, from the first that it did not acknowledge on: until each path that has something
/// under way has waited for two datagrams for its own probe timeout (RFC 9002 section 6.2), of which one may be lost.
/// What went by a path that is suspect by then goes by the others, and is waited for there; claims go by all of them.
pub(super) fn silence(presence: &Presence) -> Duration {
    let overdue = presence.unanswered_since.zip(presence.overdue_at).map(|(since, at)| at.since(since));
    overdue.map_or(SILENCE_LEAST, |time| time.clamp(SILENCE_LEAST, SILENCE_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_session_or_is_silent_is_away() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        for (what, answered, unanswered, pressed, away) in [
            ("it never came", None, None, false, true),
            ("nothing is asked", Some(100), None, true, false),
            ("it may still answer", Some(900), Some(1901), true, false),
            ("it does not", Some(900), Some(1900), true, true),
            ("nobody needs it yet", Some(900), Some(1001), false, false),
            ("it does not for long", Some(900), Some(1000), false, true),
        ] {
            let (answered_at, unanswered_since) = (answered.map(at), unanswered.map(at));
            let presence =
                Presence { unanswered_since, answered_at, late_at: None, overdue_at: None, idle: false, busy_at: None };
            assert_eq!(is_away(at(2000), &presence, pressed), away, "{what}");
        }
    }

    #[test]
    fn a_silence_and_the_question_before_it_follow_the_paths() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        // Since 1 s something is unanswered: when the first path is late, when all are overdue; then the two times, ms.
        let table = [
            ("nothing is unanswered", None, Some(1050), Some(1090), 50, 100),
            ("short paths: a busy member has its time", Some(1000), Some(1040), Some(1060), 40, 100),
            ("a slow path is waited for", Some(1000), Some(1050), Some(1240), 50, 240),
            ("one path was late before others fell silent", Some(1000), Some(960), Some(1120), 25, 120),
            ("all paths are suspect", Some(1000), None, None, 50, 100),
            ("the first is late after the silence's end", Some(1000), Some(1300), Some(1080), 100, 100),
            ("no path is waited for longer than for a new initiation", Some(1000), Some(1900), Some(3000), 900, 1000),
        ];
        for (what, since, late, overdue, asked, silent) in table {
            let presence = Presence {
                unanswered_since: since.map(at),
                answered_at: Some(at(990)),
                late_at: late.map(at),
                overdue_at: overdue.map(at),
                idle: false,
                busy_at: None,
            };
            let time = silence(&presence);
            let found = (ask(&presence, time).as_millis(), time.as_millis());
            assert_eq!(found, (asked, silent), "{what}");
        }
    }
}
