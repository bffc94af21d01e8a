//! A year of a home's line, in virtual time: faults and gaps by kind, packets lost by reason, memory by month, idle
//! bytes by line.
//!
//! `cargo run --release -p hawser-sim --example year -- [--seed 1] [--days 365] [--json FILE]`
//!
//! What does not hold ends the program, with the command that replays it.

#[path = "shared/json.rs"]
mod json;
#[path = "../tests/hostile/memory.rs"]
mod memory;

use hawser_sim::year::account::Totals;
use hawser_sim::year::kind::KINDS;
use hawser_sim::year::report::{Idle, Report};
use hawser_sim::year::{Plan, lines, run};
use json::{array, number, object, text};
use std::time::Instant;

/// Days of a month, for tables.
const MONTH: usize = 30;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let count = |name, default| value(name).map_or(default, |text| text.parse().expect("a number"));
    let plan = Plan { seed: count("--seed", 1), days: count("--days", 365) };
    let began = Instant::now();
    let report = run(plan, &memory::live, &mut |report| {
        let (day, faults) = (report.memory.len(), report.faults());
        let live = report.memory.last().copied().unwrap_or(0);
        eprintln!("{:6.0} s: day {day}, {faults} faults, {live} bytes live", began.elapsed().as_secs_f64());
    });
    print(&report);
    if let Some(file) = value("--json") {
        let command = format!("cargo run --release -p hawser-sim --example year -- {}", words.join(" "));
        json::write(file, "year", &fields(plan, &report, &command, began.elapsed().as_secs_f64()));
    }
}

fn print(report: &Report) {
    println!(
        "{:>22} {:>7} {:>7} {:>8} {:>8} {:>5} {:>8}",
        "fault", "count", "called", "longest", "median", "> 1 s", "beside"
    );
    for (row, of_kind) in KINDS.iter().zip(&report.kinds) {
        let (longest, median, over) = of_kind.gaps.summary();
        let (called, beside) = (of_kind.gaps.alone.len(), of_kind.gaps.worst_beside_others);
        println!(
            "{:>22} {:>7} {called:>7} {longest:>8.3} {median:>8.3} {over:>5} {beside:>8.3}",
            row.name, of_kind.faults
        );
    }
    println!("{} faults; {} hostile datagrams; sealed {:?}", report.faults(), report.hostile, report.sealed);
    println!("packets {:?}\ndrops {:?}", report.packets, report.drops);
    println!("looks {}, rests {}; memory grows by {:.0} bytes a day", report.looks, report.rests, report.slope());
    for (name, idle) in [("all", &report.idle[0]), ("calm", &report.idle[1])] {
        println!(
            "idle, {name}: {:?} MB in 30 days by line, of {:.0} h",
            monthly(idle),
            idle.time.as_secs_f64() / 3_600.0
        );
    }
}

/// MB that 30 days of such hours have, by line.
fn monthly(idle: &Idle) -> [f64; lines::LINES.len()] {
    let months = idle.time.as_secs_f64() / (30.0 * 86_400.0);
    idle.bytes.map(|bytes| bytes as f64 / 1e6 / months)
}

fn fields(plan: Plan, report: &Report, command: &str, seconds: f64) -> Vec<(&'static str, String)> {
    let int = |value: u64| value.to_string();
    let kinds = KINDS.iter().zip(&report.kinds).map(|(row, of_kind)| {
        let (longest, median, over) = of_kind.gaps.summary();
        object(&[
            ("kind", text(row.name)),
            ("a_day", number(row.per_day)),
            ("lasts_s", format!("[{}, {}]", row.lasts.0, row.lasts.1)),
            ("faults", int(of_kind.faults)),
            ("gaps", int(of_kind.gaps.alone.len() as u64)),
            ("longest_s", number(longest.into())),
            ("median_s", number(median.into())),
            ("over_1_s", int(over as u64)),
            ("beside_others", int(of_kind.beside_others)),
            ("longest_beside_others_s", number(of_kind.gaps.worst_beside_others.into())),
        ])
    });
    let months = report.memory.chunks(MONTH).map(|days| {
        let mean = days.iter().sum::<i64>() as f64 / days.len() as f64;
        let (least, most) = (days.iter().min().copied().unwrap_or(0), days.iter().max().copied().unwrap_or(0));
        object(&[("mean", number(mean)), ("least", least.to_string()), ("most", most.to_string())])
    });
    let ways = report.lines.iter().zip(lines::NAMES).flat_map(|(ways, name)| {
        ways.iter().zip(["up", "down"]).map(move |(counts, way)| {
            let [dropped, lost, vanished, damaged] = counts.map(int);
            let fields = [("queue_full", dropped), ("lost", lost), ("vanished", vanished), ("damaged", damaged)];
            object(&[&[("line", text(name)), ("way", text(way))], &fields[..]].concat())
        })
    });
    vec![
        ("command", text(command)),
        ("seed", int(plan.seed)),
        ("days", int(plan.days)),
        ("took_s", number(seconds)),
        ("faults", int(report.faults())),
        ("kinds", array(kinds)),
        ("packets", array(report.packets.iter().zip(["local", "remote"]).map(|(totals, side)| packets(side, totals)))),
        (
            "drops",
            array(report.drops.iter().map(|drops| {
                let named: Vec<_> = drops.iter().map(|(name, count)| (*name, int(*count))).collect();
                object(&named)
            })),
        ),
        ("lines", array(ways)),
        ("handshake_messages_lost", int(report.handshakes_lost)),
        ("hostile_datagrams", int(report.hostile)),
        ("sealed_datagrams", int(report.sealed.0)),
        ("paths_under_keys", int(report.sealed.1)),
        ("rests", int(report.rests)),
        ("looks_at_a_whole_line", int(report.looks)),
        ("most_bytes_of_trains", int(report.most[0])),
        ("most_bytes_held", int(report.most[1])),
        ("live_bytes_by_month", array(months)),
        ("memory_slope_bytes_a_day", number(report.slope())),
        ("idle", array(report.idle.iter().zip(["all", "calm"]).map(|(idle, hours)| of_idle(hours, idle)))),
    ]
}

fn packets(side: &str, totals: &Totals) -> String {
    object(&[
        ("given_to", text(side)),
        ("given", totals.given.to_string()),
        ("came", totals.came.to_string()),
        ("lost_and_counted", totals.lost.to_string()),
        ("with_a_portal", totals.forgotten.to_string()),
        ("portal_away", totals.away.to_string()),
        ("longest_wait_s", number(totals.longest.as_secs_f64())),
    ])
}

fn of_idle(hours: &str, idle: &Idle) -> String {
    let monthly = monthly(idle);
    let mut fields = vec![("hours_of", text(hours)), ("hours", number(idle.time.as_secs_f64() / 3_600.0))];
    fields.extend(lines::NAMES.into_iter().zip(monthly).map(|(name, mb)| (name, number(mb))));
    fields.push(("unit", text("MB in 30 days, both ways")));
    object(&fields)
}
