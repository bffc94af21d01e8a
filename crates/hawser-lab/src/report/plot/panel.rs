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
use super::canvas::{Anchor, Canvas, LINE, WIDTH, fitted, wide};
use super::style;

/// Height of the plot's area.
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
    /// A line.
    Line,
    /// A line with the mark of its points.
    Dotted,
    /// A filled square.
    Filled,
    /// The dashed line of a total.
    Total,
    /// The diamond of published figures.
    Published,
}

/// A line of the legend.
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
    /// What may stand at the curves' ends.
    pub labels: Vec<String>,
}

/// A panel with everything but its curves.
pub(super) struct Panel {
    pub canvas: Canvas,
    pub x: Scale,
    pub y: Scale,
    /// Of each mark: where on the flat axis, and where its text ends.
    marks: Vec<(f64, f64)>,
}

/// A mark's place: on the axis, its text's middle, and its row.
struct Placed<'a> {
    at: f64,
    middle: f64,
    row: usize,
    what: &'a str,
}

impl Outline {
    /// Draws all of it.
    pub(super) fn open(&self) -> Panel {
        let mut canvas = Canvas::new(self.title.clone());
        let mut top = head(&mut canvas, &self.title, &self.legend);
        canvas.text(MARGIN, top + LINE * 0.75, "muted", Anchor::Start, &self.y.title);
        top += LINE * 1.3;
        let ticks = self.y.ticks.iter().map(|(_, text)| wide(text)).fold(0.0, f64::max);
        let labels = self.labels.iter().map(|label| wide(label)).fold(0.0, f64::max);
        let right = if labels > 0.0 && labels <= LABELS { MARGIN + labels + TICK_GAP } else { MARGIN * 2.0 };
        let x = Scale { low: self.x.low, high: self.x.high, start: MARGIN + ticks + TICK_GAP, end: WIDTH - right };
        let marks = self.placed_marks(x);
        let rows = marks.iter().map(|mark| mark.row + 1).max().unwrap_or(0);
        let bottom = top + rows as f64 * LINE + AREA;
        let y = Scale { low: self.y.low, high: self.y.high, start: bottom, end: bottom - AREA };
        self.draw_axes(&mut canvas, x, y);
        let mut ends = Vec::new();
        for Placed { at, middle, row, what } in marks {
            let text = top + LINE * (row as f64 + 0.7);
            canvas.text(middle, text, "muted", Anchor::Middle, what);
            ends.push((at, text + 4.0));
        }
        canvas.text((x.start + x.end) / 2.0, bottom + LINE * 2.2, "muted", Anchor::Middle, &self.x.title);
        canvas.height = bottom + LINE * 2.2 + MARGIN;
        Panel { canvas, x, y, marks: ends }
    }

    fn draw_axes(&self, canvas: &mut Canvas, x: Scale, y: Scale) {
        for (value, text) in &self.y.ticks {
            let at = y.at(*value);
            canvas.line("grid", (x.start, at), (x.end, at));
            canvas.text(x.start - TICK_GAP, at + 4.0, "muted", Anchor::End, text);
        }
        let zero = y.at(y.low.max(0.0));
        canvas.line("axis", (x.start, zero), (x.end, zero));
        let mut free = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let (at, half) = (x.at(*value), wide(text) / 2.0);
            canvas.line("axis", (at, y.start), (at, y.start + 4.0));
            if at - half > free {
                canvas.text(at, y.start + LINE, "muted", Anchor::Middle, text);
                free = at + half + TICK_GAP / 2.0;
            }
        }
    }

    /// Texts that would overlap stand in further rows.
    fn placed_marks(&self, x: Scale) -> Vec<Placed<'_>> {
        let mut free: Vec<f64> = Vec::new();
        let place = |(at, what): &(f64, String)| (x.at(*at), wide(what) / 2.0);
        let mut placed = Vec::new();
        for mark in &self.marks {
            let (at, half) = place(mark);
            let middle = at.clamp(MARGIN + half, (WIDTH - MARGIN - half).max(MARGIN + half));
            let row = free.iter().position(|free| middle - half > *free).unwrap_or(free.len());
            if row == free.len() {
                free.push(0.0);
            }
            free[row] = middle + half + TICK_GAP;
            placed.push(Placed { at, middle, row, what: &mark.1 });
        }
        placed
    }
}

impl Panel {
    /// What lies over the curves.
    pub(super) fn draw_marks(&mut self) {
        for (at, top) in &self.marks {
            self.canvas.line("event", (*at, *top), (*at, self.y.start));
        }
    }

    /// Labels at the ends of curves (height and text), if each finds room near its curve; the legend has them anyway.
    pub(super) fn label_ends(&mut self, mut ends: Vec<(f64, String)>) {
        let widest = ends.iter().map(|(_, label)| wide(label)).fold(0.0, f64::max);
        if widest > LABELS || widest + TICK_GAP > WIDTH - self.x.end {
            return;
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        let mut placed = Vec::new();
        for (wanted, label) in ends {
            let at = wanted.max(free);
            if at - wanted > MOVED {
                return;
            }
            free = at + LABEL_LINE;
            placed.push((at, label));
        }
        for (at, label) in placed {
            self.canvas.text(self.x.end + TICK_GAP, at + 4.0, "", Anchor::Start, &label);
        }
    }

    /// A point's place.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }
}

/// Title and legend; returns where what is below begins.
pub(super) fn head(canvas: &mut Canvas, title: &str, legend: &[Entry]) -> f64 {
    let mut top = MARGIN / 2.0;
    if !title.is_empty() {
        let title = fitted(title, WIDTH - MARGIN * 2.0);
        canvas.text(MARGIN, top + LINE * 0.75, "head", Anchor::Start, &title);
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
        canvas.text(x + SAMPLE + TICK_GAP * 0.75, top + LINE * 0.7, "", Anchor::Start, &entry.label);
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
        assert_eq!(outline.placed_marks(x).iter().map(|mark| mark.row).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn ends_are_labelled_only_where_there_is_room() {
        let are_labelled = |ends: &[f64]| {
            let labels: Vec<String> = (0..ends.len()).map(|place| format!("curve {place}")).collect();
            let axis = |high| Axis::nice(0.0, high, "");
            let outline = Outline { x: axis(1.0), y: axis(10.0), labels: labels.clone(), ..Outline::default() };
            let mut panel = outline.open();
            let ends: Vec<f64> = ends.iter().map(|value| panel.y.at(*value)).collect();
            panel.label_ends(ends.into_iter().zip(labels).collect());
            panel.canvas.inline().contains("curve 0")
        };
        assert!(are_labelled(&[2.0, 9.0]));
        assert!(are_labelled(&[5.0, 5.2]), "they are moved a little");
        assert!(!are_labelled(&[5.0; 10]), "ten curves end at one place");
    }
}
