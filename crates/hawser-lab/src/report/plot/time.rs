//! Figures over time: the mean over runs, with a band of 1.5 standard deviations, and marks of what happened.

use std::collections::BTreeMap;
use std::iter::once;

use super::axes::ROUNDING;
use super::panel::{Entry, Outline, Panel, Sample};
use super::strands::{Strand, in_words, titled};
use super::{Axis, Book, Canvas, Case, Findings, Line, Metric, Plot, Summary, style};

/// A drawing has at most about this many points: more are not seen.
const POINTS: f64 = 240.0;

/// The mean of several lines, step by step. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Track {
    /// Seconds from one value to the next.
    pub step: f64,
    pub values: Vec<Summary>,
}

impl Track {
    /// None without a value. Lines of different steps are brought to the longest.
    pub(super) fn of(lines: &[&Line]) -> Option<Self> {
        let lines: Vec<&&Line> = lines.iter().filter(|line| line.step_s > 0.0 && !line.values.is_empty()).collect();
        let longest = lines.iter().map(|line| line.step_s * line.values.len() as f64).fold(0.0, f64::max);
        let step = lines.iter().map(|line| line.step_s).fold(0.0, f64::max);
        if step <= 0.0 {
            return None;
        }
        let step = step * (longest / step / POINTS).ceil().max(1.0);
        let count = (longest / step - ROUNDING).ceil() as usize;
        let at = |place| lines.iter().filter_map(|line| mean_within(line, step, place)).collect::<Vec<f64>>();
        let values = (0..count).map_while(|place| Summary::of(&at(place))).collect();
        Some(Self { step, values })
    }

    pub(super) fn end(&self) -> f64 {
        self.step * self.values.len() as f64
    }

    /// Of the means.
    pub(super) fn summary(&self) -> Option<Summary> {
        Summary::of(&self.values.iter().map(|value| value.mean).collect::<Vec<_>>())
    }

    /// The middle of each step, and something of its values; the ends lie on the first and last step's edges.
    pub(super) fn points(&self, of: impl Fn(&Summary) -> f64) -> Vec<(f64, f64)> {
        let middles = (0..self.values.len()).map(|place| (place as f64 + 0.5) * self.step);
        let times = once(0.0).chain(middles).chain(once(self.end()));
        let values = self.values.first().into_iter().chain(&self.values).chain(self.values.last());
        times.zip(values.map(of)).collect()
    }
}

/// A line's mean over one of those steps, by time; none after its end.
fn mean_within(line: &Line, step: f64, place: usize) -> Option<f64> {
    let (from, to) = (step * place as f64, step * (place + 1) as f64);
    let first = (from / line.step_s + ROUNDING).floor() as usize;
    let (mut sum, mut time) = (0.0, 0.0);
    for (number, value) in line.values.iter().enumerate().skip(first) {
        let start = number as f64 * line.step_s;
        if start >= to - ROUNDING {
            break;
        }
        let part = (start + line.step_s).min(to) - start.max(from);
        sum += value * part;
        time += part;
    }
    (time > 0.0).then(|| sum / time)
}

/// What happened in those runs, at its mean time, in order. What happens several times is several marks.
pub(super) fn marks(found: &[&Findings]) -> Vec<(f64, String)> {
    let mut times: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    for findings in found {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for mark in &findings.marks {
            let turn = seen.entry(&mark.what).or_default();
            times.entry((&mark.what, *turn)).or_default().push(mark.at_s);
            *turn += 1;
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let mut marks: Vec<(f64, String)> =
        times.into_iter().map(|((what, _), times)| (mean(&times), what.to_owned())).collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    marks
}

/// A panel for each case; or one with a curve for each case, where there is one contender.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let groups =
        super::strands::groups(book, plot, cases, |found| found.lines.iter().any(|line| line.name == plot.metric));
    groups.into_iter().filter_map(|(title, strands)| panel(plot, title, &strands)).collect()
}

/// A curve with its band. Made from a strand's runs.
struct Curve {
    label: String,
    slot: usize,
    track: Track,
}

fn panel(plot: &Plot, title: String, strands: &[Strand<'_>]) -> Option<Canvas> {
    let curves = curves(plot, strands);
    if curves.is_empty() {
        return None;
    }
    let found: Vec<&Findings> = strands.iter().flat_map(|strand| strand.series.found.iter().copied()).collect();
    let mut panel = outline(plot, title, &curves, &found).open();
    let ends = curves.iter().filter_map(|curve| draw_curve(&mut panel, curve)).collect();
    panel.draw_marks();
    panel.label_ends(ends);
    panel.canvas.title = titled(&plot.title, &panel.canvas.title);
    let summaries = curves.iter().filter_map(|curve| Some((curve.label.clone(), curve.track.summary()?)));
    panel.canvas.description = in_words(&plot.metric, summaries);
    Some(panel.canvas)
}

fn outline(plot: &Plot, title: String, curves: &[Curve], found: &[&Findings]) -> Outline {
    let end = curves.iter().map(|curve| curve.track.end()).fold(0.0, f64::max);
    let values = curves.iter().flat_map(|curve| &curve.track.values);
    let most = values.map(|value| value.mean + value.error_bar()).fold(0.0, f64::max);
    let entry = |Curve { label, slot, track }: &Curve| {
        let n = track.values.iter().map(|value| value.n).max().unwrap_or(0);
        Entry { slot: *slot, label: format!("{label} (n = {n})"), sample: Sample::Line }
    };
    Outline {
        title,
        legend: curves.iter().map(entry).collect(),
        x: Axis::seconds(end),
        y: Axis::nice(0.0, most, Metric::named(&plot.metric).axis()),
        marks: marks(found),
        labels: curves.iter().map(|curve| curve.label.clone()).collect(),
    }
}

/// The curve over its band; returns where it ends.
fn draw_curve(panel: &mut Panel, Curve { label, slot, track }: &Curve) -> Option<(f64, String)> {
    let class = style::class(*slot);
    let place = |(x, y): (f64, f64)| panel.at(x, y.clamp(panel.y.low, panel.y.high));
    let upper = track.points(|value| value.mean + value.error_bar());
    let lower = track.points(|value| value.mean - value.error_bar());
    let band: Vec<(f64, f64)> = upper.into_iter().chain(lower.into_iter().rev()).map(place).collect();
    let line: Vec<(f64, f64)> = track.points(|value| value.mean).into_iter().map(place).collect();
    if track.values.iter().any(|value| value.error_bar() > 0.0) {
        panel.canvas.area(&format!("band {class}"), &band, "");
    }
    panel.canvas.curve(&format!("curve {class}"), &line, label);
    line.last().map(|(_, y)| (*y, label.clone()))
}

/// One for each strand, or for each strand and link where lines are of links.
fn curves(plot: &Plot, strands: &[Strand<'_>]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for strand in strands {
        let mut by_link: BTreeMap<Option<&str>, Vec<&Line>> = BTreeMap::new();
        let lines = strand.series.found.iter().flat_map(|found| &found.lines);
        lines
            .filter(|line| line.name == plot.metric)
            .for_each(|line| by_link.entry(line.link.as_deref()).or_default().push(line));
        for (link, lines) in by_link {
            let label = match link {
                Some(link) if strands.len() > 1 => format!("{}, {link}", strand.label),
                Some(link) => link.to_owned(),
                None => strand.label.clone(),
            };
            let slot = if link.is_some() { curves.len() } else { strand.slot };
            curves.extend(Track::of(&lines).map(|track| Curve { label, slot, track }));
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Mark;

    fn line(step_s: f64, values: &[f64]) -> Line {
        Line { name: "goodput_mbps".to_owned(), link: None, step_s, values: values.into() }
    }

    fn means(lines: &[Line]) -> (f64, Vec<f64>) {
        let track = Track::of(&lines.iter().collect::<Vec<_>>()).expect("values");
        (track.step, track.values.iter().map(|value| value.mean).collect())
    }

    #[test]
    fn lines_of_several_runs_become_their_mean() {
        assert_eq!(means(&[line(0.5, &[1.0, 2.0]), line(0.5, &[3.0, 4.0])]), (0.5, vec![2.0, 3.0]));
        assert_eq!(means(&[line(0.5, &[1.0, 2.0]), line(0.5, &[3.0])]), (0.5, vec![2.0, 2.0]), "one ended earlier");
        assert_eq!(
            means(&[line(0.5, &[1.0, 3.0, 5.0, 7.0]), line(1.0, &[2.0, 6.0])]),
            (1.0, vec![2.0, 6.0]),
            "of two steps"
        );
        assert_eq!(Track::of(&[&line(0.0, &[1.0]), &line(1.0, &[])]), None);
    }

    #[test]
    fn a_fine_line_is_drawn_with_no_more_points_than_are_seen() {
        let (step, values) = means(&[line(0.01, &vec![8.0; 1200])]);
        assert!(
            values.len() as f64 <= POINTS && (step * values.len() as f64 - 12.0).abs() < step,
            "{step} {}",
            values.len()
        );
        assert!(values.iter().all(|value| (value - 8.0).abs() < 1e-9));
    }

    #[test]
    fn marks_stand_at_their_mean_time_and_as_often_as_they_were() {
        let findings = |times: &[(f64, &str)]| Findings {
            marks: times.iter().map(|&(at_s, what)| Mark { at_s, what: what.to_owned() }).collect(),
            ..Findings::default()
        };
        let (a, b) = (
            findings(&[(4.0, "cut"), (8.0, "back"), (10.0, "cut")]),
            findings(&[(4.2, "cut"), (8.0, "back"), (10.2, "cut")]),
        );
        let marks: Vec<(f64, String)> = marks(&[&a, &b]);
        let expected = [(4.1, "cut"), (8.0, "back"), (10.1, "cut")];
        assert_eq!(marks.len(), expected.len());
        for ((at, what), (expected_at, expected)) in marks.iter().zip(expected) {
            assert!((at - expected_at).abs() < 1e-9 && what == expected, "{at} {what}");
        }
    }
}
