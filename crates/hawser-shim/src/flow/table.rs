//! The table of flows.
//!
//! 1. A segment's ends say which flow it is of; a SYN begins one, and so does data of a flow from before the table.
//! 2. What MPTCP says while a flow begins makes it a main flow, or joins it to its connection.
//! 3. The flow counts the segment and goes on to its next state.
//! 4. Flows are looked at when their time comes: silent and ended ones are freed.
//! 5. What there is, anybody may see (`look.rs`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hawser_core::units::Time;

use super::connection::{ConnectionId, Connections};
use super::{Counters, Direction, Flow, FlowId, FlowKey, Limits, Mains, Observed, Protocol, Refused, Role, State};
use crate::mptcp::{CapableForm, Flags, JoinForm, MptcpOption, Segment, Token};

/// All flows of a host. Starts without; one owner. What is there twice is so by protocol: neither takes the other's
/// room.
#[derive(Debug)]
pub struct FlowTable {
    limits: [Limits; 2],
    counts: [u32; 2],
    pub(super) slots: Vec<Slot>,
    free: Vec<u32>,
    pub(super) by_key: BTreeMap<FlowKey, u32>,
    /// Flows by the time they are looked at next.
    pub(super) due: [BTreeSet<(Time, u32)>; 2],
    pub(super) half_open: [u32; 2],
    /// Those that were half open when they came, the oldest first; some are no longer, or gone.
    waiting: [VecDeque<FlowId>; 2],
    /// Flows that made room for others, until somebody asks.
    displaced: Vec<(FlowId, FlowKey)>,
    pub(super) connections: Connections,
    pub(super) counters: Counters,
}

/// A place of a flow. Starts empty.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) generation: u32,
    pub(super) flow: Option<Flow>,
}

impl FlowTable {
    /// A table that holds so much of TCP, and of UDP.
    pub fn new(tcp: Limits, udp: Limits) -> Self {
        Self {
            limits: [tcp, udp],
            counts: [0; 2],
            slots: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            due: Default::default(),
            half_open: [0; 2],
            waiting: Default::default(),
            displaced: Vec::new(),
            connections: Connections::default(),
            counters: Counters::default(),
        }
    }

    /// Steps 1 to 3: a segment passes.
    ///
    /// # Errors
    /// [`Refused`] where it has no flow; it is counted.
    pub fn observe(&mut self, now: Time, direction: Direction, segment: &Segment<'_>) -> Result<Observed, Refused> {
        self.observe_among(now, direction, segment, Mains::Here)
    }

    /// The same where main flows may pass elsewhere: a subflow joins by a token that only the kernel knows.
    ///
    /// # Errors
    /// [`Refused`] where it has no flow; it is counted.
    pub fn observe_among(
        &mut self,
        now: Time,
        direction: Direction,
        segment: &Segment<'_>,
        mains: Mains,
    ) -> Result<Observed, Refused> {
        let key = FlowKey::of(segment, direction);
        let found = self.by_key.get(&key).copied();
        let slot = match found.filter(|slot| !self.begins_anew(*slot, direction, segment)) {
            Some(slot) => slot,
            None => {
                let begun = self.begin(now, direction, segment, key, mains);
                return begun.inspect_err(|refused| self.counters.count(*refused));
            }
        };
        Ok(self.go_on(now, direction, segment, slot))
    }

    /// Whether a SYN begins another flow between the ends of one that is over, or was given up before it was answered.
    fn begins_anew(&self, slot: u32, direction: Direction, segment: &Segment<'_>) -> bool {
        let Some(flow) = self.flow_in(slot) else { return true };
        let is_first = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let is_another = flow.track(direction).end().is_none_or(|end| end != segment.end());
        let may = flow.state.is_ended() || (flow.state == State::Opening && flow.asked == direction && is_another);
        is_first && may
    }

    fn begin(
        &mut self,
        now: Time,
        direction: Direction,
        segment: &Segment<'_>,
        key: FlowKey,
        mains: Mains,
    ) -> Result<Observed, Refused> {
        let is_first = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let is_middle =
            segment.flags.has(Flags::ACK) && !segment.flags.has_any(Flags::SYN.with(Flags::FIN).with(Flags::RST));
        // What a peer claims to be of a flow from before the table is one when this host goes on with it; what this
        // host only acknowledges, when the peer does.
        let (state, asked) = match (is_first, is_middle, segment.payload > 0, direction) {
            (true, _, _, _) => (State::Opening, direction),
            (false, true, true, Direction::Out) => (State::Established, direction),
            (false, true, true, Direction::In) | (false, true, false, Direction::Out) => {
                (State::Answered, direction.back())
            }
            _ => return Err(Refused::Stray),
        };
        let (role, connection) = if is_first { self.role_of(direction, segment, mains)? } else { (Role::Plain, None) };
        if let Some(old) = self.by_key.get(&key).copied() {
            self.displace(old);
        }
        self.make_room(now, Protocol::Tcp, direction)?;
        let unproven = direction == Direction::In;
        let slot = self.place(Flow { unproven, ..Flow::new(key, asked, state, role, now) });
        let id = self.id_of(slot);
        if let (Some(connection), Some(flow)) = (connection, self.flow_mut(slot)) {
            flow.connection = Some(connection);
            self.connections.join(connection, id);
        }
        let observed = self.go_on(now, direction, segment, slot);
        Ok(Observed { before: None, ..observed })
    }

    /// Step 2, for a SYN. A subflow of ours whose connection is unknown is older than the table, or its peer's other
    /// subflows go elsewhere; one of the peer's has no business here.
    fn role_of(
        &self,
        direction: Direction,
        segment: &Segment<'_>,
        mains: Mains,
    ) -> Result<(Role, Option<ConnectionId>), Refused> {
        for option in segment.mptcp().flatten() {
            match option {
                MptcpOption::Capable(_) => return Ok((Role::Main, None)),
                MptcpOption::Join(join) => {
                    let JoinForm::Syn { token, .. } = join.form else { continue };
                    let connection = self.joined(direction, token, FlowKey::of(segment, direction));
                    return match (connection, direction) {
                        (None, Direction::In) if mains == Mains::Here => Err(Refused::UnknownToken(token)),
                        (connection, _) => Ok((Role::Subflow, connection)),
                    };
                }
                _ => {}
            }
        }
        Ok((Role::Plain, None))
    }

    /// Of several connections with one token, one with this very peer, or else the newest.
    fn joined(&self, direction: Direction, token: Token, key: FlowKey) -> Option<ConnectionId> {
        let has_peer = |id: &ConnectionId| {
            let flows = self.connections.get(*id).into_iter().flat_map(|connection| &connection.flows);
            flows.filter_map(|flow| self.get(*flow)).any(|flow| flow.key.remote.ip() == key.remote.ip())
        };
        let all = || self.connections.with_token(direction, token);
        all().find(has_peer).or_else(|| all().last())
    }

    /// Makes sure that there is room, if need be in place of a flow that has ended, or, where a peer asks, of the
    /// oldest that waits for its establishment: who asks without end pushes out nobody who goes on. Of UDP there always
    /// is.
    pub(super) fn make_room(&mut self, now: Time, protocol: Protocol, direction: Direction) -> Result<(), Refused> {
        let (at, most) = (protocol as usize, self.limits[protocol as usize]);
        if direction == Direction::In && self.half_open[at] >= most.half_open {
            self.push_out(protocol);
        }
        if self.counts[at] >= most.flows {
            let mut displaced = std::mem::take(&mut self.displaced);
            self.expire(now, |id, flow| displaced.push((id, flow.key)));
            self.displaced = displaced;
        }
        if self.counts[at] >= most.flows {
            match protocol {
                Protocol::Udp => drop(self.evict()),
                Protocol::Tcp => {
                    let is_ended = |slot: u32| self.flow_in(slot).is_some_and(|flow| flow.state.is_ended());
                    let ended = self.due[at].iter().find(|(_, slot)| is_ended(*slot));
                    let Some(&(_, slot)) = ended else { return Err(Refused::Full) };
                    self.displace(slot);
                }
            }
        }
        Ok(())
    }

    fn push_out(&mut self, protocol: Protocol) {
        while let Some(id) = self.waiting[protocol as usize].pop_front() {
            if self.get(id).is_some_and(counts_as_half_open) {
                self.displace(id.slot);
                self.counters.pushed_out += 1;
                return;
            }
        }
    }

    pub(super) fn displace(&mut self, slot: u32) {
        if let Some(key) = self.flow_in(slot).map(|flow| flow.key) {
            self.displaced.push((self.id_of(slot), key));
            self.release(slot);
        }
    }

    /// A flow that made room for others since the last time; nobody else is told of these.
    pub fn displaced(&mut self) -> Option<(FlowId, FlowKey)> {
        self.displaced.pop()
    }

    /// A flow is not to be followed any longer.
    pub fn forget(&mut self, id: FlowId) {
        if self.get(id).is_some() {
            self.release(id.slot);
        }
    }

    pub(super) fn place(&mut self, flow: Flow) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, flow: None });
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let (protocol, is_half_open) = (flow.key.protocol, counts_as_half_open(&flow));
        self.by_key.insert(flow.key, slot);
        self.due[protocol as usize].insert((flow.due, slot));
        self.counts[protocol as usize] += 1;
        self.half_open[protocol as usize] += u32::from(is_half_open);
        self.counters.opened += 1;
        self.slots[slot as usize].flow = Some(flow);
        if is_half_open {
            self.wait(protocol, self.id_of(slot));
        }
        slot
    }

    fn wait(&mut self, protocol: Protocol, id: FlowId) {
        let at = protocol as usize;
        if self.waiting[at].len() > 2 * self.limits[at].half_open as usize {
            let mut waiting = std::mem::take(&mut self.waiting[at]);
            waiting.retain(|id| self.get(*id).is_some_and(counts_as_half_open));
            self.waiting[at] = waiting;
        }
        self.waiting[at].push_back(id);
    }

    /// Steps 2 and 3, for a flow that is there.
    fn go_on(&mut self, now: Time, direction: Direction, segment: &Segment<'_>, slot: u32) -> Observed {
        let flow = id_of(&self.slots, slot);
        let Some(it) = self.slots.get_mut(slot as usize).and_then(|slot| slot.flow.as_mut()) else {
            return Observed { flow, before: None, state: State::Opening };
        };
        let (before, was_half_open) = (it.state, counts_as_half_open(it));
        it.observe(now, direction, segment);
        let (state, role) = (it.state, it.role);
        if was_half_open && !counts_as_half_open(it) {
            self.half_open[Protocol::Tcp as usize] -= 1;
        }
        if state.patience() < before.patience() {
            // Later times wait until the present one has come.
            let due = &mut self.due[Protocol::Tcp as usize];
            due.remove(&(it.due, slot));
            it.due = now + state.patience();
            due.insert((it.due, slot));
        }
        if before.is_half_open() && role == Role::Main {
            self.hear_keys(now, direction, segment, slot);
        }
        Observed { flow, before: Some(before), state }
    }

    /// Step 2, for a main flow that is not yet established.
    fn hear_keys(&mut self, now: Time, direction: Direction, segment: &Segment<'_>, slot: u32) {
        let id = self.id_of(slot);
        let Some(flow) = self.flow_in(slot) else { return };
        let (asked, known) = (flow.asked, flow.connection);
        let is_answer = direction != asked && segment.flags.has(Flags::SYN);
        let capable = segment.mptcp().flatten().find_map(|option| match option {
            MptcpOption::Capable(capable) => Some(capable.form),
            _ => None,
        });
        match (capable, known) {
            (Some(CapableForm::SynAck { responder }), None) if is_answer => {
                let connection = self.connections.open(id, now);
                // Who has the key is joined: flows to the one that answered pass as the question did.
                self.connections.set_token(connection, asked, responder.token());
                if let Some(flow) = self.flow_mut(slot) {
                    flow.connection = Some(connection);
                }
            }
            (Some(CapableForm::Ack { initiator, .. }), Some(connection)) if direction == asked => {
                self.connections.set_token(connection, asked.back(), initiator.token());
            }
            (None, None) if is_answer => {
                if let Some(flow) = self.flow_mut(slot) {
                    flow.role = Role::Plain;
                }
            }
            _ => {}
        }
    }

    /// Step 4: frees what has ended or was silent for too long, and shows it.
    pub fn expire(&mut self, now: Time, mut gone: impl FnMut(FlowId, &Flow)) {
        Protocol::ALL.into_iter().for_each(|protocol| self.expire_of(protocol as usize, now, &mut gone));
    }

    fn expire_of(&mut self, at: usize, now: Time, gone: &mut impl FnMut(FlowId, &Flow)) {
        while let Some(&(due, slot)) = self.due[at].first() {
            if due > now {
                return;
            }
            let id = self.id_of(slot);
            let Some(flow) = self.flow_mut(slot) else {
                self.due[at].remove(&(due, slot));
                continue;
            };
            let next = flow.seen + flow.patience();
            if next <= now {
                gone(id, flow);
                self.release(slot);
            } else {
                flow.due = next;
                self.due[at].remove(&(due, slot));
                self.due[at].insert((next, slot));
            }
        }
    }

    /// When [`FlowTable::expire`] has something to do next, or later.
    pub fn next_deadline(&self) -> Option<Time> {
        self.due.iter().filter_map(|due| due.first()).map(|(due, _)| *due).min()
    }

    fn release(&mut self, slot: u32) {
        let id = self.id_of(slot);
        let Some(flow) = self.slots.get_mut(slot as usize).and_then(|slot| slot.flow.take()) else { return };
        let at = flow.key.protocol as usize;
        self.slots[slot as usize].generation = id.generation.wrapping_add(1);
        self.free.push(slot);
        self.by_key.remove(&flow.key);
        self.due[at].remove(&(flow.due, slot));
        self.counts[at] -= 1;
        self.half_open[at] -= u32::from(counts_as_half_open(&flow));
        if let Some(connection) = flow.connection {
            self.connections.leave(connection, id);
        }
        self.counters.freed += 1;
    }

    pub(super) fn id_of(&self, slot: u32) -> FlowId {
        id_of(&self.slots, slot)
    }

    pub(super) fn flow_in(&self, slot: u32) -> Option<&Flow> {
        self.slots.get(slot as usize)?.flow.as_ref()
    }

    pub(super) fn flow_mut(&mut self, slot: u32) -> Option<&mut Flow> {
        self.slots.get_mut(slot as usize)?.flow.as_mut()
    }
}

/// Only what peers ask for is limited so: this host's own applications may ask as they like. A flow of UDP is one that
/// nobody here has answered.
pub(super) const fn counts_as_half_open(flow: &Flow) -> bool {
    let is_half_open = match flow.key.protocol {
        Protocol::Tcp => flow.state.is_half_open(),
        Protocol::Udp => matches!(flow.state, State::Opening),
    };
    is_half_open && flow.unproven
}

fn id_of(slots: &[Slot], slot: u32) -> FlowId {
    FlowId { slot, generation: slots.get(slot as usize).map_or(0, |slot| slot.generation) }
}
