//! The report in a real browser: tables and plots are drawn, in light and dark, on wide and narrow screens.

use crate::browser::{Browser, Screen};
use crate::synthetic;
use hawser_lab::report;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Widths of a desk's and a telephone's screen.
const WIDTHS: [u32; 2] = [1200, 390];
/// A part is seen where it has a pixel of its colour for most of its length: edges are mixed with what is behind them.
const SEEN: f64 = 0.6;
/// Page behind everything, light and dark.
const SURFACES: [(&str, [u8; 3]); 2] = [("light", [255, 255, 255]), ("dark", [0x14, 0x18, 0x1d])];

/// What the page says of its plots: where they are, and their parts' colours.
const PLOTS: &str = include_str!("plots.js");
/// Texts of a plot that lie over each other, or outside of it.
const COLLISIONS: &str = include_str!("collisions.js");
/// Rows and cells of tables that take room.
const TABLES: &str = include_str!("tables.js");

#[derive(Debug, Deserialize)]
struct Plot {
    /// Where what is scrolled out of sight begins.
    end: f64,
    title: String,
    description: String,
    place: [f64; 4],
    parts: Vec<Part>,
}

#[derive(Debug, Deserialize)]
struct Part {
    kind: String,
    paint: String,
    place: [f64; 4],
}

#[derive(Debug, Deserialize)]
struct Table {
    rows: usize,
    cells: usize,
    text: String,
}

#[test]
fn the_page_shows_its_tables_and_plots_on_every_screen() {
    let (_folder, written) = synthetic::reported(&synthetic::scenario(), 5, 7);
    let mut browser = Browser::start();
    for (scheme, surface) in SURFACES {
        for width in WIDTHS {
            browser.show(&written.page, width, scheme);
            let place = format!("{scheme}, {width} wide");
            tables_are_there(&mut browser, &place);
            let collisions = browser.evaluate(COLLISIONS);
            assert_eq!(collisions, json!([]), "{place}");
            let fits = browser.evaluate("document.documentElement.scrollWidth <= innerWidth");
            assert_eq!(fits, json!(true), "{place}: the page itself scrolls sideways");
            let screen = browser.screen();
            let share = screen.share(surface);
            assert!(share > 0.5, "{place}: {share:.2} of the page is {surface:?}");
            plots_are_drawn(&said::<Plot>(&mut browser, PLOTS), &screen, &place);
        }
    }
    let page = format!("file://{}", written.page.display());
    assert!(browser.requests.iter().all(|request| *request == page), "the page asked for {:?}", browser.requests);
}

#[test]
fn pictures_are_drawn_as_files_of_their_own_too() {
    let (folder, _) = synthetic::reported(&synthetic::scenario(), 3, 8);
    let picture = folder.path().join("plots/synthetic-1.svg");
    let mut browser = Browser::start();
    for (scheme, surface) in SURFACES {
        browser.show(&picture, WIDTHS[0], scheme);
        let screen = browser.screen();
        let whole = PLOTS.replace("document.querySelectorAll('svg.plot')", "[document.documentElement]");
        let plots: Vec<Plot> = said(&mut browser, &whole);
        assert_eq!(plots.len(), 1);
        plots_are_drawn(&plots, &screen, scheme);
        assert!(screen.count(plots[0].place, surface) > 10_000, "{scheme}: the picture has no surface of its own");
    }
}

#[test]
fn in_no_scenario_that_comes_with_hawser_do_texts_of_plots_collide() {
    let folder = tempfile::tempdir().expect("a folder");
    for scenario in hawser_lab::scenario::all().expect("embedded scenarios") {
        let runs = synthetic::runs(&scenario, 2, 9, 1.0);
        synthetic::keep(&folder.path().join(&scenario.name), &scenario, &runs);
    }
    let written = report::write(folder.path()).expect("a report");
    let mut browser = Browser::start();
    browser.show(&written.page, WIDTHS[0], "light");
    assert_eq!(browser.evaluate(COLLISIONS), json!([]));
}

/// What the page says of itself.
fn said<T: DeserializeOwned>(browser: &mut Browser, script: &str) -> Vec<T> {
    serde_json::from_value(browser.evaluate(script)).expect(script)
}

fn tables_are_there(browser: &mut Browser, place: &str) {
    let tables: Vec<Table> = said(browser, TABLES);
    assert_eq!(tables.iter().map(|table| table.rows).collect::<Vec<_>>(), [4, 4], "{place}");
    // Table 1: tcp, engarde and hawser a cell each, mptcp two; table 2: two columns.
    assert_eq!(tables.iter().map(|table| table.cells).collect::<Vec<_>>(), [4 * 5, 4 * 2], "{place}");
    for said in ["A.1", "84.0 ± 1.5", "skipped", "mptcp (Mbit/s)"] {
        assert!(tables[0].text.contains(said), "{place}: {said} is not in\n{}", tables[0].text);
    }
}

fn plots_are_drawn(plots: &[Plot], screen: &Screen, place: &str) {
    assert!(!plots.is_empty(), "{place}: no plot");
    for Plot { end, title, description, place: frame, parts } in plots {
        assert!(!title.is_empty() && description.len() > 20, "{place}: {title} is not described: {description}");
        assert!(frame[2] > 300.0 && frame[3] > 100.0, "{place}: {title} takes {frame:?}");
        assert!(!parts.is_empty(), "{place}: nothing is drawn in {title}");
        // On a narrow screen a plot is scrolled: only what is on the screen is looked at.
        let on_screen = |part: &&Part| part.place[0] + part.place[2] < *end;
        for Part { kind, paint, place: at } in parts.iter().filter(on_screen) {
            let color = color(paint);
            let area = [at[0] - 2.0, at[1] - 2.0, at[2] + 4.0, at[3] + 4.0];
            let seen = screen.count(area, color);
            let is_seen = seen as f64 >= SEEN * at[2].max(at[3]);
            assert!(is_seen, "{place}: {seen} pixels of {paint} where {title} has a {kind} at {at:?}");
        }
    }
}

/// `rgb(1, 2, 3)`.
fn color(paint: &str) -> [u8; 3] {
    let inner = paint.trim_start_matches("rgb(").trim_end_matches(')');
    let parts: Vec<u8> = inner.split(',').map(|part| part.trim().parse().expect(paint)).collect();
    parts.try_into().expect(paint)
}
