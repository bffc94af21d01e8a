//! A metric over the cases' `x`: means with error bars, published figures as hollow diamonds.

use super::super::series::Cell;
use super::panel::{Outline, Panel, Sample};
use super::strands::{Curve, axis, curves, described, legend};
use super::{Axis, Book, Canvas, Case, Plot, style};

/// Left and right of the first and last point, as a share of what lies between.
const PADDING: f64 = 0.04;
/// Where all figures span this many times what the closest two do, they are set out evenly: else those would meet.
const UNEVEN: f64 = 40.0;
/// More ticks than this are not set at the points themselves.
const MOST_TICKS: usize = 16;

/// One panel, of all cases that have an `x`.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let mut placed: Vec<(f64, &'a Case)> = cases.iter().filter_map(|case| Some((case.x?, *case))).collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (figures, cases): (Vec<f64>, Vec<&'a Case>) = placed.into_iter().unzip();
    let places = Places::of(figures);
    let curves = curves(book, plot, &cases);
    if curves.is_empty() {
        return Vec::new();
    }
    let end = |Curve { kind, points }: &Curve<'_>| {
        let own = points.iter().rev().find_map(|point| point.own)?;
        Some((own.mean, kind.label.clone()))
    };
    let outline = Outline {
        legend: legend(&curves, Sample::Dotted),
        x: places.axis(plot.axis.as_deref().unwrap_or_default()),
        y: axis(&plot.metric, &curves),
        ends: curves.iter().filter_map(end).collect(),
        ..Outline::default()
    };
    let at: Vec<f64> = cases.iter().map(|case| places.of_figure(case.x.unwrap_or_default())).collect();
    let mut panel = outline.open();
    curves.iter().for_each(|curve| draw_curve(&mut panel, &at, curve));
    vec![panel.finish(described(&plot.metric, &curves))]
}

/// The curve, its error bars, its marks.
fn draw_curve(panel: &mut Panel, at: &[f64], Curve { kind, points }: &Curve<'_>) {
    let class = style::class(kind.slot);
    let means = at.iter().zip(points).filter_map(|(at, point)| Some((*at, point.own?.mean)));
    panel.curve(&format!("curve {class}"), &means.collect::<Vec<_>>(), &kind.label);
    for (&at, Cell { own, published, .. }) in at.iter().zip(points) {
        if let Some(own) = own {
            if own.error_bar() > 0.0 {
                let [top, bottom] = [1.0, -1.0].map(|sign| panel.at(at, own.mean + sign * own.error_bar()));
                panel.canvas.error_bar(&format!("whisker {class}"), top, bottom);
            }
            panel.canvas.dot(kind.slot, panel.at(at, own.mean), &format!("{}: {own}", kind.label));
        }
        if let Some((value, _)) = published {
            panel.canvas.published(panel.at(at, *value), &format!("{}, published: {value}", kind.label));
        }
    }
}

/// Where figures stand on the flat axis: to scale, or a step apart. Made of sorted figures.
struct Places {
    figures: Vec<f64>,
    even: bool,
}

impl Places {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.dedup();
        let closest = figures.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let span = figures.last().copied().unwrap_or(0.0) - figures.first().copied().unwrap_or(0.0);
        Self { even: figures.len() > 2 && span / closest > UNEVEN, figures }
    }

    fn of_figure(&self, x: f64) -> f64 {
        if self.even { self.figures.iter().position(|figure| *figure == x).unwrap_or(0) as f64 } else { x }
    }

    fn axis(&self, title: &str) -> Axis {
        let place = |figure: Option<&f64>| figure.map_or(0.0, |figure| self.of_figure(*figure));
        let (first, last) = (place(self.figures.first()), place(self.figures.last()));
        let padding = if last > first { (last - first) * PADDING } else { 1.0 };
        let (low, high) = (first - padding, last + padding);
        let tick = |figure: &f64| (self.of_figure(*figure), figure.to_string().replace('-', "−"));
        let ticks = match self.figures.len() {
            ..=MOST_TICKS => self.figures.iter().map(tick).collect(),
            _ => Axis::nice(low, high, "").ticks.into_iter().filter(|(at, _)| (low..=high).contains(at)).collect(),
        };
        let title = match (self.even, title) {
            (true, "") => "not to scale".to_owned(),
            (true, title) => format!("{title}, not to scale"),
            (false, title) => title.to_owned(),
        };
        Axis { low, high, ticks, title }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_far_apart_are_set_out_evenly() {
        let reordering = Places::of(vec![0.0, 3.0, 5.0, 10.0, 15.0, 30.0, 300.0]);
        assert_eq!(reordering.axis("net.ipv4.tcp_reordering").title, "net.ipv4.tcp_reordering, not to scale");
        assert_eq!((reordering.of_figure(5.0), reordering.of_figure(300.0)), (2.0, 6.0));
        let links = Places::of(vec![1.0, 1.0, 2.0, 4.0]);
        assert_eq!((links.axis("links").title.as_str(), links.of_figure(4.0)), ("links", 4.0));
        assert_eq!(links.axis("links").ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["1", "2", "4"]);
    }
}
