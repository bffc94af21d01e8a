//! A panel: title, legend, axes with ticks and grid, marks of events. Curves come after, over them.
//!
//! ```text
//!  A.1 Two links                       title
//!  ── tcp (n = 5)  ── hawser (n = 5)   legend, in rows
//!  Goodput (Mbit/s)                    title of the upright axis
//!           wifi cut    wifi back      marks, in rows
//!   50 ┼────────┊───────────┊─── hawser
//!    0 ┴────────┊───────────┊─── tcp   direct labels, where there is room
//!      0        4           8
//!                       Time (s)
//! ```

use super::axes::{Axis, Scale};
use super::canvas::{Canvas, LINE, WIDTH, fitted, wide};
use super::style;

const AREA: f64 = 260.0;
/// Around everything.
pub(super) const MARGIN: f64 = 12.0;
/// Between a tick's text and the axis.
const TICK_GAP: f64 = 8.0;
/// Direct labels take at most this.
const LABELS: f64 = 150.0;
/// How far a direct label may be moved from its curve's end.
const MOVED: f64 = 14.0;
/// Between two direct labels.
const LABEL_LINE: f64 = 15.0;
/// Room of a sample in the legend.
const SAMPLE: f64 = 24.0;

/// How a legend shows a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    Line,
    /// A line with the mark of its points.
    Dotted,
    Filled,
    /// The dashed line of a total.
    Total,
    /// The diamond of published figures.
    Published,
}

pub(super) struct Entry {
    pub slot: usize,
    pub label: String,
    pub sample: Sample,
}

/// What a panel shows beside its curves.
#[derive(Default)]
pub(super) struct Outline {
    pub title: String,
    pub legend: Vec<Entry>,
    pub x: Axis,
    pub y: Axis,
    /// Where on the flat axis, and what happened.
    pub marks: Vec<(f64, String)>,
    /// At which figure curves end, and what may stand there.
    pub ends: Vec<(f64, String)>,
}

/// A panel with everything but its curves.
pub(super) struct Panel {
    pub canvas: Canvas,
    x: Scale,
    y: Scale,
    /// Of each mark: where on the flat axis, and where its text ends.
    marks: Vec<(f64, f64)>,
}

impl Outline {
    /// Draws all of it.
    pub(super) fn open(&self) -> Panel {
        let mut canvas = Canvas::new(self.title.clone());
        let mut top = head(&mut canvas, &self.title, &self.legend);
        canvas.text(MARGIN, top + LINE * 0.75, "muted", &self.y.title);
        top += LINE * 1.3;
        let ticks = self.y.ticks.iter().map(|(_, text)| wide(text)).fold(0.0, f64::max);
        let labels = self.ends.iter().map(|(_, label)| wide(label)).fold(0.0, f64::max);
        let has_room = labels > 0.0 && labels <= LABELS;
        let right = if has_room { MARGIN + labels + TICK_GAP } else { MARGIN * 2.0 };
        let x = Scale { low: self.x.low, high: self.x.high, start: MARGIN + ticks + TICK_GAP, end: WIDTH - right };
        let placed = self.placed_marks(x);
        let rows = placed.iter().map(|(.., row)| row + 1).max().unwrap_or(0);
        let bottom = top + rows as f64 * LINE + AREA;
        let y = Scale { low: self.y.low, high: self.y.high, start: bottom, end: bottom - AREA };
        self.draw_axes(&mut canvas, x, y);
        if has_room {
            self.label_ends(&mut canvas, x, y);
        }
        let mut marks = Vec::new();
        for ((at, middle, row), (_, what)) in placed.into_iter().zip(&self.marks) {
            let text = top + LINE * (row as f64 + 0.7);
            canvas.text(middle, text, "muted middle", what);
            marks.push((at, text + 4.0));
        }
        canvas.text((x.start + x.end) / 2.0, bottom + LINE * 2.2, "muted middle", &self.x.title);
        canvas.height = bottom + LINE * 2.2 + MARGIN;
        Panel { canvas, x, y, marks }
    }

    fn draw_axes(&self, canvas: &mut Canvas, x: Scale, y: Scale) {
        for (value, text) in &self.y.ticks {
            let at = y.at(*value);
            canvas.line("grid", (x.start, at), (x.end, at));
            canvas.text(x.start - TICK_GAP, at + 4.0, "muted end", text);
        }
        let zero = y.at(y.low.max(0.0));
        canvas.line("axis", (x.start, zero), (x.end, zero));
        let mut free = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let (at, half) = (x.at(*value), wide(text) / 2.0);
            canvas.line("axis", (at, y.start), (at, y.start + 4.0));
            if at - half > free {
                canvas.text(at, y.start + LINE, "muted middle", text);
                free = at + half + TICK_GAP / 2.0;
            }
        }
    }

    /// Labels at the ends of curves, if each finds room near its curve; the legend has them anyway.
    fn label_ends(&self, canvas: &mut Canvas, x: Scale, y: Scale) {
        let place = |value: f64| y.at(value.clamp(y.low, y.high));
        let mut ends: Vec<_> = self.ends.iter().map(|(value, label)| (place(*value), label)).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        for (at, _) in &mut ends {
            let wanted = *at;
            *at = wanted.max(free);
            if *at - wanted > MOVED {
                return;
            }
            free = *at + LABEL_LINE;
        }
        ends.into_iter().for_each(|(at, label)| canvas.text(x.end + TICK_GAP, at + 4.0, "", label));
    }

    /// Of each mark: where on the axis, its text's middle, and its row. Texts that would overlap stand in further rows.
    fn placed_marks(&self, x: Scale) -> Vec<(f64, f64, usize)> {
        let mut free: Vec<f64> = Vec::new();
        let place = |(at, what): &(f64, String)| {
            let (at, half) = (x.at(*at), wide(what) / 2.0);
            let middle = at.clamp(MARGIN + half, (WIDTH - MARGIN - half).max(MARGIN + half));
            let row = free.iter().position(|free| middle - half > *free).unwrap_or(free.len());
            if row == free.len() {
                free.push(0.0);
            }
            free[row] = middle + half + TICK_GAP;
            (at, middle, row)
        };
        self.marks.iter().map(place).collect()
    }
}

impl Panel {
    /// A curve through figures.
    pub(super) fn curve(&mut self, class: &str, points: &[(f64, f64)], tip: &str) {
        let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| self.at(x, y)).collect();
        self.canvas.curve(class, &points, tip);
    }

    /// What lies between two edges.
    pub(super) fn band(&mut self, class: &str, upper: &[(f64, f64)], lower: &[(f64, f64)], tip: &str) {
        let edge = upper.iter().chain(lower.iter().rev());
        let points: Vec<(f64, f64)> = edge.map(|&(x, y)| self.at(x, y)).collect();
        self.canvas.area(class, &points, tip);
    }

    /// A point's place, within the axis.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y.clamp(self.y.low, self.y.high)))
    }

    /// With its marks over the curves.
    pub(super) fn finish(mut self, description: String) -> Canvas {
        for (at, top) in self.marks {
            self.canvas.line("event", (at, top), (at, self.y.start));
        }
        self.canvas.description = description;
        self.canvas
    }
}

/// Title and legend; returns where what is below begins.
pub(super) fn head(canvas: &mut Canvas, title: &str, legend: &[Entry]) -> f64 {
    let mut top = MARGIN / 2.0;
    if !title.is_empty() {
        canvas.text(MARGIN, top + LINE * 0.75, "head", &fitted(title, WIDTH - MARGIN * 2.0));
        top += LINE * 1.3;
    }
    let mut x = MARGIN;
    for entry in legend {
        let width = SAMPLE + TICK_GAP + wide(&entry.label) + MARGIN;
        if x > MARGIN && x + width > WIDTH {
            x = MARGIN;
            top += LINE;
        }
        sample(canvas, entry, (x, top + LINE * 0.45));
        canvas.text(x + SAMPLE + TICK_GAP * 0.75, top + LINE * 0.7, "", &entry.label);
        x += width;
    }
    if legend.is_empty() { top } else { top + LINE * 1.3 }
}

fn sample(canvas: &mut Canvas, entry: &Entry, (x, y): (f64, f64)) {
    let class = style::class(entry.slot);
    match entry.sample {
        Sample::Filled => canvas.rect(&format!("bar {class}"), (x + SAMPLE / 2.0 - 6.0, y - 6.0), (12.0, 12.0), ""),
        Sample::Total => canvas.line("total", (x, y), (x + SAMPLE, y)),
        Sample::Published => canvas.published((x + SAMPLE / 2.0, y), ""),
        Sample::Line => canvas.line(&format!("curve {class}"), (x, y), (x + SAMPLE, y)),
        Sample::Dotted => {
            canvas.line(&format!("curve {class}"), (x, y), (x + SAMPLE, y));
            canvas.dot(entry.slot, (x + SAMPLE / 2.0, y), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_close_together_stand_in_rows_of_their_own() {
        let marks = [(1.0, "wifi cut"), (1.1, "eth cut"), (8.0, "wifi back")].map(|(at, what)| (at, what.to_owned()));
        let outline = Outline { marks: marks.into(), ..Outline::default() };
        let x = Scale { low: 0.0, high: 12.0, start: 50.0, end: 700.0 };
        assert_eq!(outline.placed_marks(x).iter().map(|(.., row)| *row).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn ends_are_labelled_only_where_there_is_room() {
        let are_labelled = |ends: &[f64]| {
            let ends = ends.iter().zip(0..).map(|(end, place)| (*end, format!("curve {place}"))).collect();
            let [x, y] = [1.0, 10.0].map(|high| Axis::nice(0.0, high, ""));
            Outline { x, y, ends, ..Outline::default() }.open().canvas.inline().contains("curve 0")
        };
        assert!(are_labelled(&[2.0, 9.0]));
        assert!(are_labelled(&[5.0, 5.2]), "they are moved a little");
        assert!(!are_labelled(&[5.0; 10]), "ten curves end at one place");
    }
}
