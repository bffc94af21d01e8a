//! Tables whose columns come as the terminal gets wider.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

use super::series::Rates;
use super::theme::Theme;
use crate::cmd::table::Align;

/// A column of rows of kind `R`. Constant.
pub struct Column<R> {
    heading: &'static str,
    align: Align,
    /// How wide it is; zero: as wide as others leave room for.
    width: u16,
    /// From which width of the terminal on it is there.
    from: u16,
    /// What a row has there, in this many columns.
    cell: Draw<R>,
}

type Draw<R> = fn(&R, &Theme, usize) -> (String, Style);

impl<R> Column<R> {
    /// A column of words: its width, and from which width of the terminal on it is there.
    pub const fn left(heading: &'static str, width: u16, from: u16, cell: Draw<R>) -> Self {
        Self { heading, align: Align::Left, width, from, cell }
    }

    /// The same of figures.
    pub const fn right(heading: &'static str, width: u16, from: u16, cell: Draw<R>) -> Self {
        Self { heading, align: Align::Right, width, from, cell }
    }
}

/// Where a table is drawn, and how. Plain view.
pub struct Place<'a> {
    /// The lines, that of headings first.
    pub area: Rect,
    /// Its looks.
    pub theme: &'a Theme,
    /// Keys work on it.
    pub focused: bool,
    /// The heading that it is sorted by.
    pub sorted: Option<&'static str>,
}

/// Draws the rows that there is room for.
pub fn draw<R>(frame: &mut Frame<'_>, place: &Place<'_>, columns: &[Column<R>], rows: &[R]) {
    let Place { area, theme, focused, sorted } = *place;
    let columns: Vec<&Column<R>> = columns.iter().filter(|column| column.from <= area.width).collect();
    let widths = widths(&columns, area.width);
    let aligned = |align: Align, text: String, style: Style| {
        let alignment = if align == Align::Right { Alignment::Right } else { Alignment::Left };
        Cell::from(Line::from(Span::styled(text, style)).alignment(alignment))
    };
    let heading = |column: &&Column<R>| {
        let mark = if sorted == Some(column.heading) { "*" } else { "" };
        aligned(column.align, format!("{}{mark}", column.heading), Style::new())
    };
    let headings = Row::new(columns.iter().map(heading)).style(theme.headings(focused));
    let room = usize::from(area.height.saturating_sub(1));
    let lines = rows.iter().take(room).map(|row| {
        let cells = columns.iter().zip(&widths).map(|(column, width)| {
            let (text, style) = (column.cell)(row, theme, usize::from(*width));
            aligned(column.align, cut(&text, usize::from(*width), theme), style)
        });
        Row::new(cells)
    });
    let constraints = widths.iter().map(|width| Constraint::Length(*width));
    frame.render_widget(Table::new(lines, constraints).header(headings).column_spacing(1), area);
}

/// What is left of the fixed ones goes to the others, in equal parts.
fn widths<R>(columns: &[&Column<R>], whole: u16) -> Vec<u16> {
    let gaps = columns.len().saturating_sub(1) as u16;
    let fixed: u16 = columns.iter().map(|column| column.width).sum::<u16>() + gaps;
    let open = columns.iter().filter(|column| column.width == 0).count().max(1) as u16;
    let part = whole.saturating_sub(fixed) / open;
    columns.iter().map(|column| if column.width == 0 { part } else { column.width }).collect()
}

/// A text of at most this many characters: what is left out is in the middle, as both ends of an address tell more.
pub fn cut(text: &str, width: usize, theme: &Theme) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (front, back) = (kept / 2, kept - kept / 2);
    let ends = text.chars().take(front).collect::<String>() + if width > 0 { theme.ellipsis() } else { "" };
    ends + &text.chars().skip(length - back).collect::<String>()
}

/// A rate for people, in bits per second.
pub fn rate(bytes_per_s: u64) -> String {
    const STEP: f64 = 1e3;
    let (mut value, mut unit) = (bytes_per_s as f64 * 8.0, 0);
    const UNITS: [&str; 4] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
    while value >= STEP && unit + 1 < UNITS.len() {
        value /= STEP;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A cell's text as it is.
pub fn plain(text: &str) -> (String, Style) {
    (text.to_owned(), Style::new())
}

/// What comes now.
pub fn received(rates: Option<&Rates>) -> String {
    rate(rates.map_or(0, |rates| rates.newest().0))
}

/// What goes now.
pub fn sent(rates: Option<&Rates>) -> String {
    rate(rates.map_or(0, |rates| rates.newest().1))
}

/// Both together, over time.
pub fn spark(rates: Option<&Rates>, theme: &Theme, width: usize) -> (String, Style) {
    (rates.map_or_else(String::new, |rates| theme.spark(rates.both(), width)), theme.bars())
}
