//! What each link carried over time, stacked, with marks of what happened; a dashed line is what the application got.

use super::panel::{Entry, Outline, Sample};
use super::strands::{in_words, kinds, titled};
use super::time::{Track, marks};
use super::{Axis, Book, Canvas, Case, Findings, Line, Metric, Plot, case_label, style};
use crate::scenario::LinkPlan;

/// Lines of links: those of the direction that carried more are drawn.
const LINKS: [&str; 2] = ["link_down_mbps", "link_up_mbps"];
/// What the application got.
const GOODPUT: &str = "goodput_mbps";
const TOTAL: &str = "received by the application";

/// A panel for each case, contender and workload that has lines of links.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let has = |found: &Findings| found.lines.iter().any(|line| is_meant(plot, line));
    let several = book.scenario.cases.len() > 1;
    let mut panels = Vec::new();
    for kind in kinds(book, plot, cases, has) {
        for case in cases {
            let Some(series) = book.get(&case.name, kind.contender, kind.workload, has) else { continue };
            let title = if several { titled(&case_label(case), &kind.label) } else { kind.label.clone() };
            panels.extend(panel(plot, title, &series.found, &case.links));
        }
    }
    panels
}

fn is_meant(plot: &Plot, line: &Line) -> bool {
    line.link.is_some() && (line.name == plot.metric || LINKS.contains(&line.name.as_str()))
}

/// The name of the lines to draw: the plot's own, or those of the direction that carried more.
fn name<'a>(plot: &'a Plot, found: &[&Findings]) -> &'a str {
    let carried = |name: &str| -> f64 {
        let lines = found.iter().flat_map(|found| &found.lines).filter(|line| line.name == name && line.link.is_some());
        lines.map(|line| line.values.iter().sum::<f64>() * line.step_s).sum()
    };
    let own = Some(plot.metric.as_str()).filter(|name| carried(name) > 0.0);
    own.unwrap_or_else(|| LINKS.into_iter().max_by(|a, b| carried(a).total_cmp(&carried(b))).unwrap_or(LINKS[0]))
}

/// A link's part of the stack. Made from its lines.
struct Layer<'a> {
    link: &'a str,
    track: Track,
    lower: Vec<(f64, f64)>,
    upper: Vec<(f64, f64)>,
}

/// None where no link has a line.
fn panel(plot: &Plot, title: String, found: &[&Findings], links: &[LinkPlan]) -> Option<Canvas> {
    let name = name(plot, found);
    let tracks = links.iter().filter_map(|link| Some((link.name.as_str(), Track::of(found, name, Some(&link.name))?)));
    let (layers, total) = (layers(tracks.collect())?, Track::of(found, GOODPUT, None));
    let title_of_y = format!("{}, stacked, mean of n = {} runs", Metric::named(name).axis(), found.len());
    let outline = outline(title, title_of_y, &layers, total.as_ref());
    let end = outline.x.high;
    let mut panel = Outline { marks: marks(found), ..outline }.open();
    for (Layer { link, lower, upper, .. }, place) in layers.iter().zip(0..) {
        panel.band(&format!("layer {}", style::class(slot(place))), upper, lower, link);
    }
    if let Some(total) = &total {
        let mut points = total.points(|value| value.mean);
        points.retain(|(x, _)| *x <= end + total.step / 2.0);
        points.iter_mut().for_each(|(x, _)| *x = x.min(end));
        panel.curve("total", &points, TOTAL);
    }
    let summaries = layers.iter().filter_map(|layer| Some((layer.link, layer.track.summary()?)));
    Some(panel.finish(in_words(name, summaries)))
}

fn outline(title: String, title_of_y: String, layers: &[Layer<'_>], total: Option<&Track>) -> Outline {
    let entry = |slot, label: &str, sample| Entry { slot, label: label.to_owned(), sample };
    let links = layers.iter().zip(0..).map(|(layer, place)| entry(slot(place), layer.link, Sample::Filled));
    let end_of = |Layer { link, lower, upper, .. }: &Layer<'_>| {
        Some(((lower.last()?.1 + upper.last()?.1) / 2.0, (*link).to_owned()))
    };
    let stacked = layers.iter().flat_map(|layer| &layer.upper);
    let end = stacked.clone().map(|(x, _)| *x).fold(0.0, f64::max);
    let means = total.into_iter().flat_map(|total| &total.values).map(|value| value.mean);
    let most = stacked.map(|(_, y)| *y).chain(means).fold(0.0, f64::max);
    Outline {
        title,
        legend: links.chain(total.map(|_| entry(0, TOTAL, Sample::Total))).collect(),
        x: Axis::seconds(end),
        y: Axis::nice(0.0, most, title_of_y),
        ends: layers.iter().filter_map(end_of).collect(),
        ..Outline::default()
    }
}

/// Links have the later colours first: the earlier ones are contenders'.
const fn slot(place: usize) -> usize {
    (style::SLOTS / 2 + place) % style::SLOTS
}

/// From the axis up, as long as the shortest; none without a track.
fn layers(tracks: Vec<(&str, Track)>) -> Option<Vec<Layer<'_>>> {
    let steps = tracks.iter().map(|(_, track)| track.values.len()).min()?;
    let mut layers: Vec<Layer<'_>> = Vec::new();
    for (link, track) in tracks {
        let cut = Track { step: track.step, values: track.values[..steps].to_vec() };
        let points = cut.points(|value| value.mean.max(0.0));
        let axis = || points.iter().map(|&(x, _)| (x, 0.0)).collect();
        let lower: Vec<(f64, f64)> = layers.last().map_or_else(axis, |below| below.upper.clone());
        let upper = points.iter().zip(&lower).map(|(&(x, y), &(_, under))| (x, under + y)).collect();
        layers.push(Layer { link, track, lower, upper });
    }
    Some(layers)
}

#[cfg(test)]
mod tests {
    use super::super::Summary;
    use super::*;

    #[test]
    fn layers_stand_on_each_other() {
        let value = |value: f64| Summary::of(&[value]).expect("a value");
        let track = |values: [f64; 2]| Track { step: 0.5, values: values.map(value).into() };
        let tracks = [("a", track([1.0, 2.0])), ("b", track([3.0, 0.5]))];
        let layers = layers(tracks.into()).expect("two");
        let edges = [&layers[0].lower, &layers[0].upper, &layers[1].lower, &layers[1].upper];
        let heights = edges.map(|edge| edge.iter().map(|point| point.1).collect::<Vec<f64>>());
        assert_eq!(heights, [[0.0; 4], [1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0], [4.0, 4.0, 2.5, 2.5]]);
    }
}
