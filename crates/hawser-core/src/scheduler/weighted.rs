//! The `weighted` scheduler: each path carries a fixed share of the bytes.
//!
//! 1. What any path takes earns every usable path its part, by weight; the path that took pays for all of it.
//! 2. A path may owe one lead at most, so shares hold within a few packets at any moment.
//!
//! Fixed is fixed: a path that cannot carry its share holds the others back. One that does not work has no share.

use super::{PathView, Room, Weight};
use crate::queue::{Choice, FlowView};
use crate::units::{ByteCount, Rate};
use std::time::Duration;

/// A path may be so much ahead of its share, bytes: eight full packets.
const LEAD: ByteCount = ByteCount(12_000);
/// Or what the paths carry together in this time, if that is more: waking takes as long.
const LEAD_TIME: Duration = Duration::from_micros(500);

/// What each path has earned and not yet sent, in bytes. Nothing at first; the session's scheduler owns it.
#[derive(Default)]
pub(super) struct Weighted {
    credit: Vec<f64>,
    /// Which paths share, and by what weights, as `credit` counts.
    shares: Vec<Option<Weight>>,
    lead: ByteCount,
}

impl Weighted {
    /// Nobody owes anything: a path that was away has nothing to catch up.
    pub fn begin_anew(&mut self) {
        self.shares.clear();
    }

    /// Follows paths that came, went, or have another weight. `shares`: of each path its part, if it has one.
    pub fn refresh(&mut self, paths: &[PathView], shares: impl Iterator<Item = Option<Weight>> + Clone) {
        if !shares.clone().eq(self.shares.iter().copied()) {
            self.shares.clear();
            self.shares.extend(shares);
            self.credit.clear();
            self.credit.resize(paths.len(), 0.0);
        }
        let sharing = paths.iter().zip(&self.shares).filter(|(_, share)| share.is_some());
        let rate = sharing.filter_map(|(view, _)| view.rate).map(|rate| rate.0).sum();
        self.lead = LEAD.max(Rate(rate).bytes_in(LEAD_TIME));
    }

    /// Whether `path` takes from `flow`: what its share allows, a packet more at the end.
    pub fn choose(&self, path: usize, flow: &FlowView, room: Room) -> Choice {
        let alone = self.shares.iter().flatten().count() < 2;
        let left = self.credit.get(path).copied().unwrap_or(0.0) + self.lead.0 as f64;
        if alone {
            room.take()
        } else if left > 0.0 {
            let bytes = room.bytes.min(ByteCount(left as u64)).max(flow.head_len);
            Choice::Take { max_bytes: bytes, max_segments: room.segments }
        } else {
            Choice::Skip
        }
    }

    /// `path` took so much.
    pub fn on_taken(&mut self, path: usize, bytes: ByteCount) {
        let parts: f64 = self.shares.iter().flatten().map(|weight| f64::from(weight.get())).sum();
        let bytes = bytes.0 as f64;
        for (credit, weight) in self.credit.iter_mut().zip(&self.shares) {
            *credit += weight.map_or(0.0, |weight| bytes * f64::from(weight.get()) / parts);
        }
        if let Some(credit) = self.credit.get_mut(path) {
            *credit -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::path;
    use crate::scheduler::tests::{ROOM, flow};

    const PACKET: u64 = 1_400;

    fn weighing(parts: &[u8]) -> Vec<PathView> {
        parts.iter().map(|parts| PathView { weight: Weight::new(*parts).expect("not zero"), ..path(50, 10) }).collect()
    }

    /// Offers rounds of packets to the paths in turn, and counts what each took. `able`: how many packets a round.
    fn share(weighted: &mut Weighted, paths: &[PathView], able: &[u64], rounds: u32) -> Vec<u64> {
        let mut took = vec![0; paths.len()];
        weighted.refresh(paths, paths.iter().map(|view| view.usable.then_some(view.weight)));
        for _ in 0..rounds {
            for (at, most) in able.iter().enumerate().filter(|(at, _)| paths[*at].usable) {
                for _ in 0..*most {
                    let Choice::Take { max_bytes, .. } = weighted.choose(at, &flow(1 << 20, 5), ROOM) else {
                        break;
                    };
                    assert!(max_bytes.0 >= PACKET);
                    weighted.on_taken(at, ByteCount(PACKET));
                    took[at] += PACKET;
                }
            }
        }
        took
    }

    #[test]
    fn shares_hold_within_a_few_packets() {
        let table: [(&[u8], &[u64]); 5] = [
            (&[1, 1], &[9, 9]),
            (&[3, 1], &[9, 9]),
            (&[1, 1], &[90, 3]),
            (&[5, 3, 2], &[9, 9, 9]),
            (&[1, 255], &[50, 50]),
        ];
        for (parts, able) in table {
            let paths = weighing(parts);
            let took = share(&mut Weighted::default(), &paths, able, 500);
            let (all, sum): (u64, f64) = (took.iter().sum(), parts.iter().map(|p| f64::from(*p)).sum());
            for (took, parts) in took.iter().zip(parts) {
                let due = all as f64 * f64::from(*parts) / sum;
                let most = (LEAD.0 + PACKET) as f64 * paths.len() as f64;
                assert!((*took as f64 - due).abs() <= most, "{parts} parts of {all}: {took}");
            }
        }
    }

    #[test]
    fn a_path_that_cannot_carry_its_share_holds_the_others_back() {
        let took = share(&mut Weighted::default(), &weighing(&[1, 1]), &[100, 1], 100);
        assert!(took[1] == 100 * PACKET && took[0] <= took[1] + 2 * LEAD.0 + PACKET, "{took:?}");
    }

    #[test]
    fn a_path_that_is_gone_has_no_share_and_nothing_to_catch_up_when_it_returns() {
        let (mut weighted, mut paths) = (Weighted::default(), weighing(&[1, 1]));
        paths[1].usable = false;
        let alone = share(&mut weighted, &paths, &[10, 10], 100);
        assert_eq!(alone, [1_000 * PACKET, 0]);
        paths[1].usable = true;
        let both = share(&mut weighted, &paths, &[10, 10], 100);
        assert!(both[0].abs_diff(both[1]) <= 2 * (LEAD.0 + PACKET), "{both:?}");
    }
}
