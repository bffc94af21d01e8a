//! What users had of a fault.

use super::World;
use super::case::{CALM, END, FAULT};
use crate::host::HostId;
use crate::host::flow::Ledger;
use crate::host::ping::Ping;
use crate::situation::second;
use crate::tcp::hosts::ReceiverHost;
use crate::tcp::receiver::{BIN, Receiver};
use hawser_core::drops::DropReason;
use hawser_core::units::Time;
use std::time::Duration;

/// What happens shortly before a fault is looked at with it, seconds: it is under way then.
const BEFORE: f64 = 0.1;
/// What follows the fault is looked at in steps of this, and how many there are.
const STEP: Duration = Duration::from_millis(100);
const STEPS: u32 = 15;

/// What users had of it. Plain data; times in ms.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The longest time without an answered ping from just before the fault on, and the round trip of the slowest path.
    pub gap: f64,
    /// The same of three seconds before: what this traffic does by itself.
    pub gap_before: f64,
    /// The same of the call that waited longest, to the server and back.
    pub call_gap: [f64; 2],
    /// Packets of the calls that were sent, lost and came twice, both ways.
    pub sent: [u64; 2],
    /// See `sent`.
    pub lost: [u64; 2],
    /// See `sent`.
    pub twice: [u64; 2],
    /// Pings that were not answered.
    pub pings_lost: usize,
    /// How long the first stream of each way stood still until the end, to the server and back.
    pub streams: [f64; 2],
    /// The longest time in which no stream of a way brought anything, in the three seconds from just before the fault
    /// on (of an upgrade, until the end): what a download's user sees stand. When that began, from the fault on; and
    /// the longest in as long a time before.
    pub bulk: [f64; 2],
    /// See `bulk`.
    pub bulk_at: [f64; 2],
    /// See `bulk`.
    pub bulk_before: [f64; 2],
    /// Both streams brought something in the last two seconds, and nothing wrong.
    pub lives: bool,
    /// Moves, and the delay of the first after the fault.
    pub moves: usize,
    /// See `moves`.
    pub moved_after: f64,
    /// What members refused.
    pub refused: u64,
    /// Bytes that the streams brought in the two seconds after the fault, over those of the two before, both ways.
    pub kept: [f64; 2],
    /// The ping's median before the fault.
    pub ping: f64,
    /// Its 90th percentile in each tenth of a second from the fault on, for a second and a half.
    pub ping_after: Vec<f64>,
    /// Datagrams a second and link that the peer sent to the standby before the fault.
    pub standby: f64,
    /// Claims a second that the owner heard before the fault.
    pub claims: f64,
    /// How often the owner's lease was over before the next claim came, until the fault.
    pub lapses: u64,
}

/// What is judged. Made once for each run.
pub(super) struct Looked<'w> {
    pub world: &'w World,
    /// To the server and back, as all that follows.
    pub calls: [Vec<Ledger>; 2],
    pub ping: HostId,
    pub streams: [HostId; 2],
    /// Until when bulk is looked at, seconds.
    pub over: f64,
}

/// How long it takes, in ms.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// When a step from the fault on begins.
fn step_at(step: u32) -> Time {
    second(FAULT) + STEP * step
}

impl Outcome {
    /// All but what was counted before the fault.
    pub(super) fn judge(looked: &Looked<'_>) -> Self {
        let Looked { world, calls, streams, over, .. } = looked;
        let (from, to) = (second(FAULT - BEFORE), second(END - 1.0));
        let ping: &Ping = world.host(looked.ping);
        let ways = streams.map(|host| &world.host::<ReceiverHost>(host).receivers[..]);
        let receivers = ways.map(|all| &all[0]);
        let bytes = |receiver: &Receiver, from: f64| receiver.bytes_between(second(from), second(from + 2.0));
        let sum = |of: &dyn Fn(&Ledger) -> u64| calls.each_ref().map(|way| way.iter().map(of).sum());
        let call_gap = |way: &Vec<Ledger>| way.iter().map(|call| ms(call.longest_gap(from, to))).fold(0.0, f64::max);
        let stood = ways.map(|all| longest_stand(all, from, second(*over)));
        Outcome {
            gap: ms(ping.longest_gap(from, to)),
            gap_before: ms(ping.longest_gap(second(CALM), from)),
            call_gap: calls.each_ref().map(call_gap),
            sent: sum(&|call| call.sent()),
            lost: sum(&|call| call.sent() - call.arrivals.len() as u64),
            twice: sum(&|call| call.duplicates),
            pings_lost: ping.lost(to - Duration::from_secs(1)),
            streams: receivers.map(|receiver| ms(receiver.longest_gap(from, to))),
            bulk: stood.map(|(time, _)| ms(time)),
            bulk_at: stood.map(|(_, since)| ms(since.since(Time::ZERO)) - FAULT * 1e3),
            bulk_before: ways.map(|all| ms(longest_stand(all, second(CALM), from).0)),
            lives: receivers.iter().all(|receiver| bytes(receiver, END - 2.0) > 0 && receiver.corrupt == 0)
                && calls.iter().flatten().all(|ledger| ledger.corrupt == 0),
            moves: world.moved.len(),
            moved_after: moved_after(world),
            refused: (0..2).map(|member| world.drops(member).of(DropReason::NotOwner)).sum(),
            kept: receivers.map(|receiver| bytes(receiver, FAULT) as f64 / bytes(receiver, FAULT - 2.0).max(1) as f64),
            ping: ms(ping.quantile(second(FAULT - 2.0), second(FAULT), 0.5)),
            ping_after: (0..STEPS).map(|step| ms(ping.quantile(step_at(step), step_at(step + 1), 0.9))).collect(),
            standby: f64::NAN,
            claims: f64::NAN,
            lapses: 0,
        }
    }
}

fn moved_after(world: &World) -> f64 {
    let after = world.moved.iter().find(|(at, _)| *at >= second(FAULT));
    after.map_or(f64::NAN, |(at, _)| ms(at.since(second(FAULT))))
}

/// The longest time from one moment to another in which none of these streams brought anything, and since when, in
/// whole spans of [`BIN`].
fn longest_stand(streams: &[Receiver], from: Time, to: Time) -> (Duration, Time) {
    let bin = |at: Time| (at.as_nanos() / BIN.as_nanos() as u64) as usize;
    let brought = |at: usize| streams.iter().any(|stream| stream.bins.get(at).is_some_and(|bytes| *bytes > 0));
    let (mut longest, mut since) = ((0, bin(from)), bin(from));
    for at in (bin(from)..bin(to)).filter(|at| brought(*at)).chain([bin(to)]) {
        if at - since > longest.0 {
            longest = (at - since, since);
        }
        since = at + 1;
    }
    (BIN * longest.0 as u32, Time::ZERO + BIN * longest.1 as u32)
}
