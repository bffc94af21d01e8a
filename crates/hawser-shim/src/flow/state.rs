//! How far a flow is.

use std::time::Duration;

use super::{Direction, Protocol, track::Track};
use crate::mptcp::{Flags, Segment};

/// A flow that is not answered (tcp(7), tcp_syn_retries: the last SYN goes unanswered after 127 s).
const OPENING_PATIENCE: Duration = Duration::from_secs(130);
/// A flow that says nothing (RFC 5382 section 5, REQ-5: at least 2 hours 4 minutes).
const IDLE_PATIENCE: Duration = Duration::from_secs(2 * 3600 + 4 * 60);
/// A flow of which one end is closed (RFC 5382 section 5, REQ-5: transitory connections, 4 minutes).
const CLOSING_PATIENCE: Duration = Duration::from_secs(4 * 60);
/// A flow that has ended: its last segments may come twice (two of TCP's least retransmission timeouts, RFC 6298
/// section 2.4).
const ENDED_PATIENCE: Duration = Duration::from_secs(2);
/// A flow of UDP with no more than a question and an answer, and another (RFC 4787 section 4.3, REQ-5: two minutes at
/// least, five recommended).
const EXCHANGE_PATIENCE: Duration = Duration::from_secs(2 * 60);
const TALK_PATIENCE: Duration = Duration::from_secs(5 * 60);
/// The largest window (RFC 7323 section 2.3): what is further away is no segment of the flow.
const MAX_WINDOW: u32 = 1 << 30;

/// How far a flow is. Starts by its first segment. Plain value.
///
/// One of UDP has the first three states alone: any datagram the other way answers, and any after it confirms.
///
/// ```text
///            SYN             Answer (SYN back)           Confirm (ACK of who asked)
///  (none) ---------> Opening -----------------> Answered -----------------> Established
///     |                 |                          |                             |
///     | data of a flow  |                          +------- Fin(one end) --------+
///     | that was there  |                                                        v
///     | before us       +------------------ Fin(one end) -----------------> HalfClosed(one end)
///     v                                                                          |
///  Established, if this host sends it;                                           | Fin(the other end)
///  Answered, if the peer does, or this host only acknowledges                    v
///  Ended(Closed) <-------------- Acknowledged: both FINs are ---------------- Closing
///
///  All but Ended: Reset(one end) ---> Ended(Reset(one end));  all: silence ---> (none)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// One end has asked.
    Opening,
    /// The other has answered.
    Answered,
    /// Both ends know of each other.
    Established,
    /// This end has no more data.
    HalfClosed(Direction),
    /// Neither end has more data.
    Closing,
    /// It is over; kept for a moment, because its last segments may come again.
    Ended(End),
}

/// How a flow ended. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Both ends closed it.
    Closed,
    /// A RST passed this way.
    Reset(Direction),
}

/// What moves a flow on. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The end that was asked answers.
    Answer,
    /// The end that asked has the answer.
    Confirm,
    /// No more data this way.
    Fin(Direction),
    /// Both ends know that the other has no more data.
    Acknowledged,
    /// Over at once.
    Reset(Direction),
}

impl State {
    /// Where a step leads; one that leads nowhere changes nothing.
    pub(super) const fn after(self, step: Step) -> State {
        match (self, step) {
            (Self::Ended(_), _) => self,
            (_, Step::Reset(direction)) => Self::Ended(End::Reset(direction)),
            (Self::Opening, Step::Answer) => Self::Answered,
            (Self::Answered, Step::Confirm) => Self::Established,
            (Self::Opening | Self::Answered | Self::Established, Step::Fin(direction)) => Self::HalfClosed(direction),
            (Self::HalfClosed(Direction::Out), Step::Fin(Direction::In))
            | (Self::HalfClosed(Direction::In), Step::Fin(Direction::Out)) => Self::Closing,
            (Self::Closing, Step::Acknowledged) => Self::Ended(End::Closed),
            _ => self,
        }
    }

    /// How long a flow of TCP may be silent in this state.
    pub const fn patience(self) -> Duration {
        match self {
            Self::Opening | Self::Answered => OPENING_PATIENCE,
            Self::Established => IDLE_PATIENCE,
            Self::HalfClosed(_) | Self::Closing => CLOSING_PATIENCE,
            Self::Ended(_) => ENDED_PATIENCE,
        }
    }

    /// The same for what a flow speaks.
    pub(super) const fn patience_of(self, protocol: Protocol) -> Duration {
        match (protocol, self) {
            (Protocol::Tcp, _) => self.patience(),
            (Protocol::Udp, Self::Opening | Self::Answered) => EXCHANGE_PATIENCE,
            (Protocol::Udp, _) => TALK_PATIENCE,
        }
    }

    /// True where the flow is not yet established.
    pub const fn is_half_open(self) -> bool {
        matches!(self, Self::Opening | Self::Answered)
    }

    /// True where the flow is over.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// The step that a segment makes, which passes `here`; forged ones, far from the window, make none.
pub(super) fn step_of(
    segment: &Segment<'_>,
    direction: Direction,
    asked: Direction,
    here: &Track,
    there: &Track,
) -> Option<Step> {
    let flags = segment.flags;
    if flags.has(Flags::RST) {
        return fits(segment, here, there).then_some(Step::Reset(direction));
    }
    if flags.has(Flags::SYN) {
        return (direction != asked).then_some(Step::Answer);
    }
    if flags.has(Flags::FIN) && fits(segment, here, there) {
        return Some(Step::Fin(direction));
    }
    (direction == asked && flags.has(Flags::ACK)).then_some(Step::Confirm)
}

/// Whether a segment can be the flow's: within the largest window of what its receiver expects, or, before that is
/// known, an answer to just what was asked (RFC 9293 section 3.10.7.3).
fn fits(segment: &Segment<'_>, here: &Track, there: &Track) -> bool {
    if let Some(expected) = there.acknowledgment() {
        return segment.sequence.since(expected) <= MAX_WINDOW || here.fin() == Some(segment.end());
    }
    match (here.end(), there.end()) {
        // Who asked ends it, unanswered.
        (Some(end), None) => segment.sequence == end || segment.end() == end,
        (None, Some(end)) => segment.flags.has(Flags::ACK) && segment.acknowledgment == end,
        // A flow of which little is known yet.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{In, Out};

    const ALL: [Step; 7] = [
        Step::Answer,
        Step::Confirm,
        Step::Fin(Out),
        Step::Fin(In),
        Step::Acknowledged,
        Step::Reset(Out),
        Step::Reset(In),
    ];

    #[test]
    fn every_arrow_leads_where_it_is_drawn_and_there_are_no_others() {
        let arrows = [
            (State::Opening, Step::Answer, State::Answered),
            (State::Opening, Step::Fin(Out), State::HalfClosed(Out)),
            (State::Opening, Step::Fin(In), State::HalfClosed(In)),
            (State::Answered, Step::Confirm, State::Established),
            (State::Answered, Step::Fin(Out), State::HalfClosed(Out)),
            (State::Answered, Step::Fin(In), State::HalfClosed(In)),
            (State::Established, Step::Fin(Out), State::HalfClosed(Out)),
            (State::Established, Step::Fin(In), State::HalfClosed(In)),
            (State::HalfClosed(Out), Step::Fin(In), State::Closing),
            (State::HalfClosed(In), Step::Fin(Out), State::Closing),
            (State::Closing, Step::Acknowledged, State::Ended(End::Closed)),
        ];
        let ended = [State::Ended(End::Closed), State::Ended(End::Reset(Out)), State::Ended(End::Reset(In))];
        let living = [
            State::Opening,
            State::Answered,
            State::Established,
            State::HalfClosed(Out),
            State::HalfClosed(In),
            State::Closing,
        ];
        for state in living {
            for step in ALL {
                let drawn = arrows.iter().find(|(from, by, _)| (*from, *by) == (state, step)).map(|(_, _, to)| *to);
                let expected = match step {
                    Step::Reset(direction) => State::Ended(End::Reset(direction)),
                    _ => drawn.unwrap_or(state),
                };
                assert_eq!(state.after(step), expected, "{state:?} by {step:?}");
            }
        }
        for (state, step) in ended.iter().flat_map(|state| ALL.map(|step| (*state, step))) {
            assert_eq!(state.after(step), state, "{step:?}");
        }
    }

    #[test]
    fn what_is_over_is_kept_shortest_and_what_is_established_longest() {
        let patience = [State::Ended(End::Closed), State::Opening, State::Closing, State::Established];
        let patience = patience.map(State::patience);
        assert!(patience.is_sorted(), "{patience:?}");
        assert_eq!(State::Opening.patience(), State::Answered.patience());
    }
}
