//! Recorded links in scenarios: where they come from, what is drawn of them, and what they are without a recording.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hawser_lab::scenario::{self, FileError, Scenario};
use hawser_wire::{QueueDepth, Rate, Trace};

const SECOND: Duration = Duration::from_secs(1);

/// Two drives of two links: 5 Mbit/s more each second, and one that is 20 or nothing.
fn table() -> String {
    let rows = |drive: &str, seconds: u32| {
        let row = |second: u32| {
            format!("{drive},{second},{},{},rural\n", 5 * second + 1, if second.is_multiple_of(2) { 20 } else { 0 })
        };
        (0..seconds).map(row).collect::<String>()
    };
    format!("drive,second,sky,lte,area\n{}{}", rows("7", 20), rows("8", 30))
}

/// A scenario of these links, with what comes after them.
fn text(links: &str, rest: &str) -> String {
    format!("name = \"s\"\n[network]\n{links}\n{}{rest}", include_str!("drives.toml"))
}

const SKY: &str = "[[network.link]]\nname = \"sky\"\nqueue = \"300ms\"\nup = { rate = \"20% of the other way\" }\n";
const LTE: &str = "[[network.link]]\nname = \"lte\"\n";

fn with_traces(sky: &str, lte: &str) -> String {
    format!("{SKY}down = {{ trace = {{ {sky} }} }}\n{LTE}down = {{ trace = {{ {lte} }} }}\n")
}

fn read(text: &str, folder: Option<&Path>) -> Scenario {
    Scenario::parse(text, "s.toml", folder).unwrap_or_else(|error| panic!("{error:#?}"))
}

/// What is wrong with the text, with hints.
fn faults(text: &str, folder: &Path) -> Vec<String> {
    let Err(FileError::Faulty { errors, .. }) = Scenario::parse(text, "s.toml", Some(folder)) else {
        panic!("nothing is wrong with\n{text}")
    };
    let hint = |hint: &Option<String>| hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
    errors.iter().map(|error| format!("{}{}", error.message, hint(&error.hint))).collect()
}

fn assert_said(text: &str, folder: &Path, said: &str) {
    let faults = faults(text, folder);
    assert!(faults.iter().any(|fault| fault == said), "{said} is not among {faults:#?}");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("drives.csv"), table()).expect("it is written");
    fs::write(folder.path().join("cell.down"), "0\n5\n5\n10\n").expect("it is written");
    folder
}

#[test]
fn a_link_is_a_column_of_a_drive_from_a_second_on_so_many_times() {
    let folder = folder();
    let column = "file = \"drives.csv\", column = \"sky\", drive = \"8\", offset = \"10s\", scale = 0.2";
    let scenario = read(&text(&with_traces(column, "file = \"cell.down\", scale = 0.5"), ""), Some(folder.path()));
    let [sky, lte] = scenario.cases[0].links.as_slice() else { panic!("two links") };
    let expected: Vec<f64> = (0..30).map(|second| 0.2 * f64::from(5 * second + 1)).collect();
    let expected = Trace::rates(SECOND, &expected).expect("a trace").from_offset(SECOND * 10);
    assert_eq!(sky.down.trace, Some(expected));
    // The mean of the whole drive is 14.7 Mbit/s, and the uplink's a fifth of it.
    assert_eq!((sky.up.rate, sky.up.trace.is_none()), (Some(Rate::mbit(2.94)), true));
    assert_eq!((sky.down.mean_rate(), sky.down.queue), (Some(Rate::mbit(14.7)), QueueDepth::Time(SECOND * 3 / 10)));
    let cell = Trace::parse("0\n5\n5\n10\n").expect("a trace").scaled(0.5).expect("it can be");
    assert_eq!((lte.down.trace.as_ref(), lte.up.rate), (Some(&cell), None));
    assert_eq!(scenario.traces.keys().collect::<Vec<_>>(), ["cell.down", "drives.csv"]);
    assert!(scenario.generated.is_empty() && scenario.drawn.is_none());
}

/// What a trace is of, and what is wrong with that.
const FAULTS: &str = r#"
file = "no.csv", column = "sky" => there is no trace no.csv (give the folder it lies in: hawser lab run --traces DIR)
file = "drives.csv", column = "5g" => drives.csv: find a drive's link: there is no link "5g", but: sky, lte
file = "drives.csv", column = "sky", drive = "9" => drives.csv: find a drive's link: there is no drive "9", but: 7, 8
file = "cell.down", drive = "7" => `drive`: only a table of drives has any (say which link's: column = "lte")
file = "cell.down", scale = 0 => `scale`: 0 times is nothing
column = "sky" => missing key `file` in trace (add: file = "drives.csv")"#;

#[test]
fn what_is_wrong_with_a_trace_is_said() {
    let folder = folder();
    for row in FAULTS.trim().lines() {
        let (sky, said) = row.split_once(" => ").expect("two columns");
        assert_said(&text(&with_traces(sky, "file = \"cell.down\""), ""), folder.path(), said);
    }
    let both = format!("{SKY}rate = \"5M\"\ntrace = \"cell.down\"\n");
    assert!(faults(&text(&both, ""), folder.path())[0].contains("`trace` beside `rate`"));
}

const DRAW: &str = "[draw]\nstretches = 5\nlength = \"12s\"\nfile = \"drives.csv\"\nlinks = [1, 2]\nquick = 2\n";

fn drawn_links() -> String {
    let column = |name: &str, or: &str| format!("file = \"drives.csv\", column = \"{name}\", or = \"{or}\"");
    with_traces(&column("sky", "starlink"), &column("lte", "lte"))
}

#[test]
fn stretches_of_drives_are_drawn_by_a_seed() {
    let folder = folder();
    let read = |seed: u32, folder: &Path| read(&text(&drawn_links(), &format!("{DRAW}seed = {seed}\n")), Some(folder));
    let scenario = read(3, folder.path());
    assert_eq!(scenario.drawn.as_deref(), Some("5 stretches of 12 s of drives.csv, by seed 3"));
    let sizes: Vec<usize> = scenario.cases.iter().map(|case| case.links.len()).collect();
    assert_eq!(sizes, [1, 2, 1, 2, 1], "sizes go round");
    assert_eq!(scenario.cases.iter().filter(|case| case.quick).count(), 2);
    for case in &scenario.cases {
        let links: Vec<&str> = case.links.iter().map(|link| link.name.as_str()).collect();
        let expected: Vec<String> =
            links.iter().map(|link| format!("tcp-{link}")).chain(["hawser".to_owned()]).collect();
        assert_eq!(case.contenders, expected, "those of its links, and of all");
        let words: Vec<&str> = case.title.split(' ').collect();
        let (drive, offset): (&str, u64) = (words[1], words[3].parse().expect("seconds"));
        let length = if drive == "7" { 20 } else { 30 };
        assert!(offset + 12 <= length, "{}", case.title);
        assert!(case.title.ends_with(&links.join(", ")), "{}", case.title);
        let sky = case.links.iter().find(|link| link.name == "sky").and_then(|link| link.down.trace.as_ref());
        // The first second of the stretch, at 5 Mbit/s more than the one before it.
        let held = sky.map(|trace| trace.bytes_between(Duration::ZERO, SECOND) * 8 / 1_000_000);
        assert!(held.is_none_or(|held| held == 5 * offset + 1), "{}: {held:?}", case.title);
    }
    let titles = |scenario: &Scenario| scenario.cases.iter().map(|case| case.title.clone()).collect::<Vec<_>>();
    assert_eq!(titles(&read(3, folder.path())), titles(&scenario));
    assert_ne!(titles(&read(4, folder.path())), titles(&scenario));
}

#[test]
fn without_a_recording_drives_are_generated_and_that_is_told() {
    let text = text(&drawn_links(), DRAW);
    let scenario = read(&text, None);
    assert_eq!(scenario.drawn.as_deref(), Some("5 stretches of 12 s of generated drives, by seed 1"));
    assert_eq!(scenario.generated.len(), 10, "two links in each of five drives: {:?}", scenario.generated);
    assert!(scenario.traces.is_empty());
    let again = read(&text, None);
    let traces = |scenario: &Scenario| {
        let links = scenario.cases.iter().flat_map(|case| &case.links);
        links.map(|link| link.down.trace.clone().expect("a trace")).collect::<Vec<_>>()
    };
    assert_eq!(traces(&scenario), traces(&again), "a seed decides them");
    let [first, second] = [1, 3].map(|case: usize| scenario.cases[case].links[0].down.mean_rate());
    assert_ne!(first, second, "each stretch is of a drive of its own");
    let alone = "file = \"cell.down\", or = { kind = \"lte\", scale = 0.1 }";
    let scenario = read(&self::text(&with_traces(alone, alone), ""), None);
    let [sky, lte] = scenario.cases[0].links.as_slice() else { panic!("two links") };
    assert_eq!(sky.down.trace, lte.down.trace, "one file is one link");
    let mean = sky.down.mean_rate().expect("a rate").bits_per_second();
    assert!((1_000_000..30_000_000).contains(&mean), "a tenth of an LTE link: {mean}");
}

#[test]
fn what_is_wrong_with_a_draw_is_said() {
    let folder = folder();
    let rows = [
        ("12s", "31s", "no drive of drives.csv lasts 31 s"),
        ("[1, 2]", "[3]", "`links`: a case of 3 links, and there are 2"),
        (
            "quick = 2\n",
            "quick = 2\n[[case]]\nname = \"A\"\n",
            "cases are drawn, and written (leave out [draw], or every [[case]])",
        ),
        ("stretches = 5\n", "", "missing key `stretches` in [draw] (add: stretches = 12)"),
    ];
    for (from, to, said) in rows {
        assert_said(&text(&drawn_links(), &DRAW.replace(from, to)), folder.path(), said);
    }
}

#[test]
fn a_folder_of_recordings_goes_before_what_is_generated_and_must_have_them() {
    let (mine, recordings) = (tempfile::tempdir().expect("a folder"), folder());
    let path = mine.path().join("mine.toml");
    fs::write(&path, text(&drawn_links(), DRAW)).expect("it is written");
    let name = path.to_str().expect("a plain path");
    let generated = scenario::find(name, None).expect("it is right").remove(0);
    let recorded = scenario::find(name, Some(recordings.path())).expect("it is right").remove(0);
    assert!(!generated.generated.is_empty() && recorded.generated.is_empty());
    assert_eq!(recorded.traces["drives.csv"], table());
    let empty = tempfile::tempdir().expect("a folder");
    let Err(FileError::Faulty { errors, .. }) = scenario::find(name, Some(empty.path())) else {
        panic!("the folder is empty")
    };
    assert!(errors[0].message.starts_with("there is no trace drives.csv in "), "{}", errors[0].message);
}

#[test]
fn every_drive_that_comes_with_hawser_can_be_run_without_a_recording() {
    let drives = scenario::find("drives", None).expect("a group");
    assert_eq!(drives.len(), 8);
    for scenario in drives {
        assert!(!scenario.generated.is_empty(), "{}", scenario.name);
        let quick = scenario.cases.iter().filter(|case| case.quick).count();
        assert!((1..=2).contains(&quick), "{}: {quick} cases with --quick", scenario.name);
        assert!(!scenario.claims.is_empty(), "{}", scenario.name);
    }
}
