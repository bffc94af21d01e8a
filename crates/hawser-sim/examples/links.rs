//! The links of docs/results/links.md in the simulator: what a download carries once it runs, and with each law off.
//!
//! `cargo run --release -p hawser-sim --example links -- [--case three] [--seeds 3] [--laws all|none|a,b]
//!  [--weights 0.1,0.05]`
//!
//! 1. The three links (one of them good), without loss, without jitter; links full both ways; links without buffers.
//! 2. One CUBIC download of 30 s on each, for each seed; with each law switched off in turn, or with other weights of
//!    delay.
//! 3. A line each: Mbit/s from the sixth second on over what is usable, and the ping.

use hawser_core::policy::{Law, Tuning};
use hawser_sim::judge::{self, Network, Question, bulk, quantile};
use hawser_sim::net::{LinkSpec, link};
use hawser_sim::tcp::Congestion;

/// How long, and what of it is a stream's start, s.
const SECONDS: f64 = 30.0;
const WARM: usize = 6;

/// Step 1.
fn cases() -> Vec<(&'static str, Vec<LinkSpec>)> {
    let three = |jitter: f64, loss: f64| {
        vec![
            link(37.0, 24.0).queue_ms(100.0),
            link(8.0, 90.0).queue_ms(100.0).jitter(20.0 * jitter).loss(0.003 * loss),
            link(3.0, 180.0).queue_ms(100.0).jitter(60.0 * jitter).loss(0.005 * loss),
        ]
    };
    let reordering = |links: Vec<LinkSpec>| links.into_iter().map(|link| link.both(|way| way.reorders = true));
    vec![
        ("three", three(1.0, 1.0)),
        ("three-reordering", reordering(three(1.0, 1.0)).collect()),
        ("three-lossless", three(1.0, 0.0)),
        ("three-steady", three(0.0, 1.0)),
        ("three-plain", three(0.0, 0.0)),
        ("three-halved", {
            let mut links = three(1.0, 1.0);
            for link in &mut links {
                for way in [&mut link.up, &mut link.down] {
                    (way.delay, way.jitter) = (way.delay / 2, way.jitter / 2);
                }
            }
            links
        }),
        ("two", three(1.0, 1.0)[..2].to_vec()),
        (
            "lte",
            vec![
                link(40.0, 60.0).queue_ms(100.0).jitter(10.0).loss(0.005),
                link(20.0, 120.0).queue_ms(100.0).jitter(30.0).loss(0.005),
            ],
        ),
        ("harmful", vec![link(100.0, 20.0).queue_ms(100.0), link(5.0, 150.0).queue_ms(100.0).reordering(40.0)]),
        ("shallow", vec![link(50.0, 20.0).queue_ms(5.0), link(30.0, 30.0).queue_ms(5.0)]),
    ]
}

fn main() {
    let (mut case, mut seeds, mut laws, mut weights) = (String::new(), 3, "none".to_owned(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--case" => case = value,
            "--seeds" => seeds = value.parse().expect("a number of seeds"),
            "--laws" => laws = value,
            "--weights" => weights = value.split(',').map(|text| text.parse::<f64>().expect("a weight")).collect(),
            _ => panic!("no argument is called {word}"),
        }
    }
    let laws: Vec<Law> = match laws.as_str() {
        "none" => Vec::new(),
        "all" => Law::all().to_vec(),
        some => some.split(',').map(|name| Law::named(name).expect("a law's name")).collect(),
    };
    let mut tunings = vec![("default".to_owned(), Tuning::default())];
    tunings.extend(laws.into_iter().map(|law| (law.name.to_owned(), Tuning::neutral(law))));
    tunings.extend(weights.into_iter().map(|weight| {
        let mut tuning = Tuning::default();
        tuning.active_set.delay_weight = weight;
        (format!("weight {weight}"), tuning)
    }));
    for (name, links) in cases().into_iter().filter(|(name, _)| case.is_empty() || *name == case) {
        for (law, tuning) in &tunings {
            show(name, law, &networks(name, &links, *tuning, seeds));
        }
    }
}

/// Step 2.
fn networks(name: &str, links: &[LinkSpec], tuning: Tuning, seeds: u64) -> Vec<Network> {
    let network = |seed| Network {
        name: name.to_owned(),
        seed,
        links: links.to_vec(),
        seconds: SECONDS,
        tuning,
        ..Network::default()
    };
    (1..=seeds).map(network).collect()
}

/// Step 3.
fn show(name: &str, law: &str, networks: &[Network]) {
    let question = Question { congestion: Congestion::Cubic, down: true };
    let usable = networks[0].capacity(question) * bulk::LAYER3;
    let found = judge::each(networks, |network| {
        let bulk = bulk::run(network.bond(), network, question);
        let later = &bulk.seconds[WARM..];
        (later.iter().sum::<f64>() / later.len() as f64 / usable, bulk.ping[1])
    });
    let shares: Vec<f64> = found.iter().map(|(share, _)| *share).collect();
    let pings: Vec<f64> = found.iter().map(|(_, ping)| *ping).collect();
    let all: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    println!(
        "{name:17} {law:17} least {:.2} median {:.2} of {usable:.1} Mbit/s, ping p99 {:4.0} ms: {}",
        quantile(&shares, 0.0),
        quantile(&shares, 0.5),
        quantile(&pings, 0.5),
        all.join(" ")
    );
}
