//! Where the figures of all runs are kept: target/tmp/hub-processes.json, a case after the other, each with what it
//! was measured on; and the table of them, hub-processes.md beside it (crates/hawser-hub/README.md).

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Columns of the table: medians and worst of the first home's, then the worst of the other one's.
const COLUMNS: [(&str, &str); 11] = [
    ("gap, ms", "/gap_ms"),
    ("before", "/gap_before_ms"),
    ("IPv6", "/ipv6/gap_ms"),
    ("calls up", "/call_gap_up_ms"),
    ("down", "/call_gap_down_ms"),
    ("calls' packets lost down", "/lost_down"),
    ("streams stood", "/streams_stood_ms"),
    ("download stood", "/download_stood_ms"),
    ("answered after", "/answered_after_ms"),
    ("branch: gap", "/branch/gap_ms"),
    ("download stood", "/branch/download_stood_ms"),
];

/// Keeps a case's runs in the place of those before.
pub fn keep<R: Serialize>(case: &str, runs: &[R]) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hub-processes.json");
    let known = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Map<String, Value>>(&bytes).ok());
    let mut all = known.unwrap_or_default();
    let runs: Vec<Value> = runs.iter().map(|run| serde_json::to_value(run).expect("plain data")).collect();
    all.insert(case.to_owned(), json!({ "on": on(), "summary": summary(&runs), "runs": runs }));
    fs::write(&path, serde_json::to_string_pretty(&all).expect("plain data")).expect("a file");
    fs::write(path.with_extension("md"), table(&all)).expect("a file");
    eprintln!("{case}: {} ({})", all[case]["summary"], path.display());
}

/// A row for each case that has such figures.
fn table(all: &Map<String, Value>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = ["case", "runs"].into_iter().chain(COLUMNS.map(|(title, _)| title));
    let rule = vec!["---".to_owned(); COLUMNS.len() + 2];
    let rows = all.iter().filter_map(|(case, of_it)| {
        let runs = of_it["runs"].as_array()?;
        let cell = |(_, figure): (&str, &str)| {
            let mut all: Vec<f64> = runs.iter().map(|run| run.pointer(figure)?.as_f64()).collect::<Option<_>>()?;
            all.sort_by(f64::total_cmp);
            Some(format!("{:.0}, {:.0}", all.get(all.len() / 2)?, all.last()?))
        };
        let cells: Vec<String> = COLUMNS.into_iter().map(cell).collect::<Option<_>>()?;
        Some(line([case.clone(), runs.len().to_string()].into_iter().chain(cells).collect()))
    });
    [line(titles.map(str::to_owned).collect()), line(rule)].into_iter().chain(rows).collect()
}

/// Of each figure the median and the most; the same of what is nested.
fn summary(runs: &[Value]) -> Map<String, Value> {
    let names = runs.first().and_then(Value::as_object).into_iter().flat_map(|run| run.keys());
    let both = names.filter_map(|name| {
        if runs[0][name].is_object() {
            let nested: Vec<Value> = runs.iter().map(|run| run[name].clone()).collect();
            return Some((name.clone(), summary(&nested).into()));
        }
        let mut all: Vec<f64> = runs.iter().map(|run| run[name].as_f64()).collect::<Option<_>>()?;
        all.sort_by(f64::total_cmp);
        Some((name.clone(), json!([all[all.len() / 2], all[all.len() - 1]])))
    });
    both.collect()
}

/// Commit, date, machine and its load at the end of the case.
fn on() -> Value {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    json!({
        "commit": said("git", &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]),
        "date": said("date", &["-u", "+%Y-%m-%dT%H:%MZ"]),
        "machine": format!("{}, {cpus} processors", said("uname", &["-srm"])),
        "command": "make hub-test",
        "load": load(),
    })
}

/// What the machine had to do in the last minute (proc_loadavg(5)).
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}
