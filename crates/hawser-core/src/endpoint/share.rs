//! What each peer may take of the packet thread's time.
//!
//! All peers' datagrams wait in the same sockets: one whose datagrams are dear, or many, fills them, and the kernel
//! drops those of the others. While none are dropped, nothing is measured and nobody limited. The driver tells after
//! every window of time how the sockets stood ([`Shares::on_window`]):
//!
//! 1. Once datagrams were dropped, it measures what they cost, and charges that to the peer whose label they bear
//!    ([`Shares::charge`]).
//! 2. After each further window in which the sockets never were empty (a standing queue, RFC 8289 section 3.2), the
//!    limit becomes half of what the greediest took, but no less than what peers took in the mean: only those above the
//!    mean ever meet it. A peer alone takes nothing from others.
//! 3. After each other it grows by an eighth, until it limits nobody any more.
//! 4. A peer that took as much in this window is not served before the next ([`Shares::admits`]).
//!
//! Halving and slow growth are AIMD's (Chiu and Jain, 1989): two that want all come to have the same.

use crate::units::PeerId;
use std::time::Duration;

/// The limit at first: nobody can take more of a window than its length (`JUDGE_EVERY` of the driver, 10 ms).
const WHOLE: Duration = Duration::from_millis(10);
/// A limit that has grown beyond this is forgotten, 0.2 s after the last standing queue, and with it the cost of
/// measuring.
const FORGOTTEN: Duration = Duration::from_millis(80);

/// How the sockets stood in a window, the worst first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Load {
    /// They never were empty, and the kernel dropped datagrams.
    Overflow,
    /// They never were empty.
    Standing,
    /// They were empty now and then.
    KeepsUp,
}

/// The peers' shares. Nobody is limited at first; the endpoint owns it.
#[derive(Default)]
pub(super) struct Shares {
    /// What a peer may take in a window; `None` while nothing is measured.
    limit: Option<Duration>,
    /// What each peer took in this window, by its id.
    taken: Vec<Duration>,
    /// Whose the last datagram was.
    last: Option<PeerId>,
}

impl Shares {
    /// Whether the driver is to measure what datagrams cost.
    pub fn measures(&self) -> bool {
        self.limit.is_some()
    }

    /// Step 1: what the datagrams since the last charge cost, to the peer of the last of them.
    pub fn charge(&mut self, time: Duration) {
        let Some(PeerId(peer)) = self.last.take() else { return };
        let place = peer as usize;
        if self.taken.len() <= place {
            self.taken.resize(place + 1, Duration::ZERO);
        }
        self.taken[place] += time;
    }

    /// Steps 2 and 3: a window is over.
    pub fn on_window(&mut self, load: Load) {
        let takers = self.taken.iter().filter(|taken| !taken.is_zero()).count() as u32;
        let most = self.taken.iter().max().copied().unwrap_or_default();
        let mean = self.taken.iter().sum::<Duration>().checked_div(takers).unwrap_or_default();
        self.limit = match self.limit {
            None => (load == Load::Overflow).then_some(WHOLE),
            Some(limit) if load == Load::KeepsUp => Some(limit + limit / 8).filter(|limit| *limit < FORGOTTEN),
            Some(limit) if takers > 1 => Some((limit.min(most) / 2).max(mean)),
            Some(limit) => Some(limit),
        };
        self.taken.fill(Duration::ZERO);
    }

    /// Step 4: whether a datagram of this peer's label is worth opening now.
    pub fn admits(&mut self, peer: PeerId) -> bool {
        self.last = Some(peer);
        self.would_admit(peer)
    }

    /// The same of what is not charged yet.
    pub fn would_admit(&self, peer: PeerId) -> bool {
        let Some(limit) = self.limit else { return true };
        self.taken.get(peer.0 as usize).is_none_or(|taken| *taken < limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEDY: PeerId = PeerId(0);
    const MODEST: PeerId = PeerId(1);

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// A window in which these peers want so much of the thread's time, in a hundred turns. Gives what each got.
    /// Datagrams are dropped where together they got more than nine tenths of it, and from four fifths on they wait.
    fn window(shares: &mut Shares, wants: &[(PeerId, Duration)]) -> Vec<Duration> {
        let mut got = vec![Duration::ZERO; wants.len()];
        for _ in 0..100 {
            for (place, (peer, want)) in wants.iter().enumerate() {
                if shares.admits(*peer) {
                    got[place] += *want / 100;
                    shares.charge(*want / 100);
                }
            }
        }
        shares.on_window(match got.iter().sum::<Duration>() {
            taken if taken > us(9_000) => Load::Overflow,
            taken if taken > us(8_000) => Load::Standing,
            _ => Load::KeepsUp,
        });
        got
    }

    #[test]
    fn nobody_is_limited_or_measured_while_nothing_is_dropped_even_if_it_waits() {
        let mut shares = Shares::default();
        for _ in 0..50 {
            assert_eq!(window(&mut shares, &[(GREEDY, us(8_000)), (MODEST, us(500))]), [us(8_000), us(500)]);
            assert!(!shares.measures());
        }
    }

    #[test]
    fn a_peer_alone_has_all_the_time_there_is() {
        let mut shares = Shares::default();
        for _ in 0..50 {
            assert_eq!(window(&mut shares, &[(GREEDY, us(9_500))]), [us(9_500)]);
        }
        assert!(shares.measures());
    }

    #[test]
    fn the_greedy_one_gives_way_and_is_not_shut_out_and_the_modest_one_notices_nothing() {
        let (mut shares, mut greedy, mut full) = (Shares::default(), Duration::ZERO, 0);
        for number in 0..1_000 {
            let got = window(&mut shares, &[(GREEDY, us(30_000)), (MODEST, us(1_000))]);
            assert_eq!(got[1], us(1_000), "in window {number}");
            greedy += got[0];
            full += u32::from(got.iter().sum::<Duration>() > us(8_000));
        }
        assert!(greedy > us(4_000) * 1_000, "{greedy:?}");
        assert!(full < 200, "{full} windows of 1,000 were full");
    }

    #[test]
    fn two_that_want_all_get_the_same() {
        let (mut shares, mut sums) = (Shares::default(), [Duration::ZERO; 2]);
        for _ in 0..1_000 {
            let got = window(&mut shares, &[(GREEDY, us(20_000)), (MODEST, us(5_000))]);
            sums = [sums[0] + got[0], sums[1] + got[1]];
        }
        assert!(sums[0].abs_diff(sums[1]) < (sums[0] + sums[1]) / 8, "{sums:?}");
    }

    #[test]
    fn the_limit_goes_when_the_flood_does() {
        let mut shares = Shares::default();
        (0..20).for_each(|_| drop(window(&mut shares, &[(GREEDY, us(30_000)), (MODEST, us(1_000))])));
        assert!(window(&mut shares, &[(GREEDY, us(30_000))])[0] < us(9_000));
        (0..50).for_each(|_| drop(window(&mut shares, &[(MODEST, us(1_000))])));
        assert!(!shares.measures());
    }
}
