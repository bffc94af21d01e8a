//! What each link carried over time, stacked, with marks of what happened; a dashed line is what the application got.

use super::panel::{Entry, Outline, Panel, Sample};
use super::strands::{in_words, kinds, titled};
use super::time::{Track, marks};
use super::{Axis, Book, Canvas, Case, Findings, Line, Metric, Plot, case_label, style};

/// Lines of links: those of the direction that carried more are drawn.
const LINKS: [&str; 2] = ["link_down_mbps", "link_up_mbps"];
/// What the application got.
const GOODPUT: &str = "goodput_mbps";
/// And its words.
const TOTAL: &str = "received by the application";

/// A panel for each case, contender and workload that has lines of links.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let has = |found: &Findings| found.lines.iter().any(|line| is_meant(plot, line));
    let several = book.scenario.cases.len() > 1;
    let mut panels = Vec::new();
    for kind in kinds(book, plot, cases, has) {
        for case in cases {
            let Some((_, series)) = kind.of(book, case, has) else { continue };
            let title = if several { titled(&case_label(case), &kind.label) } else { kind.label.clone() };
            let links: Vec<&str> = case.links.iter().map(|link| link.name.as_str()).collect();
            panels.extend(panel(plot, title, &series.found, &links));
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

/// What is drawn of a series. Made from its runs.
struct Stack<'a> {
    /// Of the lines.
    name: &'a str,
    /// Of links, from the axis up.
    tracks: Vec<(&'a str, Track)>,
    /// What the application got.
    total: Option<Track>,
    /// Of the layers: one more than there are links.
    edges: Vec<Vec<(f64, f64)>>,
    /// Of the time.
    end: f64,
}

impl<'a> Stack<'a> {
    /// None where no link has a line.
    fn of(plot: &'a Plot, found: &[&Findings], links: &[&'a str]) -> Option<Self> {
        let name = name(plot, found);
        let track = |name: &str, link: Option<&str>| {
            let lines = found.iter().flat_map(|found| &found.lines);
            Track::of(&lines.filter(|line| line.name == name && line.link.as_deref() == link).collect::<Vec<_>>())
        };
        let tracks: Vec<(&str, Track)> =
            links.iter().filter_map(|link| Some((*link, track(name, Some(link))?))).collect();
        let steps = tracks.iter().map(|(_, track)| track.values.len()).min()?;
        let end = tracks.iter().map(|(_, track)| track.step).fold(0.0, f64::max) * steps as f64;
        Some(Self { name, total: track(GOODPUT, None), edges: layers(&tracks, steps), tracks, end })
    }

    fn outline(&self, title: String, found: &[&Findings]) -> Outline {
        let stacked = self.edges.last().into_iter().flatten().map(|point| point.1);
        let total = self.total.iter().flat_map(|total| &total.values).map(|value| value.mean);
        let most = stacked.chain(total).fold(0.0, f64::max);
        let title_of_y = format!("{}, stacked, mean of n = {} runs", Metric::named(self.name).axis(), found.len());
        let link = |(place, (link, _)): (usize, &(&str, Track))| Entry {
            slot: slot(place),
            label: (*link).to_owned(),
            sample: Sample::Filled,
        };
        let mut legend: Vec<Entry> = self.tracks.iter().enumerate().map(link).collect();
        legend.extend(self.total.as_ref().map(|_| Entry { slot: 0, label: TOTAL.to_owned(), sample: Sample::Total }));
        Outline {
            title,
            legend,
            x: Axis::seconds(self.end),
            y: Axis::nice(0.0, most, title_of_y),
            marks: marks(found),
            labels: self.tracks.iter().map(|(link, _)| (*link).to_owned()).collect(),
        }
    }

    fn draw(&self, panel: &mut Panel) {
        let mut ends = Vec::new();
        for ((place, (link, _)), edges) in self.tracks.iter().enumerate().zip(self.edges.windows(2)) {
            let edge = |points: &[(f64, f64)]| points.iter().map(|&(x, y)| panel.at(x, y)).collect::<Vec<_>>();
            let (lower, upper) = (edge(&edges[0]), edge(&edges[1]));
            if let (Some(below), Some(above)) = (lower.last(), upper.last()) {
                ends.push(((below.1 + above.1) / 2.0, (*link).to_owned()));
            }
            let outline: Vec<(f64, f64)> = upper.into_iter().chain(lower.into_iter().rev()).collect();
            panel.canvas.area(&format!("layer {}", style::class(slot(place))), &outline, link);
        }
        if let Some(total) = &self.total {
            let points =
                total.points(|value| value.mean).into_iter().filter(|(x, _)| *x <= self.end + total.step / 2.0);
            let points: Vec<(f64, f64)> = points.map(|(x, y)| panel.at(x.min(self.end), y)).collect();
            panel.canvas.curve("total", &points, TOTAL);
        }
        panel.draw_marks();
        panel.label_ends(ends);
    }
}

fn panel(plot: &Plot, title: String, found: &[&Findings], links: &[&str]) -> Option<Canvas> {
    let stack = Stack::of(plot, found, links)?;
    let mut panel = stack.outline(title.clone(), found).open();
    stack.draw(&mut panel);
    panel.canvas.title = titled(&plot.title, &title);
    let summaries = stack.tracks.iter().filter_map(|(link, track)| Some(((*link).to_owned(), track.summary()?)));
    panel.canvas.description = in_words(stack.name, summaries);
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
