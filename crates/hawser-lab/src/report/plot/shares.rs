//! What each link carried over time, stacked, with marks of what happened; a dashed line is what the application got.

use super::super::metrics::Metric;
use super::super::series::Book;
use super::super::statistics::Summary;
use super::axes::nice;
use super::canvas::Canvas;
use super::panel::{Entry, Outline, Sample};
use super::strands::{Strand, in_words, titled};
use super::style;
use super::time::{Track, marks};
use crate::experiment::{Findings, Line};
use crate::scenario::{Case, Plot};

/// Lines of links: those of the direction that carried more are drawn.
const LINKS: [&str; 2] = ["link_down_mbps", "link_up_mbps"];
/// What the application got.
const GOODPUT: &str = "goodput_mbps";

/// A panel for each case, contender and workload that has lines of links.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let has = |found: &Findings| found.lines.iter().any(|line| is_meant(plot, line));
    let several = book.scenario.cases.len() > 1;
    let mut panels = Vec::new();
    for kind in super::strands::kinds(book, plot, cases, has) {
        for case in cases {
            let Some((_, series)) = kind.of(book, case, has) else { continue };
            let title =
                if several { titled(&super::strands::case_label(case), &kind.label) } else { kind.label.clone() };
            let links: Vec<&str> = case.links.iter().map(|link| link.name.as_str()).collect();
            let strand = Strand { label: kind.label.clone(), slot: kind.slot, series };
            panels.extend(panel(plot, title, &strand, &links));
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

fn panel(plot: &Plot, title: String, strand: &Strand<'_>, links: &[&str]) -> Option<Canvas> {
    let found = &strand.series.found;
    let name = name(plot, found);
    let track = |name: &str, link: Option<&str>| {
        let lines = found.iter().flat_map(|found| &found.lines);
        Track::of(&lines.filter(|line| line.name == name && line.link.as_deref() == link).collect::<Vec<_>>())
    };
    let tracks: Vec<(&str, Track)> = links.iter().filter_map(|link| Some((*link, track(name, Some(link))?))).collect();
    let total = track(GOODPUT, None);
    let first = tracks.iter().map(|(_, track)| track.values.len()).min()?;
    let sums = layers(&tracks, first);
    let end = tracks.iter().map(|(_, track)| track.step).fold(0.0, f64::max) * first as f64;
    let highest = sums.last()?.iter().map(|point| point.1);
    let highest =
        highest.chain(total.iter().flat_map(|total| &total.values).map(|value| value.mean)).fold(0.0, f64::max);
    let (low, high, y_ticks) = nice(0.0, highest);
    let mut legend: Vec<Entry> = tracks
        .iter()
        .enumerate()
        .map(|(place, (link, _))| Entry { slot: slot(place), label: (*link).to_owned(), sample: Sample::Filled })
        .collect();
    if total.is_some() {
        legend.push(Entry { slot: 0, label: "received by the application".to_owned(), sample: Sample::Total });
    }
    let outline = Outline {
        title: title.clone(),
        legend,
        x: (0.0, end),
        x_ticks: nice(0.0, end).2.into_iter().filter(|(at, _)| *at <= end).collect(),
        x_title: "Time (s)".to_owned(),
        y: (low, high),
        y_ticks,
        y_title: format!("{}, stacked, mean of n = {} runs", Metric::named(name).axis(), found.len()),
        marks: marks(found),
        labels: links.iter().map(|link| (*link).to_owned()).collect(),
    };
    let mut panel = outline.open();
    let mut ends = Vec::new();
    for (place, (link, _)) in tracks.iter().enumerate() {
        let edge = |points: &[(f64, f64)]| points.iter().map(|&(x, y)| panel.at(x, y)).collect::<Vec<_>>();
        let (lower, upper) = (edge(&sums[place]), edge(&sums[place + 1]));
        if let (Some(below), Some(above)) = (lower.last(), upper.last()) {
            ends.push(((below.1 + above.1) / 2.0, (*link).to_owned()));
        }
        let outline: Vec<(f64, f64)> = upper.into_iter().chain(lower.into_iter().rev()).collect();
        panel.canvas.area(&format!("layer {}", style::class(slot(place))), &outline, link);
    }
    if let Some(total) = total {
        let points = total.points(|value| value.mean).into_iter().filter(|(x, _)| *x <= end + total.step / 2.0);
        let points: Vec<(f64, f64)> = points.map(|(x, y)| panel.at(x.min(end), y)).collect();
        panel.canvas.curve("total", &points, "received by the application");
    }
    panel.draw_marks();
    panel.label_ends(ends);
    panel.canvas.title = titled(&plot.title, &title);
    panel.canvas.description = in_words(
        name,
        tracks.iter().filter_map(|(link, track)| {
            Some(((*link).to_owned(), Summary::of(&track.values.iter().map(|value| value.mean).collect::<Vec<_>>())?))
        }),
    );
    Some(panel.canvas)
}

/// Links have the later colours first: the earlier ones are contenders'.
const fn slot(place: usize) -> usize {
    (style::SLOTS / 2 + place) % style::SLOTS
}

/// The edges of the layers, from the axis up: one more than there are links.
fn layers(tracks: &[(&str, Track)], steps: usize) -> Vec<Vec<(f64, f64)>> {
    let mut edges: Vec<Vec<(f64, f64)>> = Vec::new();
    for (_, track) in tracks {
        let cut = Track { step: track.step, values: track.values[..steps].to_vec() };
        let points = cut.points(|value| value.mean.max(0.0));
        let below = edges.last().cloned().unwrap_or_else(|| points.iter().map(|&(x, _)| (x, 0.0)).collect());
        if edges.is_empty() {
            edges.push(below.clone());
        }
        edges.push(points.iter().zip(&below).map(|(&(x, y), &(_, under))| (x, under + y)).collect());
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64]) -> Line {
        Line { name: "link_down_mbps".to_owned(), link: Some("a".to_owned()), step_s: 0.5, values: values.into() }
    }

    #[test]
    fn layers_stand_on_each_other() {
        let tracks = [("a", [1.0, 2.0]), ("b", [3.0, 0.5])]
            .map(|(name, values)| (name, Track::of(&[&line(&values)]).expect("values")));
        let heights: Vec<Vec<f64>> =
            layers(&tracks, 2).iter().map(|edge| edge.iter().map(|point| point.1).collect()).collect();
        assert_eq!(heights, [[0.0; 4], [1.0, 1.0, 2.0, 2.0], [4.0, 4.0, 2.5, 2.5]]);
    }
}
