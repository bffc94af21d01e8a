//! The model against what is known of TCP, on one link without portals.

use super::hosts::{ReceiverHost, SenderHost};
use super::sender::Story;
use super::{Congestion, Transfer};
use crate::direct::Direct;
use crate::family::stationary;
use crate::judge::{Question, bulk};
use crate::net::{LinkSpec, Loss, link};
use crate::situation::{address, second};
use crate::world::{Act, LOCAL, REMOTE};
use Congestion::{Bbr, Cubic};
use hawser_core::units::Time;

/// The share of a link's bytes that is TCP's data: 52 bytes of headers in 1500.
const DATA: f64 = 1448.0 / 1500.0;

/// What a transfer left.
struct Seen {
    world: Direct,
    receiver: crate::host::HostId,
    story: Story,
}

impl Seen {
    fn mbit(&self, from: f64, to: f64) -> f64 {
        let receiver = &self.world.host::<ReceiverHost>(self.receiver).receivers[0];
        receiver.bytes_between(second(from), second(to)) as f64 * 8e-6 / (to - from)
    }

    fn done(&self) -> Option<Time> {
        self.world.host::<ReceiverHost>(self.receiver).receivers[0].done
    }
}

/// An upload over a link for some seconds; something may happen to the way up.
fn over(link: &LinkSpec, plan: Transfer, seconds: f64, acts: &[(f64, Act)], seed: u64) -> Seen {
    let mut world = Direct::new(link, seed);
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    let sender = world.add_host(LOCAL, ends[LOCAL], SenderHost::new(ends[LOCAL], ends[REMOTE], &[plan], seed));
    let receiver = world.add_host(REMOTE, ends[REMOTE], ReceiverHost::new(ends[REMOTE], ends[LOCAL], &[plan], seed));
    acts.iter().for_each(|(at, act)| world.at(second(*at), act.clone()));
    world.run_until(second(seconds));
    assert_eq!(world.host::<ReceiverHost>(receiver).receivers[0].corrupt, 0, "every byte is right");
    let story = world.host::<SenderHost>(sender).senders[0].story;
    Seen { world, receiver, story }
}

fn stream(link: &LinkSpec, congestion: Congestion, seconds: f64) -> Seen {
    over(link, Transfer::bulk(second(0.0), Time::NEVER).by(congestion), seconds, &[], 1)
}

#[test]
fn a_link_of_one_bandwidth_delay_product_is_filled() {
    for (congestion, least) in [(Cubic, 0.95), (Bbr, 0.9)] {
        for (mbit, trip) in [(20.0, 40.0), (5.0, 100.0), (100.0, 20.0)] {
            let seen = stream(&link(mbit, trip), congestion, 32.0);
            let share = seen.mbit(2.0, 32.0) / (mbit * DATA);
            println!("{congestion:?} {mbit} Mbit/s {trip} ms: {share:.3} {:?}", seen.story);
            assert!(share >= least, "{congestion:?} at {mbit} Mbit/s, {trip} ms: {share:.3}");
            assert_eq!(seen.story.timeouts, 0, "{:?}", seen.story);
        }
    }
}

#[test]
fn one_per_cent_lost_does_nothing_to_bbr_and_leaves_cubic_what_mathis_says() {
    let lossy = link(20.0, 40.0).up(|way| way.loss = Loss::Random(0.01));
    let held = stream(&lossy, Bbr, 32.0).mbit(2.0, 32.0);
    // Mathis, Semke, Mahdavi, Ott 1997: MSS / RTT * 1.22 / sqrt(p), and CUBIC's Reno-friendly region the same by
    // design.
    let mathis = 1448.0 * 8e-6 / 0.040 * 1.22 / 0.01f64.sqrt();
    let cubic = stream(&lossy, Cubic, 62.0).mbit(2.0, 62.0);
    println!("bbr {held:.2}, cubic {cubic:.2}, mathis {mathis:.2}");
    assert!(held >= 0.9 * 20.0 * DATA, "BBR has {held:.2}");
    assert!((0.7 * mathis..1.5 * mathis).contains(&cubic), "CUBIC has {cubic:.2}, Mathis {mathis:.2}");
}

#[test]
fn a_burst_is_repaired_without_a_timeout() {
    // 30 ms of 20 Mbit/s vanish.
    let acts = [(5.0, Act::CutUp(0)), (5.03, Act::Heal(0))];
    for congestion in [Cubic, Bbr] {
        let plan = Transfer::bulk(second(0.0), Time::NEVER).by(congestion);
        let seen = over(&link(20.0, 40.0), plan, 10.0, &acts, 1);
        println!("{congestion:?} {:?}", seen.story);
        assert_eq!(seen.story.timeouts, 0, "{congestion:?}: {:?}", seen.story);
        assert!(seen.story.recoveries > 0 && seen.story.resent >= 45, "{congestion:?}: {:?}", seen.story);
        assert!(seen.mbit(5.5, 10.0) > 0.8 * 20.0 * DATA, "{congestion:?}: {:.2}", seen.mbit(5.5, 10.0));
    }
}

#[test]
fn reordering_of_5_ms_does_not_bring_it_down() {
    for congestion in [Cubic, Bbr] {
        let seen = stream(&link(20.0, 40.0).up(|way| way.queue.0 *= 2).reordering(5.0), congestion, 22.0);
        println!("{congestion:?} {:.2} {:?}", seen.mbit(2.0, 22.0), seen.story);
        assert!(seen.mbit(2.0, 22.0) >= 0.85 * 20.0 * DATA, "{congestion:?}: {:.2}", seen.mbit(2.0, 22.0));
    }
}

#[test]
fn after_a_stall_of_3_s_it_goes_on() {
    let acts = [(5.0, Act::StallUp(0)), (8.0, Act::Resume(0))];
    for congestion in [Cubic, Bbr] {
        let plan = Transfer::bulk(second(0.0), Time::NEVER).by(congestion);
        let seen = over(&link(20.0, 40.0), plan, 14.0, &acts, 1);
        println!("{congestion:?} {:.2} {:.2} {:?}", seen.mbit(8.0, 9.0), seen.mbit(9.0, 14.0), seen.story);
        assert_eq!(seen.mbit(5.1, 8.0), 0.0);
        assert!(seen.story.timeouts > 0, "{:?}", seen.story);
        assert!(seen.mbit(9.0, 14.0) >= 0.9 * 20.0 * DATA, "{congestion:?}: {:.2}", seen.mbit(9.0, 14.0));
    }
}

#[test]
fn a_short_transfer_takes_its_round_trips() {
    // Round trips with the handshake: the sender's SYN and its answer, ten segments, twenty, forty ...
    for (bytes, asked, trips) in
        [(10_000, false, 1.5), (10_000, true, 2.0), (30_000, false, 2.5), (300_000, false, 5.5)]
    {
        let plan = Transfer { asked, ..Transfer::of(bytes, second(1.0)) };
        let seen = over(&link(1_000.0, 100.0), plan, 10.0, &[], 1);
        let took = seen.done().expect("it is done").since(second(1.0)).as_secs_f64() / 0.1;
        assert!((took - trips).abs() < 0.15, "{bytes} bytes took {took:.2} round trips, not {trips}");
    }
}

#[test]
fn the_last_segments_are_repaired_by_a_probe() {
    let acts = [(1.212, Act::CutUp(0)), (1.25, Act::Heal(0))];
    let seen = over(&link(10.0, 100.0), Transfer::of(30_000, second(1.0)), 5.0, &acts, 1);
    let took = seen.done().expect("it is done").since(second(1.0));
    println!("{took:?} {:?}", seen.story);
    assert_eq!((seen.story.timeouts, seen.story.probes > 0), (0, true), "{:?}", seen.story);
}

#[test]
fn what_the_ingress_queue_drops_is_repaired_without_a_timeout() {
    // Each had one while the repair's timeout began with the last acknowledgement: the repair waits behind a long
    // queue.
    for seed in [3_018, 3_022, 3_067] {
        let network = stationary(seed);
        let story = bulk::run(network.bond(), &network, Question { congestion: Cubic, down: true }).story;
        println!("{} {story:?}", network.name);
        assert_eq!((story.timeouts, story.recoveries > 0), (0, true), "{}", network.name);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let lossy = link(20.0, 40.0).loss(0.01).jitter(3.0);
    for congestion in [Cubic, Bbr] {
        let run = |seed| {
            let plan = Transfer::bulk(second(0.0), Time::NEVER).by(congestion);
            let seen = over(&lossy, plan, 10.0, &[], seed);
            (seen.world.host::<ReceiverHost>(seen.receiver).receivers[0].bins.clone(), seen.story)
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
