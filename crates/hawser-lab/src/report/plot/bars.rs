//! A metric as bars by case and contender, lying, so that names have room: with error bars, figures, and the published.

use super::super::series::Cell;
use super::super::statistics::number;
use super::axes::Scale;
use super::canvas::{LINE, WIDTH, fitted, wide};
use super::panel::{MARGIN, Sample, head};
use super::strands::{Curve, Kind, axis, curves, described, legend};
use super::{Axis, Book, Canvas, Case, Plot, case_label, style};

const BAR: f64 = 15.0;
const GAP: f64 = 3.0;
/// From a case to the next.
const GROUP_GAP: f64 = 12.0;
/// The most that names of cases take.
const NAMES: f64 = 250.0;
/// Room for figures right of the bars.
const FIGURES: f64 = 64.0;
/// From a bar to its figure.
const BESIDE: f64 = 6.0;
/// From the middle of a published figure's mark to what stands beside it.
const AROUND: f64 = 10.0;

type Bar<'a> = (&'a Kind<'a>, &'a Cell);

/// One panel of all cases.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let curves = curves(book, plot, cases);
    if curves.is_empty() { Vec::new() } else { vec![panel(plot, cases, &curves)] }
}

fn panel(plot: &Plot, cases: &[&Case], curves: &[Curve<'_>]) -> Canvas {
    let mut canvas = Canvas::default();
    let top = head(&mut canvas, "", &legend(curves, Sample::Filled));
    let names = cases.iter().map(|case| wide(&case_label(case))).fold(0.0, f64::max).min(NAMES);
    let Axis { low, high, ticks, title } = axis(&plot.metric, curves);
    let x = Scale { low, high, start: MARGIN + names + MARGIN, end: WIDTH - FIGURES };
    // A case has bars of its own contenders only.
    let bars = |place: usize| curves.iter().map(move |curve| (&curve.kind, &curve.points[place]));
    let group = |place| bars(place).filter(|(_, point)| point.absence.is_some()).collect();
    let groups: Vec<Vec<Bar<'_>>> = (0..cases.len()).map(group).collect();
    let height = |group: &[Bar<'_>]| group.len().max(1) as f64 * (BAR + GAP);
    let bottom = top + groups.iter().map(|group| height(group) + GROUP_GAP).sum::<f64>();
    for (value, text) in &ticks {
        let at = x.at(*value);
        canvas.line("grid", (at, top), (at, bottom));
        canvas.text(at, bottom + LINE, "muted middle", text);
    }
    let mut y = top + GROUP_GAP / 2.0;
    for (case, group) in cases.iter().zip(&groups) {
        canvas.text(MARGIN, y + height(group) / 2.0 + 3.0, "", &fitted(&case_label(case), names));
        for (place, bar) in group.iter().enumerate() {
            draw_bar(&mut canvas, x, y + place as f64 * (BAR + GAP), bar);
        }
        y += height(group) + GROUP_GAP;
    }
    let zero = x.at(low.max(0.0));
    canvas.line("axis", (zero, top), (zero, bottom));
    let below = bottom + LINE * 2.2;
    canvas.text((x.start + x.end) / 2.0, below, "muted middle", &title);
    canvas.height = below + MARGIN;
    canvas.description = described(&plot.metric, curves);
    canvas
}

/// A bar, its error bar, the published figure, and its own.
fn draw_bar(canvas: &mut Canvas, x: Scale, y: f64, (kind, point): &Bar<'_>) {
    let zero = x.at(0.0_f64.max(x.low));
    let middle = y + BAR / 2.0;
    let mut right = zero;
    if let Some(own) = &point.own {
        let end = x.at(own.mean);
        let class = format!("bar {}", style::class(kind.slot));
        canvas.rect(&class, (zero.min(end), y), ((end - zero).abs(), BAR), &format!("{}: {own}", kind.label));
        let (low, high) = (x.at((own.mean - own.error_bar()).max(x.low)), x.at(own.mean + own.error_bar()));
        if own.error_bar() > 0.0 {
            canvas.line("halo", (low, middle), (high, middle));
            canvas.error_bar("error", (low, middle), (high, middle));
        }
        right = right.max(high);
    }
    let figure = point.own.map_or_else(|| point.absence.unwrap_or_default().to_owned(), |own| short(own.mean));
    if let Some((value, _)) = point.published {
        let at = x.at(value);
        canvas.published((at, middle), &format!("{}, published: {value}", kind.label));
        // The figure stands beside its own bar, but not over the published one's mark.
        let room = right - AROUND..right + AROUND + BESIDE + wide(&figure);
        right = if room.contains(&at) { at + AROUND - BESIDE } else { right };
    }
    canvas.text(right + BESIDE, middle + 4.0, "muted", &figure);
}

/// Three digits, about.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    number(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits() {
        let rows = [(1234.5, "1234"), (93.14, "93.1"), (9.314, "9.31"), (-0.5, "−0.50")];
        rows.into_iter().for_each(|(value, text)| assert_eq!(short(value), text));
    }
}
