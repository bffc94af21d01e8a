//! What an emulated link promises, measured with packets of the kernel's own stack. Needs root.

use std::time::Duration;

use crate::common::measured::measured;
use crate::common::{ADDRESS_A, ADDRESS_B, between, ms, stretches, thread_cpu};
use hawser_wire::traffic::{Sample, UdpFlow, UdpReport};
use hawser_wire::{
    Direction, EmulatedLink, Jitter, LinkSpec, Loss, Moment, Probability, QueueDepth, Rate, Spread, Way,
};

/// UDP payload of a 1500-byte packet.
const FULL: usize = 1472;
/// UDP payload of a 100-byte packet.
const SMALL: usize = 72;

/// A flow over a link, one way.
fn flow(link: &EmulatedLink, way: Way, megabits: f64, payload: usize, duration: Duration) -> UdpFlow {
    let [a, b] = link.ends();
    let (from, to, address) = match way {
        Way::AToB => (a, b, ADDRESS_B),
        Way::BToA => (b, a, ADDRESS_A),
    };
    UdpFlow {
        from: from.namespace.clone(),
        to: to.namespace.clone(),
        destination: format!("{address}:9000").parse().expect("an address"),
        payload,
        rate: Rate::mbit(megabits),
        duration,
        linger: ms(150),
    }
}

fn run(link: &EmulatedLink, way: Way, megabits: f64, payload: usize, duration: Duration) -> UdpReport {
    flow(link, way, megabits, payload, duration).run().expect("the flow runs")
}

fn link(direction: &Direction) -> EmulatedLink {
    let (a, b) = between("fid");
    EmulatedLink::new(LinkSpec::symmetric("fidelity", a, b, direction)).expect("the link starts")
}

#[track_caller]
fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value:.3}, expected {expected:.3} within {tolerance:.3}");
}

#[test]
fn rate_is_within_one_percent_each_way_apart() {
    measured(|| {
        let (a, b) = between("rate");
        // Queues that a sender's pause does not empty.
        let mut spec = LinkSpec::symmetric("rate", a, b, &Direction::shaped(100.0, ms(0), ms(60)));
        spec.b_to_a = Direction::shaped(20.0, ms(5), ms(60));
        let link = EmulatedLink::new(spec).expect("the link starts");
        for (way, rate) in [(Way::AToB, 100.0), (Way::BToA, 20.0)] {
            let report = run(&link, way, rate * 1.3, FULL, ms(800));
            let received = report.steady_rate().expect("packets arrive") / 1e6;
            assert_near("Mbit/s", received, rate, rate * 0.01);
        }
    });
}

#[test]
fn rate_counts_the_layer_2_overhead() {
    measured(|| {
        let link = link(&Direction { overhead: 38, ..Direction::shaped(20.0, ms(0), ms(50)) });
        let report = run(&link, Way::AToB, 25.0, SMALL, ms(600));
        let received = report.steady_rate().expect("packets arrive") / 1e6;
        assert_near("Mbit/s", received, 20.0 * 100.0 / 138.0, 20.0 * 0.01);
    });
}

#[test]
fn half_a_gigabit_of_full_packets_crosses() {
    measured(|| {
        let link = link(&Direction::shaped(500.0, ms(2), ms(60)));
        let report = run(&link, Way::AToB, 560.0, FULL, ms(700));
        let received = report.steady_rate().expect("packets arrive") / 1e6;
        assert_near("Mbit/s", received, 500.0, 5.0);
    });
}

#[test]
fn delay_is_within_a_millisecond_idle_and_loaded_at_100_mbit() {
    measured(|| {
        let link = link(&Direction::shaped(100.0, ms(10), ms(50)));
        // A 100-byte packet takes 8 µs, a full one 120 µs. What waits after a sender's pause on the loaded link is gone
        // after nine times as long: that is not to be half of the packets.
        for (megabits, payload, on_wire, duration) in [(0.08, SMALL, 0.008, ms(600)), (90.0, FULL, 0.12, ms(1200))] {
            let delays = run(&link, Way::AToB, megabits, payload, duration).delays();
            let least = delays.min().expect("packets arrive");
            assert!(least >= 10.0 + on_wire - 0.7, "{least} ms is early at {megabits} Mbit/s");
            let median = delays.median().expect("packets arrive");
            assert_near("median delay in ms", median, 10.0 + on_wire, 1.0);
        }
    });
}

#[test]
fn the_longest_wait_is_the_queues_depth() {
    measured(|| {
        let link = link(&Direction::shaped(40.0, ms(5), ms(60)));
        let report = run(&link, Way::AToB, 60.0, FULL, ms(700));
        // It is full after 120 ms: eight packets of ten wait for as long as that. The last in a hundred may have waited
        // for the machine, too.
        let most = report.delays().percentile(90.0).expect("packets arrive");
        assert_near("90th percentile in ms", most, 65.0, 2.0);
        let counters = link.counters(Way::AToB);
        assert_near("counted ms", counters.queue_delay_most.as_secs_f64() * 1e3, 60.0, 1.0);
        assert_near("bytes", counters.queue_bytes_most as f64, 300_000.0, 1500.0);
        assert_eq!(counters.dropped_by_queue, report.lost(), "{counters:?}");
        assert_eq!(counters.packets_in, report.sent);
        assert_eq!(counters.packets_out, report.sent - report.lost());
        assert_eq!(counters.queue_packets, 0);
    });
}

#[test]
fn a_queue_of_few_packets_keeps_the_rate_and_the_limit() {
    measured(|| {
        // The queue lasts for 2.4 ms: where the sender waits for longer, the rate is not kept. Most packets know
        // nothing of that.
        let link = link(&Direction { queue: QueueDepth::Packets(4), ..Direction::shaped(20.0, ms(1), ms(0)) });
        let report = run(&link, Way::AToB, 40.0, FULL, ms(500));
        let counters = link.counters(Way::AToB);
        assert!(counters.queue_bytes_most <= 6000, "{counters:?}");
        let took = stretches(&report, 50).into_iter().collect::<Sample>().median().expect("packets arrive");
        assert_near("ms for 50 packets", took, 30.0, 0.9);
    });
}

#[test]
fn jitter_without_reordering_keeps_order_and_mean() {
    measured(|| {
        for (spread, most) in [(Spread::Uniform, 10.0), (Spread::Normal, 30.0)] {
            let jitter = Jitter { amplitude: ms(10), spread, reorder: false };
            let link = link(&Direction { delay: ms(40), jitter: Some(jitter), seed: 3, ..Direction::default() });
            let report = run(&link, Way::AToB, 2.0, SMALL, ms(1000));
            let delays = report.delays();
            assert_eq!((report.overtaken(), report.lost()), (0, 0));
            assert_near("mean", delays.mean().expect("some"), 40.0, 4.0);
            let (low, high) = (delays.percentile(1.0).expect("some"), delays.percentile(99.0).expect("some"));
            assert!(low >= 40.0 - most - 0.5 && high <= 40.0 + most + 1.0, "{low} to {high}");
            assert!(high - low >= 8.0, "{low} to {high}: that is no jitter");
        }
    });
}

#[test]
fn jitter_with_reordering_reorders_around_the_mean() {
    measured(|| {
        let jitter = Jitter { amplitude: ms(10), spread: Spread::Uniform, reorder: true };
        let link = link(&Direction { delay: ms(20), jitter: Some(jitter), ..Direction::default() });
        let report = run(&link, Way::AToB, 1.0, SMALL, ms(1200));
        let delays = report.delays();
        assert!(report.overtaken() > report.arrivals.len() / 4, "{}", report.overtaken());
        assert_near("mean", delays.mean().expect("some"), 20.0, 1.0);
        assert_near("1st percentile", delays.percentile(1.0).expect("some"), 10.2, 1.0);
        assert_near("99th percentile", delays.percentile(99.0).expect("some"), 29.8, 1.2);
    });
}

#[test]
fn loss_and_duplicates_lie_within_what_chance_allows() {
    measured(|| {
        let probability = 0.05;
        let link = link(&Direction {
            loss: Loss::percent(5.0).expect("a percentage"),
            duplicate: Probability::new(probability).expect("a probability"),
            seed: 11,
            ..Direction::default()
        });
        let report = run(&link, Way::AToB, 16.0, SMALL, ms(800));
        let counters = link.counters(Way::AToB);
        assert_eq!((counters.lost, counters.duplicated), (report.lost(), report.duplicates()));
        // 99.9 % of a binomial's draws lie within 3.29 standard deviations.
        let allowed = |count: u64| 3.29 * (count as f64 * probability * (1.0 - probability)).sqrt();
        let (sent, carried) = (report.sent, report.sent - report.lost());
        assert_near("lost", report.lost() as f64, sent as f64 * probability, allowed(sent));
        assert_near("twice", report.duplicates() as f64, carried as f64 * probability, allowed(carried));
    });
}

#[test]
fn packets_longer_than_the_longest_vanish() {
    measured(|| {
        let link = link(&Direction { longest: Some(1400), ..Direction::default() });
        let large = run(&link, Way::AToB, 1.0, FULL, ms(100));
        assert_eq!(large.lost(), large.sent);
        assert_eq!(link.counters(Way::AToB).too_long, large.sent);
        assert_eq!(run(&link, Way::AToB, 1.0, 1400 - 28, ms(100)).lost(), 0);
    });
}

#[test]
fn a_running_link_takes_a_new_rate_delay_and_loss_at_once() {
    measured(|| {
        let link = link(&Direction::shaped(50.0, ms(10), ms(50)));
        let running = flow(&link, Way::AToB, 60.0, FULL, ms(1500)).start().expect("the flow starts");
        std::thread::sleep(ms(500));
        let slower = Moment::now();
        link.set(Way::AToB, |way| way.rate = Some(Rate::mbit(10.0))).expect("the rate changes");
        let is_slower = Moment::now();
        std::thread::sleep(ms(500));
        let faster = Moment::now();
        link.set(Way::AToB, |way| {
            way.rate = Some(Rate::mbit(30.0));
            way.delay = ms(30);
        })
        .expect("rate and delay change");
        let is_faster = Moment::now();
        let report = running.finish().expect("the flow runs");
        let (first, last) = (report.arrivals[0].received, report.arrivals[report.arrivals.len() - 1].sent);
        let phases =
            [(first + ms(50)..slower, 50.0), (is_slower + ms(100)..faster, 10.0), (is_faster + ms(150)..last, 30.0)];
        for (phase, rate) in phases {
            let arrivals =
                report.arrivals.iter().filter(|arrival| phase.contains(&arrival.received)).copied().collect();
            let part = UdpReport { arrivals, packet_bytes: report.packet_bytes, ..UdpReport::default() };
            assert_near("Mbit/s", part.steady_rate().expect("packets arrive") / 1e6, rate, rate * 0.04);
        }
        assert_eq!(report.overtaken(), 0);
        link.set(Way::AToB, |way| way.loss = Loss::Random(Probability::ALWAYS)).expect("the loss changes");
        let all = run(&link, Way::AToB, 1.0, FULL, ms(60));
        assert_eq!(all.lost(), all.sent);
    });
}

#[test]
fn equal_seeds_give_equal_fates() {
    measured(|| {
        let fates = |seed| {
            let link =
                link(&Direction { loss: Loss::percent(20.0).expect("a percentage"), seed, ..Direction::default() });
            let report = run(&link, Way::AToB, 4.0, SMALL, ms(100));
            report.arrivals.iter().map(|arrival| arrival.number).collect::<Vec<_>>()
        };
        assert_eq!(fates(5), fates(5));
        assert_ne!(fates(5), fates(6));
    });
}

#[test]
fn the_thread_costs_little_at_100_mbit() {
    measured(|| {
        // A sender's pause takes 49 times as long to be made up for.
        let link = link(&Direction::shaped(100.0, ms(10), ms(100)));
        let report = run(&link, Way::AToB, 98.0, FULL, ms(1000));
        let cost = thread_cpu("wire-fidelity");
        assert_eq!(report.lost(), 0);
        assert!(cost < Duration::from_millis(200), "{cost:?} for a second of 98 Mbit/s");
        println!("the link's thread took {cost:?} for a second of 98 Mbit/s");
    });
}
