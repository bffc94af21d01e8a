//! A million peers over 200 members in racks of 20, in virtual time: a member dies, or a rack (`hawser_sim::million`).
//! `cargo run --release -p hawser-sim --example million -- [--peers 1000000] [--json FILE] [--commit US] [--write US]
//! [--answer US] [--event US] [--take-in US] [--route US]`.
//!
//! What etcd and routes take is in microseconds; without it, as `Costs::ASSUMED` has it.

#[path = "shared/json.rs"]
mod json;

use hawser_sim::million::costs::Costs;
use hawser_sim::million::etcd;
use hawser_sim::million::spread::Spread;
use hawser_sim::million::upkeep::Upkeep;
use hawser_sim::million::{Dies, Figures, Has, Setup, run};
use json::{array, number, object, text};
use std::time::Duration;

const CASES: [(&str, Dies); 2] = [("a member dies", Dies::Member), ("a rack dies", Dies::Rack)];
const KINDS: [(&str, Has); 3] = [
    ("peers send a packet each 100 ms", Has::PacketsUp),
    ("peers are sent a packet each 100 ms", Has::PacketsDown),
    ("peers have nothing but their claims", Has::Nothing),
];
/// Members that a site lists: two, one more, and as many as a token names.
const LISTED: [u32; 3] = [2, 3, 8];
/// Packets of 100 bytes a second that a portal carried (docs/results/performance.md), and the part of these that the
/// hub may cost.
const PORTAL: f64 = 146_000.0;
const BAR: f64 = 0.05;

/// What is asked for.
struct Asked {
    peers: u32,
    costs: Costs,
    file: Option<String>,
}

impl Asked {
    fn read() -> Self {
        let mut asked = Asked { peers: 1_000_000, costs: Costs::ASSUMED, file: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_else(|| panic!("{word} needs a value"));
            asked.take(&word, value);
        }
        asked
    }

    fn take(&mut self, word: &str, value: String) {
        let number = || value.parse().unwrap_or_else(|_| panic!("{word} needs a number, not {value}"));
        match word {
            "--peers" => self.peers = number(),
            "--json" => self.file = Some(value),
            _ => {
                let named = self.costs.named().into_iter().find(|(name, _)| word.strip_prefix("--") == Some(*name));
                let (_, cost) = named.unwrap_or_else(|| panic!("no argument is called {word}"));
                *cost = Duration::from_micros(number().into());
            }
        }
    }
}

/// Messages a second and member, by how many members each site lists.
fn messages(upkeep: &Upkeep, has: Has, peers: u32, claims: f64) -> [f64; 3] {
    LISTED.map(|listed| upkeep.messages(has, peers, listed, claims))
}

fn spread(Spread { half, most, all }: Spread) -> String {
    let one = |time: Option<u64>| time.map_or_else(|| "null".to_owned(), |time| time.to_string());
    object(&[("half_ms", one(half)), ("of_1000_999_ms", one(most)), ("all_ms", one(all))])
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn of_etcd(figures: &etcd::Figures) -> String {
    object(&[
        ("keys_a_second_at_rest", number(figures.at_rest.keys)),
        ("transactions_a_second_at_rest", number(figures.at_rest.transactions)),
        ("keys_in_the_busiest_second", number(figures.busiest.keys)),
        ("transactions_in_the_busiest_second", number(figures.busiest.transactions)),
        ("longest_write_ms", number(ms(figures.longest_write))),
        ("longest_telling_ms", number(ms(figures.longest_telling))),
        ("longest_taking_ms", number(ms(figures.longest_taking))),
        ("written_again", figures.again.to_string()),
        ("all_members_know", spread(figures.known)),
    ])
}

/// One case: printed, and as the file has it.
fn report(case: &str, figures: &Figures, messages: [f64; 3]) -> String {
    let Figures { lost, moved, within_a_second, routed, needless, most_loaded, claims, etcd } = figures;
    let of_listed = |value: &dyn Fn(f64) -> f64| {
        let all: Vec<(String, String)> =
            LISTED.iter().zip(messages).map(|(listed, one)| (listed.to_string(), number(value(one)))).collect();
        object(&all.iter().map(|(listed, one)| (listed.as_str(), one.clone())).collect::<Vec<_>>())
    };
    println!(
        "{case}: {lost} peers lost their active member; moved {moved:?} ms, {:.2} % within 1 s; routes set \
         {routed:?} ms; {needless} others moved; most loaded member {most_loaded:.3} of the mean; messages a second \
         and member, by {LISTED:?} listed: {messages:.0?}, {:.2?} % of what one carries (the bar is {:.0} %)",
        within_a_second * 100.0,
        messages.map(|one| one / PORTAL * 100.0),
        BAR * 100.0,
    );
    println!("  etcd: {etcd:?}");
    object(&[
        ("case", text(case)),
        ("lost_their_member", lost.to_string()),
        ("moved", spread(*moved)),
        ("within_1_s", number(*within_a_second)),
        ("routes_set", spread(*routed)),
        ("moved_without_need", needless.to_string()),
        ("most_loaded", number(*most_loaded)),
        ("claims_a_second_and_member", number(*claims)),
        ("messages_a_second_and_member_by_listed", of_listed(&|one| one)),
        ("part_of_what_a_portal_carries_by_listed", of_listed(&|one| one / PORTAL)),
        ("etcd", of_etcd(etcd)),
    ])
}

fn main() {
    let mut asked = Asked::read();
    let upkeeps = KINDS.map(|(kind, has)| (kind, Upkeep::measure(has)));
    let mut runs = Vec::new();
    for (case, dies) in CASES {
        for ((kind, has), (_, upkeep)) in KINDS.into_iter().zip(&upkeeps) {
            let figures = run(Setup { peers: asked.peers, dies, has, costs: asked.costs });
            let messages = messages(upkeep, has, asked.peers, figures.claims);
            runs.push(report(&format!("{case}, {kind}"), &figures, messages));
        }
    }
    let Some(file) = asked.file.clone() else { return };
    let upkeeps = upkeeps.map(|(kind, Upkeep { owner, standby, spare })| {
        let rates = [("owner", number(owner)), ("standby", number(standby)), ("spare", number(spare))];
        object(&[("kind", text(kind)), ("datagrams_a_second_both_ways", object(&rates))])
    });
    let costs = asked.costs.named().map(|(name, cost)| (name, cost.as_micros().to_string()));
    let words: Vec<String> =
        std::env::args().skip(1).map(|word| if word == file { "FILE".into() } else { word }).collect();
    let command = format!("cargo run --release -p hawser-sim --example million -- {}", words.join(" "));
    json::write(
        &file,
        "hub, many peers",
        &[
            ("command", text(&command)),
            ("peers", asked.peers.to_string()),
            ("costs_us", object(&costs)),
            ("sessions", array(upkeeps.into_iter())),
            ("runs", array(runs.into_iter())),
        ],
    );
}
