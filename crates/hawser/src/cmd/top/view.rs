//! The whole picture, from the top: who and how fast, what is wrong, links, paths, flows, events, keys.
//!
//! A low terminal shows fewer rows of each table, a narrow one fewer columns. Nothing is remembered from one picture to
//! the next.

use hawser_portal::api::{PathState, PeerStatus, Status};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::columns::{self, Place, cut, rate};
use super::keys::HELP;
use super::model::{Model, Table};
use super::series::Key;
use super::theme::Theme;
use super::{events, flows, links, paths};
use crate::cmd::status::refusal;
use crate::cmd::table::duration;

/// Lines of what is wrong that are shown at most.
const WRONGS_MAX: usize = 3;
/// The header: the portal, and its rates.
const HEADER: u16 = 2;
/// Of how many lines of the terminal one is for events, and how many there are at least.
const EVENTS_PART: u16 = 5;
const EVENTS_MIN: u16 = 3;
/// Columns of a sparkline in the header.
const HEADER_SPARK: usize = 22;
/// Columns of the keys in the help.
const KEYS: usize = 20;

/// Draws the model.
pub fn draw(frame: &mut Frame<'_>, model: &Model, theme: &Theme) {
    let [body, footer] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    if model.help {
        help(frame, body, theme);
    } else {
        tables(frame, body, model, theme);
    }
    keys(frame, footer, model, theme);
}

fn tables(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: &Theme) {
    let wrongs = wrongs(model);
    let (links, paths, flows) = (links::link_rows(model), paths::path_rows(model), flows::flow_rows(model));
    let links_shown = model.shown().status.as_ref().is_some_and(links::links_say_more);
    let third = usize::from(area.height) / 3;
    // A table has a line of headings, and of rows a third of the terminal, and some.
    let lines = |rows: usize| (rows.max(1) + 1).min(third.max(3)) as u16;
    let link_lines = if links_shown { lines(links.len()) } else { 0 };
    let wrong_lines = wrongs.len().min(WRONGS_MAX) as u16;
    let events = events::event_rows(model);
    let event_lines = if events.is_empty() { 0 } else { (area.height / EVENTS_PART).max(EVENTS_MIN) + 1 };
    let [header, wrong, link_area, path_area, flow_area, event_area] = Layout::vertical([
        Constraint::Length(HEADER),
        Constraint::Length(wrong_lines),
        Constraint::Length(link_lines),
        Constraint::Length(lines(paths.len())),
        Constraint::Min(2),
        Constraint::Length(event_lines),
    ])
    .areas(area);
    head(frame, header, model, theme);
    frame.render_widget(
        Paragraph::new(wrongs.iter().map(|text| wrong_line(text, area.width, theme)).collect::<Vec<_>>()),
        wrong,
    );
    let place = |area, table: Option<Table>, sorted| Place { area, theme, focused: table == Some(model.focus), sorted };
    if links_shown {
        columns::draw(frame, &place(link_area, None, None), &links::link_columns(), &links);
    }
    let from = |order, rows: usize, area: Rect| Model::first(order, rows, usize::from(area.height.saturating_sub(1)));
    let first = from(model.paths, paths.len(), path_area);
    let sorted = paths::sorted(model.paths);
    columns::draw(frame, &place(path_area, Some(Table::Paths), sorted), &paths::path_columns(), &paths[first..]);
    let first = from(model.flows, flows.len(), flow_area);
    let sorted = flows::sorted(model.flows);
    columns::draw(frame, &place(flow_area, Some(Table::Flows), sorted), &flows::flow_columns(), &flows[first..]);
    columns::draw(frame, &place(event_area, None, None), &events::event_columns(), &events);
    if let Some(why) = no_rows(model, flows.is_empty()) {
        let below = Rect { y: flow_area.y + 1, height: flow_area.height.saturating_sub(1), ..flow_area };
        frame.render_widget(Paragraph::new(why).style(theme.faint()), below);
    }
}

/// Why there is no flow.
fn no_rows(model: &Model, empty: bool) -> Option<&'static str> {
    let data = model.shown();
    match (&data.flows, &data.away) {
        _ if !empty => None,
        (_, Some(_)) => Some("the portal does not answer"),
        (None, _) => Some("counting for a second"),
        (Some(_), _) => Some("no packet of any flow in the last seconds"),
    }
}

/// Who, since when, how many, how fast.
fn head(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: &Theme) {
    let data = model.shown();
    let first = match &data.status {
        Some(status) => {
            format!("hawser {}, up {}, {}", status.version, duration(status.uptime_s), peers(model, status))
        }
        None => "hawser: waiting for the portal".to_owned(),
    };
    let paused = if model.is_paused() { "  [paused]" } else { "" };
    let line = Line::from(vec![Span::styled(first, theme.strong()), Span::styled(paused, theme.wrong())]);
    let mut rates = vec![];
    let series = |peer: &PeerStatus| data.series.of(&Key::Peer(peer.name.clone()));
    let all: Vec<_> = model.peers().filter_map(series).collect();
    for (word, of) in [("received", 0), ("sent", 1)] {
        let newest: u64 = all.iter().map(|rates| if of == 0 { rates.newest().0 } else { rates.newest().1 }).sum();
        rates.push(Span::raw(format!("{word} {:>12} ", rate(newest))));
        rates
            .push(Span::styled(theme.spark(summed(&all, of).into_iter(), HEADER_SPARK.min(spare(area))), theme.bars()));
        rates.push(Span::raw("  "));
    }
    frame.render_widget(Paragraph::new(vec![line, Line::from(rates)]), area);
}

/// Columns that the header's two sparklines may have each: the words before them take 24.
fn spare(area: Rect) -> usize {
    usize::from(area.width / 2).saturating_sub(26)
}

/// The rates of several peers added up, the newest last.
fn summed(all: &[&super::series::Rates], of: usize) -> Vec<u64> {
    let one = |rates: &super::series::Rates| if of == 0 { rates.received.clone() } else { rates.sent.clone() };
    let mut sum: Vec<u64> = Vec::new();
    for rates in all {
        for (place, rate) in one(rates).into_iter().rev().enumerate() {
            match sum.get_mut(place) {
                Some(sum) => *sum += rate,
                None => sum.push(rate),
            }
        }
    }
    sum.reverse();
    sum
}

fn peers(model: &Model, status: &Status) -> String {
    match (&model.peer, status.peers.len()) {
        (Some(name), _) => format!("peer {name}"),
        (None, 1) => format!("peer {}", status.peers[0].name),
        (None, count) => format!("{count} peers"),
    }
}

/// What the user should know first, the worst before the rest.
fn wrongs(model: &Model) -> Vec<String> {
    let data = model.shown();
    let mut wrongs = Vec::new();
    if let Some((since, why)) = &data.away {
        let ago = duration(data.at.saturating_sub(*since).as_secs_f64());
        wrongs.push(format!("no answer for {ago}: {why}"));
    }
    if let Some(name) = model.peer.as_ref().filter(|_| data.status.is_some() && model.peers().next().is_none()) {
        wrongs.push(format!("there is no peer {name}: p shows the others"));
    }
    for peer in model.peers() {
        match peer.refused.as_deref().and_then(refusal) {
            Some([why, _]) => wrongs.push(format!("peer {} answers, and {why}", peer.name)),
            None if peer.handshake_age_s.is_none() => wrongs.push(format!("peer {}: no handshake yet", peer.name)),
            None => {}
        }
        for path in peer.paths.iter().filter(|path| path.state != PathState::Active) {
            let why = path.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            wrongs.push(format!("{} to {} is {}{why}", path.name, peer.name, path.state));
        }
    }
    let spent = data.status.iter().flat_map(|status| &status.links);
    let spent = spent.filter(|link| link.data_cap.is_some_and(|cap| cap.reached));
    wrongs.extend(spent.map(|link| format!("{}: its data cap is reached", link.name)));
    wrongs
}

fn wrong_line(text: &str, width: u16, theme: &Theme) -> Line<'static> {
    let room = usize::from(width).saturating_sub(2);
    Line::from(vec![Span::styled("! ", theme.wrong()), Span::styled(cut(text, room, theme), theme.wrong())])
}

fn keys(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: &Theme) {
    let order = match model.focus {
        Table::Paths => paths::sorted(model.paths).unwrap_or("config"),
        Table::Flows => flows::sorted(model.flows).unwrap_or("both"),
    };
    let peer = model.peer.as_deref().unwrap_or("all");
    let text = format!("q quit  ? help  Space pause  Tab table  s sort: {order}  r reverse  p peer: {peer}");
    frame.render_widget(Paragraph::new(text).style(theme.headings(false)), area);
}

fn help(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let key = |(key, what): &(&str, &str)| {
        Line::from(vec![Span::styled(format!("  {key:<KEYS$}"), theme.strong()), Span::raw((*what).to_owned())])
    };
    let mut lines = vec![Line::styled("hawser top: keys", theme.strong()), Line::default()];
    lines.extend(HELP.iter().map(key));
    lines.push(Line::default());
    let words = "Paths are shown as the portal counts their datagrams, flows by their inner packets: headers make the difference. \
                 Flows are counted while somebody looks. A rule is the [[rule]] of that place in the configuration.";
    lines.push(Line::styled(words, Style::new()));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
