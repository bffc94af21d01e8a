//! Pictures of a made-up portal, drawn without a terminal.
//!
//! `HAWSER_WRITE_GOLDEN=1` writes the transcripts anew; read the difference before it is committed.

use std::path::Path;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::columns::{cut, rate};
use super::fixture::{NOW_UNIX_MS, events, flows, status};
use super::model::{Deed, Model, Next, Update};
use super::theme::Theme;
use super::view::draw;

/// Without colours, with all characters.
const PLAIN: Theme = Theme { colour: false, ascii: false };
const COLOURED: Theme = Theme { colour: true, ascii: false };
const ASCII: Theme = Theme { colour: false, ascii: true };

fn at(second: u64) -> Duration {
    Duration::from_secs(second)
}

/// A model that has seen `seconds` statuses and the flows.
fn model(seconds: u64) -> Model {
    let mut model = Model::new(None);
    for second in 0..seconds {
        model.update(at(second), Update::Status(Box::new(Ok(status(second)))));
    }
    model.update(at(seconds), Update::Flows(flows()));
    model.update(at(seconds), Update::Events(events(), NOW_UNIX_MS));
    model
}

fn press(model: &mut Model, deeds: &[Deed]) {
    for deed in deeds {
        assert_eq!(model.update(at(99), Update::Deed(*deed)), Next::GoOn);
    }
}

fn terminal(model: &Model, theme: &Theme, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, model, theme)).expect("it draws");
    terminal
}

/// The picture as lines without spaces at their ends.
fn picture(model: &Model, theme: &Theme, size: (u16, u16)) -> String {
    let terminal = terminal(model, theme, size);
    let cells = terminal.backend().buffer().content();
    let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
    cells.chunks(usize::from(size.0)).map(|cells| format!("{}\n", line(cells).trim_end())).collect()
}

fn assert_transcript(name: &str, picture: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cmd/top/transcripts").join(name);
    if std::env::var_os("HAWSER_WRITE_GOLDEN").is_some() {
        std::fs::write(&file, picture).expect("it can be written");
    }
    let expected = std::fs::read_to_string(&file).expect("a transcript");
    assert!(picture == expected, "{name}: expected\n{expected}\nfound\n{picture}");
}

#[test]
fn a_small_and_a_large_terminal_show_what_was_written_down() {
    for (name, size, theme) in
        [("80x24.txt", (80, 24), PLAIN), ("200x50.txt", (200, 50), PLAIN), ("80x24-ascii.txt", (80, 24), ASCII)]
    {
        assert_transcript(name, &picture(&model(30), &theme, size));
    }
    let mut model = model(30);
    press(&mut model, &[Deed::Help]);
    assert_transcript("80x24-help.txt", &picture(&model, &PLAIN, (80, 24)));
}

#[test]
fn any_size_can_be_drawn_before_and_after_the_first_answer() {
    for size in [(1, 1), (3, 2), (20, 5), (40, 10), (80, 3), (300, 100)] {
        for model in [Model::new(None), model(1), model(300)] {
            picture(&model, &PLAIN, size);
        }
    }
}

#[test]
fn an_ascii_terminal_gets_ascii_alone() {
    let mut model = model(30);
    assert!(picture(&model, &ASCII, (200, 50)).is_ascii());
    press(&mut model, &[Deed::Help]);
    assert!(picture(&model, &ASCII, (80, 24)).is_ascii());
}

#[test]
fn without_colours_words_and_weight_say_the_same() {
    let of = |theme: &Theme| terminal(&model(30), theme, (80, 24)).backend().buffer().content().to_vec();
    let (plain, coloured) = (of(&PLAIN), of(&COLOURED));
    assert!(plain.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "no colour at all");
    assert!(plain.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)), "headings stand out");
    assert!(coloured.iter().any(|cell| cell.fg == Color::Green) && coloured.iter().any(|cell| cell.fg == Color::Red));
    let text = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol().to_owned()).collect::<String>();
    assert_eq!(text(&plain), text(&coloured));
}

#[test]
fn a_portal_that_goes_away_is_told_and_what_was_known_stays() {
    let mut model = model(30);
    for second in 30..45 {
        model.update(at(second), Update::Status(Box::new(Err("no portal is running at /x.sock".into()))));
    }
    let away = picture(&model, &PLAIN, (80, 24));
    assert!(away.contains("! no answer for 14 s: no portal is running at /x.sock"), "{away}");
    assert!(away.contains("hub") && away.contains("203.0.113.80:80"), "{away}");
    // Another portal has begun: it is younger, and its counters are at zero.
    model.update(at(45), Update::Status(Box::new(Ok(status(0)))));
    let back = picture(&model, &PLAIN, (80, 24));
    assert!(!back.contains("no answer"), "{back}");
    assert!(!back.contains("Gbit/s"), "a counter that began anew is no rate: {back}");
}

#[test]
fn a_portal_that_was_never_there_is_waited_for() {
    let mut model = Model::new(None);
    assert!(picture(&model, &PLAIN, (80, 24)).contains("waiting for the portal"));
    model.update(at(1), Update::Status(Box::new(Err("no portal is running at /x.sock".into()))));
    assert!(picture(&model, &PLAIN, (80, 24)).contains("no answer for 0 s"), "{}", picture(&model, &PLAIN, (80, 24)));
}

#[test]
fn a_pause_shows_what_was_while_all_goes_on() {
    let mut model = model(30);
    let before = picture(&model, &PLAIN, (80, 24));
    press(&mut model, &[Deed::Pause]);
    model.update(at(31), Update::Status(Box::new(Ok(status(60)))));
    let paused = picture(&model, &PLAIN, (80, 24));
    assert!(paused.contains("[paused]"), "{paused}");
    assert_eq!(paused.replace("  [paused]", ""), before);
    press(&mut model, &[Deed::Pause]);
    let after = picture(&model, &PLAIN, (80, 24));
    assert!(after != before && !after.contains("[paused]"), "{after}");
}

#[test]
fn events_of_the_peers_that_are_shown_come_with_their_age_newest_first() {
    let mut model = model(30);
    let all = picture(&model, &PLAIN, (80, 24));
    assert!(place(&all, "link cut") < place(&all, "link degraded x4"), "{all}");
    assert!(all.contains("29 s link cut"), "{all}");
    press(&mut model, &[Deed::Peer(2)]);
    let office = picture(&model, &PLAIN, (80, 24));
    assert!(
        !office.contains("link cut") && office.contains("portal started"),
        "another peer's, and the portal's: {office}"
    );
}

/// The first line that holds a word.
fn place(picture: &str, word: &str) -> usize {
    picture.lines().position(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word} in\n{picture}"))
}

#[test]
fn flows_are_sorted_by_what_keys_choose() {
    let mut model = model(30);
    let order = |model: &Model, wanted: [&str; 3]| {
        let picture = picture(model, &PLAIN, (200, 50));
        let places = wanted.map(|word| place(&picture, word));
        assert!(places.is_sorted(), "{wanted:?} in\n{picture}");
    };
    order(&model, ["2001:db8", "203.0.113.80", "203.0.113.9:"]);
    press(&mut model, &[Deed::Reverse]);
    order(&model, ["203.0.113.9:", "203.0.113.80", "2001:db8"]);
    press(&mut model, &[Deed::Sort(2)]);
    assert!(picture(&model, &PLAIN, (80, 24)).contains("sort: sent"));
    order(&model, ["2001:db8", "203.0.113.9:", "203.0.113.80"]);
    press(&mut model, &[Deed::Sort(-3)]);
    assert!(picture(&model, &PLAIN, (80, 24)).contains("sort: rule"));
    order(&model, ["203.0.113.9:", "2001:db8", "203.0.113.80"]);
}

#[test]
fn paths_are_sorted_and_scrolled_when_keys_work_on_them() {
    let mut model = model(30);
    press(&mut model, &[Deed::NextTable, Deed::Sort(2)]);
    let by_state = picture(&model, &PLAIN, (80, 24));
    assert!(by_state.contains("state*") && by_state.contains("sort: state"), "{by_state}");
    let first = by_state.lines().skip_while(|line| !line.contains("state*")).nth(1).expect("a path");
    assert!(first.starts_with("sat") && first.contains("down"), "{by_state}");
    press(&mut model, &[Deed::NextTable, Deed::Scroll(1)]);
    let scrolled = picture(&model, &PLAIN, (80, 16));
    assert!(!scrolled.contains("2001:db8"), "the first flow is above: {scrolled}");
    press(&mut model, &[Deed::Scroll(-9)]);
    assert!(picture(&model, &PLAIN, (80, 16)).contains("2001:db8"));
}

#[test]
fn a_peer_can_be_shown_alone() {
    let mut model = model(30);
    assert!(picture(&model, &PLAIN, (80, 24)).contains("2 peers"));
    press(&mut model, &[Deed::Peer(1)]);
    let hub = picture(&model, &PLAIN, (80, 24));
    assert!(hub.contains("peer hub") && hub.contains("203.0.113.80") && !hub.contains("office"), "{hub}");
    press(&mut model, &[Deed::Peer(1)]);
    let office = picture(&model, &PLAIN, (80, 24));
    assert!(office.contains("peer office answers, and does not know this portal's public key"), "{office}");
    assert!(!office.contains("203.0.113.80"), "{office}");
    press(&mut model, &[Deed::Peer(1)]);
    assert!(picture(&model, &PLAIN, (80, 24)).contains("2 peers"), "after the last one all");
    let mut gone = Model::new(Some("nobody".into()));
    gone.update(at(0), Update::Status(Box::new(Ok(status(0)))));
    assert!(picture(&gone, &PLAIN, (80, 24)).contains("there is no peer nobody"));
}

#[test]
fn rates_have_a_unit_that_fits_and_long_texts_keep_both_ends() {
    let table = [
        (0, "0 bit/s"),
        (124, "992 bit/s"),
        (125, "1.0 kbit/s"),
        (6_031_250, "48.2 Mbit/s"),
        (250_000_000, "2.0 Gbit/s"),
    ];
    for (bytes_per_s, expected) in table {
        assert_eq!(rate(bytes_per_s), expected);
    }
    assert!(rate(u64::MAX).len() <= 25, "{}", rate(u64::MAX));
    let cuts = [("abcdef", 6, "abcdef"), ("abcdefg", 6, "ab…efg"), ("abcdefg", 1, "…"), ("abc", 0, "")];
    for (text, width, expected) in cuts {
        assert_eq!(cut(text, width, &PLAIN), expected);
    }
}

#[test]
fn bars_are_as_high_as_the_newest_values_beside_the_largest() {
    let spark = |values: &[u64], width| PLAIN.spark(values.iter().copied(), width);
    for (values, width, expected) in [
        (&[0, 1, 8][..], 3, " ▁█"),
        (&[8, 1, 0], 5, "  █▁ "),
        (&[100, 1, 2], 2, "▄█"),
        (&[], 2, "  "),
        (&[u64::MAX, u64::MAX / 2], 2, "█▄"),
        (&[5], 0, ""),
    ] {
        assert_eq!(spark(values, width), expected, "{values:?} in {width}");
    }
}
