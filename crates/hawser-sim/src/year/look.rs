//! Steps 4 and 5: portals are held against their bounds; what both have is used; at rest all is accounted for.

use super::Year;
use super::lines::LINES;
use super::watch::{self, LABELS_MAX, SETTLED, TRAINS_MAX};
use crate::bounds;
use crate::world::{LOCAL, REMOTE};
use hawser_core::drops::DropReason;
use hawser_core::endpoint::Snapshot;
use hawser_core::units::Time;
use std::time::Duration;

/// A call over a whole line has no longer gap, nor do both portals use no such line for longer.
const GAP_MAX: Duration = Duration::from_secs(2);
/// Nothing wrong and nothing said for this long: nothing is under way. Packets wait for a path for less (10 s), and are
/// retransmitted for less (six probe timeouts).
const REST: Duration = Duration::from_secs(45);
/// Drops of inner packets that are for good.
const FINAL: [DropReason; 10] = [
    DropReason::BadInner,
    DropReason::NoPeer,
    DropReason::NoSession,
    DropReason::QueueFull,
    DropReason::Codel,
    DropReason::GaveUp,
    DropReason::TooOld,
    DropReason::StoreFull,
    DropReason::StoreShare,
    DropReason::SessionEnded,
];
impl Year {
    /// Step 4.
    pub(super) fn look(&mut self) {
        let now = self.world.now;
        self.nonces.borrow_mut().forget(now);
        self.live.clone().iter().for_each(|fault| self.note_wrong(fault));
        let mut snapshots = [None, None];
        for side in [LOCAL, REMOTE] {
            let portal = &mut self.world.portals[side];
            portal.told.clear();
            if portal.stopped {
                continue;
            }
            let name = ["the local portal", "the remote portal"][side];
            let snapshot = bounds::check(name, &mut portal.endpoint, portal.clock.show(now), TRAINS_MAX);
            assert!(snapshot.labels <= LABELS_MAX, "{name} knows {} labels", snapshot.labels);
            assert_eq!(snapshot.drops.of(DropReason::BadFrame), 0, "{name} refuses what the other one says");
            let held = snapshot.peers.iter().flatten().map(|session| session.held.0).sum();
            self.report.most[0] = self.report.most[0].max(snapshot.trains.0);
            self.report.most[1] = self.report.most[1].max(held);
            snapshots[side] = Some(snapshot);
        }
        assert_eq!(self.world.unclaimed, 0, "inner packets for nobody");
        self.world.strays.clear();
        if !self.live.is_empty() || !self.orders.borrow().is_quiet(now) {
            self.quiet_since = now;
        }
        self.quiet_since = self.quiet_since.max(self.orders.borrow().call_until.min(now));
        self.count_calm();
        if let [Some(local), Some(remote)] = &snapshots {
            self.look_at_paths(local, remote);
            self.rest([local, remote]);
        }
    }

    /// A line that was whole for long enough is used by both, and calls go on.
    fn look_at_paths(&mut self, local: &Snapshot, remote: &Snapshot) {
        let now = self.world.now;
        let whole = self.wrong_until.map(|until| now.since(until) >= SETTLED);
        let calls = self.orders.borrow().call_until > now && now.since(self.call_since) >= SETTLED;
        if !calls || !whole.contains(&true) || now.since(self.general_until) < SETTLED {
            self.unused_since = now;
            return;
        }
        self.report.looks += 1;
        let used = watch::live_lines(local, remote);
        if (0..LINES.len()).any(|place| whole[place] && used[place]) {
            self.unused_since = now;
        }
        // One that is suspected is so for a round trip or two.
        let waits = now.since(self.unused_since);
        assert!(waits <= GAP_MAX, "at {now:?} whole lines {whole:?}, used {used:?}:\n{local:?}\n{remote:?}");
        let gaps = self.account.borrow().last_call.map(|last| now.since(last));
        assert!(
            gaps.iter().all(|gap| *gap <= GAP_MAX),
            "at {now:?} a call over {whole:?} waits for {gaps:?}: {:?}",
            self.live
        );
    }

    /// Step 5.
    fn rest(&mut self, snapshots: [&Snapshot; 2]) {
        let now = self.world.now;
        if now.since(self.quiet_since) < REST {
            return;
        }
        let lost = self.account.borrow_mut().close();
        self.report.rests += 1;
        for side in [LOCAL, REMOTE] {
            let trains = snapshots[side].trains;
            assert_eq!(trains.0, 0, "at {now:?} side {side} holds trains at rest");
            let all = self.drops(side);
            let counted = FINAL.iter().map(|reason| all[*reason as usize].1).sum::<u64>();
            let since = counted - std::mem::replace(&mut self.settled[side], counted);
            assert!(
                lost[side] <= since,
                "at {now:?} side {side} lost {} packets and counted {since}: {all:?}",
                lost[side]
            );
        }
    }

    /// All that the portals of a side have dropped, by reason.
    pub(super) fn drops(&self, side: usize) -> Vec<(&'static str, u64)> {
        let present = self.world.portals[side].endpoint.snapshot(Time::ZERO).drops;
        present.iter().zip(self.dropped[side]).map(|((name, now), before)| (name, now + before)).collect()
    }

    /// A portal is about to lose its counters.
    pub(super) fn keep_drops(&mut self, side: usize) {
        let present = self.world.portals[side].endpoint.snapshot(Time::ZERO).drops;
        present.iter().zip(&mut self.dropped[side]).for_each(|((_, now), sum)| *sum += now);
    }

    /// Bytes that each line has carried.
    pub(super) fn carried(&self) -> [u64; LINES.len()] {
        LINES.map(|line| {
            let link = &self.world.links[line];
            link.up.counters.sent_bytes + link.down.counters.sent_bytes
        })
    }

    pub(super) fn count_idle(&mut self) {
        let Some(since) = self.idle_from.take() else { return };
        self.add_idle(0, since);
    }

    /// Minutes of idle nights in which nothing was wrong, nor lately.
    fn count_calm(&mut self) {
        let looked = (self.world.now, self.carried());
        let since = std::mem::replace(&mut self.looked, looked);
        if self.idle_from.is_some_and(|(from, _)| from <= since.0) && self.quiet_since + REST <= since.0 {
            self.add_idle(1, since);
        }
    }

    fn add_idle(&mut self, which: usize, (from, before): (Time, [u64; LINES.len()])) {
        let (carried, idle) = (self.carried(), &mut self.report.idle[which]);
        idle.time += self.world.now.since(from);
        idle.bytes.iter_mut().zip(carried.iter().zip(before)).for_each(|(sum, (now, before))| *sum += now - before);
    }
}
