//! Flows of UDP: what passes between two ends, until they are silent for long enough.
//!
//! 1. [`FlowTable::begin_datagrams`]: the first datagram begins a flow. Those that peers began and nobody here answered
//!    have a limit of their own; the oldest goes first.
//! 2. [`FlowTable::observe_datagram`]: further ones count, and make it an answered and then an established one.
//! 3. [`FlowTable::evict`]: where there are as many as may be, the one goes that matters least: the next datagram makes
//!    it anew.

use hawser_core::units::Time;

use super::state::Step;
use super::table::counts_as_half_open;
use super::{Direction, Flow, FlowId, FlowKey, FlowTable, Observed, Protocol, Refused, Role, State};

/// Flows among which the one that matters least is looked for: those whose time comes first. To look at all is too
/// slow.
const LOOKED_AT: usize = 32;

impl FlowTable {
    /// Step 1, with a datagram that passes this way and has this much data.
    ///
    /// # Errors
    /// [`Refused::Full`], where no room is to be made.
    pub fn begin_datagrams(
        &mut self,
        now: Time,
        direction: Direction,
        key: FlowKey,
        bytes: usize,
    ) -> Result<Observed, Refused> {
        self.make_room(now, Protocol::Udp, direction)?;
        let unproven = direction == Direction::In;
        let flow = Flow { unproven, ..Flow::new(key, direction, State::Opening, Role::Plain, now) };
        let slot = self.place(flow);
        let id = self.id_of(slot);
        self.observe_datagram(now, direction, id, bytes);
        Ok(Observed { flow: id, before: None, state: State::Opening })
    }

    /// Step 2, for a flow that is there.
    pub fn observe_datagram(&mut self, now: Time, direction: Direction, id: FlowId, bytes: usize) -> Option<Observed> {
        self.get(id)?;
        let flow = self.flow_mut(id.slot)?;
        let (before, was_half_open) = (flow.state, counts_as_half_open(flow));
        flow.tracks(direction).0.count_datagram(now, bytes as u64);
        flow.seen = now;
        flow.state = before.after(if direction == flow.asked { Step::Confirm } else { Step::Answer });
        let (state, is_half_open) = (flow.state, counts_as_half_open(flow));
        if was_half_open && !is_half_open {
            self.half_open[Protocol::Udp as usize] -= 1;
        }
        Some(Observed { flow: id, before: Some(before), state })
    }

    /// Step 3: of the flows whose time comes first, in this order those without an answer, with one exchange, that
    /// peers began, silent the longest. Says which has gone.
    pub fn evict(&mut self) -> Option<FlowKey> {
        let first = self.due[Protocol::Udp as usize].iter().take(LOOKED_AT);
        let worth = |slot: u32| {
            let flow = self.flow_in(slot)?;
            let stage = match flow.state {
                State::Opening => 0,
                State::Answered => 1,
                _ => 2,
            };
            Some((stage, flow.asked == Direction::Out, flow.seen))
        };
        let (_, slot) = first.filter_map(|(_, slot)| Some((worth(*slot)?, *slot))).min()?;
        let key = self.flow_in(slot)?.key;
        self.displace(slot);
        self.counters.evicted += 1;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;
    use crate::flow::Limits;

    const UDP: Limits = Limits { flows: 8, half_open: 3 };

    fn table() -> FlowTable {
        FlowTable::new(Limits { flows: 1, half_open: 1 }, UDP)
    }

    fn key(port: u16) -> FlowKey {
        let end = |text: &str| text.parse::<SocketAddr>().expect("an address");
        FlowKey {
            protocol: Protocol::Udp,
            local: end("10.1.0.1:53"),
            remote: SocketAddr::new(end("10.2.0.1:1").ip(), port),
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_question_and_its_answer_are_kept_for_two_minutes_and_a_talk_for_five() {
        use Direction::{In, Out};
        let stories: [(&[Direction], State, u64); 5] = [
            (&[Out], State::Opening, 120),
            (&[Out, Out, Out], State::Opening, 120),
            (&[In, Out], State::Answered, 120),
            (&[Out, In, In], State::Answered, 120),
            (&[In, Out, In], State::Established, 300),
        ];
        for (story, state, patience) in stories {
            let mut table = table();
            let begun = table.begin_datagrams(at(0), story[0], key(1), 10).expect("there is room");
            let last = story[1..].iter().filter_map(|way| table.observe_datagram(at(1), *way, begun.flow, 10)).last();
            assert_eq!(last.unwrap_or(begun).state, state, "{story:?}");
            let from = u64::from(story.len() > 1);
            table.expire(at(from + patience - 1), |_, _| panic!("{story:?}: too early"));
            let mut gone = 0;
            // The time under which it is looked at may lie earlier: then it is put off.
            table.expire(at(from + patience), |_, _| gone += 1);
            assert_eq!((gone, table.entries()), (1, 0), "{story:?}");
        }
    }

    #[test]
    fn strangers_push_out_strangers_alone() {
        let mut table = table();
        let known = table.begin_datagrams(at(0), Direction::In, key(1), 10).expect("there is room").flow;
        table.observe_datagram(at(0), Direction::Out, known, 10);
        let own = table.begin_datagrams(at(0), Direction::Out, key(2), 10).expect("there is room").flow;
        for port in 10..100 {
            table.begin_datagrams(at(1), Direction::In, key(port), 10).expect("in place of the oldest");
        }
        assert!(table.get(known).is_some() && table.get(own).is_some());
        let left: Vec<u16> = table.flows().map(|(_, flow)| flow.key.remote.port()).collect();
        assert_eq!(left, [1, 2, 97, 98, 99]);
        assert_eq!(table.counters().pushed_out, 87);
        assert_eq!(std::iter::from_fn(|| table.displaced()).count(), 87);
    }

    #[test]
    fn a_full_table_gives_up_what_matters_least() {
        let mut table = table();
        let begin = |table: &mut FlowTable, seconds, way, port| {
            table.begin_datagrams(at(seconds), way, key(port), 10).expect("there is room").flow
        };
        let talk = begin(&mut table, 0, Direction::In, 1);
        table.observe_datagram(at(0), Direction::Out, talk, 10);
        table.observe_datagram(at(0), Direction::In, talk, 10);
        for port in 2..=4 {
            let exchange = begin(&mut table, u64::from(port), Direction::In, port);
            table.observe_datagram(at(u64::from(port)), Direction::Out, exchange, 10);
        }
        for port in 5..=8 {
            begin(&mut table, u64::from(port), Direction::Out, port);
        }
        let gone: Vec<u16> = (0..8).filter_map(|_| table.evict()).map(|key| key.remote.port()).collect();
        assert_eq!(gone, [5, 6, 7, 8, 2, 3, 4, 1]);
        for port in 1..=9 {
            begin(&mut table, 20, Direction::Out, port);
        }
        assert_eq!((table.flows().count(), table.counters().evicted), (8, 9));
        assert!(table.find(&key(9)).is_some(), "the newest is there");
    }
}
