//! All three judges over families of networks that nobody chose by hand.
//!
//! `cargo run --release -p hawser-sim --example judges -- [--cases 12] [--seed 1] [--traces DIR] [--case NAME]
//!  [--run SEED] [--congestion cubic|bbr] [--direction down|up] [--seconds 40] [--scale 0.2] [--without LAW]`
//!
//! 1. Each family draws `--cases` networks, from the seed on; recordings are one where a folder is given.
//! 2. Each network: bulk's share of the capacity and of the best link; short flows against the best link, alone and
//!    beside a download; calls at rest and beside a download.
//! 3. A line for each network, then medians and the worst tenth of each family.

#[path = "shared/arguments.rs"]
mod arguments;
#[path = "shared/files.rs"]
mod files;

use arguments::Arguments;
use hawser_sim::family::{changing, draw, impaired, stationary};
use hawser_sim::judge::{self, Network, Question, bulk, quantile, short, sparse};

/// The columns, and whether less is better.
const COLUMNS: [(&str, bool); 15] = [
    ("capacity", false),
    ("bond", false),
    ("share", false),
    ("of best", false),
    ("ping50", true),
    ("ping99", true),
    ("30k", true),
    ("300k", true),
    ("3M", true),
    ("30k+", true),
    ("300k+", true),
    ("3M+", true),
    ("call99", true),
    ("call99+", true),
    ("useless+", true),
];

/// Step 2.
fn figures(network: &Network, question: Question) -> [f64; 15] {
    let bulk = bulk::judge(network, question);
    let short = |bytes, beside| short::judge(network, question, bytes, beside).ratios()[0];
    let sparse = sparse::judge(network, question);
    let [small, middle, large] = short::SIZES.map(|bytes| short(bytes, false));
    let [small_beside, middle_beside, large_beside] = short::SIZES.map(|bytes| short(bytes, true));
    [
        bulk.capacity,
        bulk.bond.mbit,
        bulk.share(),
        bulk.bond.mbit / bulk.best().max(1e-9),
        bulk.bond.ping[0],
        bulk.bond.ping[1],
        small,
        middle,
        large,
        small_beside,
        middle_beside,
        large_beside,
        sparse.idle.late,
        sparse.loaded.late,
        sparse.loaded.useless * 100.0,
    ]
}

/// Step 3.
fn line(name: &str, figures: &[f64; 15]) -> String {
    let cells: Vec<String> = figures.iter().map(|figure| format!("{figure:8.2}")).collect();
    format!("{name:58.58} {}", cells.join(" "))
}

fn main() {
    let given = Arguments::read();
    let seeds = given.seed..given.seed + given.cases as u64;
    let mut families = vec![
        ("stationary", draw(stationary, seeds.clone())),
        ("changing", draw(changing, seeds.clone())),
        ("impaired", draw(impaired, seeds)),
    ];
    if !given.traces.is_empty() {
        families.push(("recorded", files::networks(&given.traces, given.draw())));
    }
    println!(
        "seed {}, {:?}. Mbit/s; {:.3} of the capacity can be had. Pings in ms.",
        given.seed,
        given.question,
        bulk::LAYER3
    );
    println!(
        "Completion times over those of the best link; +: beside a download. Calls: ms over the median at rest; useless in %."
    );
    let heads: Vec<String> = COLUMNS.iter().map(|(name, _)| format!("{name:>8}")).collect();
    println!("{:58} {}", "", heads.join(" "));
    for (family, mut networks) in families {
        given.choose(&mut networks);
        if networks.is_empty() {
            continue;
        }
        let all = judge::each(&networks, |network| figures(network, given.question));
        networks.iter().zip(&all).for_each(|(network, figures)| println!("{}", line(&network.name, figures)));
        let column =
            |which: usize, share| quantile(&all.iter().map(|figures| figures[which]).collect::<Vec<_>>(), share);
        let worst = |which: usize| if COLUMNS[which].1 { 0.9 } else { 0.1 };
        println!("{}", line(&format!("{family}: median"), &std::array::from_fn(|which| column(which, 0.5))));
        println!(
            "{}",
            line(&format!("{family}: worst tenth"), &std::array::from_fn(|which| column(which, worst(which))))
        );
    }
}
