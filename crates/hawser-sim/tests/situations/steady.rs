//! Links that stay as they are.

use crate::situations;
use hawser_core::congestion::Kind;
use hawser_core::units::{ByteCount, Time};
use hawser_sim::host::flow::{Demand, Plan};
use hawser_sim::net::spec::mbit_rate;
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::on;
use std::time::Duration;

/// A packet that was lost again and again may come after it was given up.
const A_FEW: f64 = 0.000_2;

/// Thousands of flows at once, in single packets.
fn many_flows(flows: u16) -> Plan {
    Plan { flows, ..Plan::greedy(262_144) }
}

/// TSO super-packets.
fn trains(segments: u16) -> Plan {
    Plan { train: segments, ..Plan::greedy(262_144) }
}

fn udp(mbit: f64) -> Plan {
    Plan { demand: Demand::Pace(mbit_rate(mbit)), size: 1_200, ..Plan::steady(mbit, 1_200) }
}

/// Silent for three seconds, then everything at once.
fn late_burst() -> Plan {
    Plan { from: Time::ZERO + Duration::from_secs(3), demand: Demand::Backlog(ByteCount(262_144)), ..Plan::greedy(0) }
}

/// Mbit/s, and ms that packets take by chance, nothing to so much: the fastest tell nothing of the others. A queue of
/// 1000 packets.
fn overtaking(mbit: f64, ms: f64) -> LinkSpec {
    link(mbit, 0.0).reordering(ms).both(|way| way.queue = ByteCount(1_500_000))
}

situations! {
    one_link: on(&[link(50.0, 20.0)]).share(0.95).ping(2.0, 6.0, 50.0);
    equal: on(&[link(50.0, 20.0), link(50.0, 20.0)]).share(0.95).ping(2.0, 6.0, 50.0);
    equal_downwards: on(&[link(50.0, 20.0), link(50.0, 20.0)]).downwards().share(0.95).ping(2.0, 6.0, 50.0);
    equal_with_cubic: on(&[link(50.0, 20.0), link(50.0, 20.0)]).congestion(Kind::Cubic).share(0.9);
    equal_with_newreno: on(&[link(50.0, 20.0), link(50.0, 20.0)]).congestion(Kind::NewReno).share(0.8);
    unequal: on(&[link(40.0, 20.0), link(10.0, 80.0)]).share(0.9).ping(2.0, 6.0, 50.0);
    ten_to_one: on(&[link(100.0, 20.0), link(10.0, 20.0)]).share(0.9);
    hundred_to_one: on(&[link(100.0, 20.0), link(1.0, 20.0)]).share(0.9);
    slow_and_far_beside_fast: on(&[link(100.0, 20.0), link(5.0, 150.0).jitter(20.0)]).rate(2.0, 6.0, 93.0);
    asymmetric_delay: on(&[link(30.0, 20.0), link(30.0, 120.0)]).lasts(9.0).share(0.85);
    asymmetric_delay_per_direction:
        on(&[link(30.0, 20.0).up(|way| way.delay *= 6), link(30.0, 20.0).down(|way| way.delay *= 6)]).disorder(0.003).share(0.85);
    asymmetric_rate_per_direction: on(&[
        link(50.0, 20.0).down(|way| way.rate = mbit_rate(5.0)),
        link(5.0, 20.0).down(|way| way.rate = mbit_rate(50.0)),
    ]).share(0.9);
    three_links: on(&[link(20.0, 20.0), link(20.0, 30.0), link(20.0, 40.0)]).share(0.9);
    four_links: on(&[link(20.0, 20.0), link(20.0, 30.0), link(20.0, 40.0), link(20.0, 50.0)]).share(0.9);
    jitter_in_order: on(&[link(50.0, 40.0).jitter(10.0), link(50.0, 40.0).jitter(10.0)]).share(0.85);
    jitter_that_reorders: on(&[link(50.0, 40.0).reordering(4.0), link(50.0, 40.0).reordering(4.0)]).disorder(A_FEW).share(0.85);
    heavy_reordering_on_one: on(&[link(30.0, 40.0).reordering(20.0), link(30.0, 40.0)]).share(0.6);
    overtaken_by_far_more_than_the_round_trip: on(&[overtaking(50.0, 70.0)]).lasts(9.0).disorder(0.003).rate(2.0, 9.0, 40.0);
    overtaken_on_both: on(&[overtaking(50.0, 70.0), overtaking(50.0, 70.0)]).lasts(9.0).disorder(0.003).rate(3.0, 9.0, 60.0);
    overtaken_and_lost: on(&[overtaking(20.0, 80.0).loss(0.02)]).lasts(12.0).disorder(0.005).rate(4.0, 12.0, 6.0);
    as_fast_as_its_average_packet: on(&[link(40.0, 40.0), link(40.0, 10.0).reordering(100.0)]).disorder(0.003).ping(3.0, 6.0, 60.0);
    one_percent_lost: on(&[link(50.0, 20.0).loss(0.01), link(50.0, 20.0).loss(0.01)]).disorder(A_FEW).share(0.9);
    three_percent_lost: on(&[link(50.0, 20.0).loss(0.03), link(50.0, 20.0).loss(0.03)]).disorder(A_FEW).share(0.85);
    bursts_lost: on(&[link(50.0, 20.0).bursts(0.002, 0.2), link(50.0, 20.0).bursts(0.002, 0.2)]).share(0.85);
    acknowledgements_lost:
        on(&[link(50.0, 20.0), link(50.0, 20.0)].map(|l| l.down(|way| way.loss = hawser_sim::net::Loss::Random(0.2)))).share(0.85);
    duplicates: on(&[link(50.0, 20.0).duplicates(0.1), link(50.0, 20.0).duplicates(0.1)]).share(0.9);
    tiny_buffers: on(&[link(50.0, 20.0).queue_ms(2.0), link(50.0, 20.0).queue_ms(2.0)]).disorder(A_FEW).share(0.8);
    deep_buffers: on(&[link(20.0, 20.0).queue_ms(2_000.0), link(20.0, 20.0).queue_ms(2_000.0)]).share(0.9).ping(2.0, 6.0, 60.0);
    three_hundred_ms: on(&[link(20.0, 300.0)]).lasts(12.0).share(0.85);
    // Its rate goes up and down over some seconds: 0.74 to 0.78 in the mean of a minute.
    three_hundred_ms_beside_twenty: on(&[link(20.0, 300.0), link(20.0, 20.0)]).lasts(30.0).share_between(6.0, 30.0, 0.72);
    // The sparse flow and the pings take their share first.
    slowest_link: on(&[link(1.0, 100.0)]).lasts(20.0).share(0.55);
    outer_ipv6: on(&[link(50.0, 20.0).ipv6(), link(50.0, 20.0).ipv6()]).share(0.9);
    outer_ipv4_and_ipv6: on(&[link(50.0, 20.0), link(50.0, 20.0).ipv6()]).share(0.9);
    thousands_of_flows: on(&[link(50.0, 20.0), link(50.0, 20.0)]).bulk(many_flows(4_000)).share(0.8);
    super_packets: on(&[link(100.0, 20.0), link(100.0, 20.0)]).bulk(trains(40)).share(0.9);
    super_packets_with_loss: on(&[link(50.0, 20.0).loss(0.02), link(50.0, 40.0)]).bulk(trains(40)).share(0.85);
    udp_below_capacity: on(&[link(30.0, 20.0), link(30.0, 40.0)]).bulk(udp(20.0)).rate(1.0, 6.0, 19.0);
    idle_then_burst: on(&[link(50.0, 20.0), link(50.0, 20.0)]).bulk(late_burst()).share_between(3.5, 6.0, 0.85);
}
