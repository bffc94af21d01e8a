//! Figures over time: the mean over runs, with a band of 1.5 standard deviations, and marks of what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use super::axes::ROUNDING;
use super::panel::{Entry, Outline, Sample};
use super::strands::{Strand, groups, in_words};
use super::{Axis, Book, Canvas, Case, Findings, Line, Metric, Plot, Summary, style};
use crate::experiment::Mark;

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
    /// Of the lines of this name, of a link or of none; none without a value. Those of different steps are brought to
    /// the longest.
    pub(super) fn of(found: &[&Findings], name: &str, link: Option<&str>) -> Option<Self> {
        let lines = found.iter().flat_map(|found| &found.lines);
        let lines = lines.filter(|line| line.name == name && line.link.as_deref() == link);
        let lines: Vec<&Line> = lines.filter(|line| line.step_s > 0.0 && !line.values.is_empty()).collect();
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
        for (place, Mark { at_s, what }) in findings.marks.iter().enumerate() {
            let turn = findings.marks[..place].iter().filter(|before| before.what == *what).count();
            times.entry((what.as_str(), turn)).or_default().push(*at_s);
        }
    }
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let mut marks: Vec<(f64, String)> =
        times.into_iter().map(|((what, _), times)| (mean(&times), what.to_owned())).collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    marks
}

/// A curve with its band. Made from a strand's runs.
struct Curve {
    label: String,
    slot: usize,
    track: Track,
}

/// A panel for each case; or one with a curve for each case, where there is one contender.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let groups = groups(book, plot, cases, |found| found.lines.iter().any(|line| line.name == plot.metric));
    groups.into_iter().filter_map(|(title, strands)| panel(plot, title, &strands)).collect()
}

fn panel(plot: &Plot, title: String, strands: &[Strand<'_>]) -> Option<Canvas> {
    let curves = curves(plot, strands);
    if curves.is_empty() {
        return None;
    }
    let found: Vec<&Findings> = strands.iter().flat_map(|strand| strand.series.found.iter().copied()).collect();
    let mut panel = outline(plot, title, &curves, &found).open();
    for Curve { label, slot, track } in &curves {
        let class = style::class(*slot);
        if track.values.iter().any(|value| value.error_bar() > 0.0) {
            let upper = track.points(|value| value.mean + value.error_bar());
            let lower = track.points(|value| value.mean - value.error_bar());
            panel.band(&format!("band {class}"), &upper, &lower, "");
        }
        panel.curve(&format!("curve {class}"), &track.points(|value| value.mean), label);
    }
    let summaries = curves.iter().filter_map(|curve| Some((curve.label.as_str(), curve.track.summary()?)));
    Some(panel.finish(in_words(&plot.metric, summaries)))
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
        ends: curves.iter().filter_map(|curve| Some((curve.track.values.last()?.mean, curve.label.clone()))).collect(),
    }
}

/// One for each strand, or for each strand and link where lines are of links.
fn curves(plot: &Plot, strands: &[Strand<'_>]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for Strand { label, slot, series } in strands {
        let lines = series.found.iter().flat_map(|found| &found.lines).filter(|line| line.name == plot.metric);
        let links: BTreeSet<Option<&str>> = lines.map(|line| line.link.as_deref()).collect();
        for link in links {
            let Some(track) = Track::of(&series.found, &plot.metric, link) else { continue };
            let (label, slot) = match link {
                Some(link) if strands.len() > 1 => (format!("{label}, {link}"), curves.len()),
                Some(link) => (link.to_owned(), curves.len()),
                None => (label.clone(), *slot),
            };
            curves.push(Curve { label, slot, track });
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps and values of lines; step and values of their mean.
    fn means(lines: &[(f64, &[f64])]) -> Option<(f64, Vec<f64>)> {
        let line = |&(step_s, values): &(f64, &[f64])| Line {
            name: "goodput_mbps".to_owned(),
            link: None,
            step_s,
            values: values.into(),
        };
        let found = Findings { lines: lines.iter().map(line).collect(), ..Findings::default() };
        let track = Track::of(&[&found], "goodput_mbps", None)?;
        Some((track.step, track.values.iter().map(|value| value.mean).collect()))
    }

    #[test]
    fn lines_of_several_runs_become_their_mean() {
        assert_eq!(means(&[(0.5, &[1.0, 2.0]), (0.5, &[3.0, 4.0])]), Some((0.5, vec![2.0, 3.0])));
        assert_eq!(means(&[(0.5, &[1.0, 2.0]), (0.5, &[3.0])]), Some((0.5, vec![2.0, 2.0])), "one ended earlier");
        let of_two_steps = means(&[(0.5, &[1.0, 3.0, 5.0, 7.0]), (1.0, &[2.0, 6.0])]);
        assert_eq!(of_two_steps, Some((1.0, vec![2.0, 6.0])));
        assert_eq!(means(&[(0.0, &[1.0]), (1.0, &[])]), None);
    }

    #[test]
    fn a_fine_line_is_drawn_with_no_more_points_than_are_seen() {
        let (step, values) = means(&[(0.01, &[8.0; 1200])]).expect("values");
        let count = values.len() as f64;
        assert!(count <= POINTS && (step * count - 12.0).abs() < step, "{step} {count}");
        assert!(values.iter().all(|value| (value - 8.0).abs() < 1e-9));
    }

    #[test]
    fn marks_stand_at_their_mean_time_and_as_often_as_they_were() {
        let findings = |times: &[(f64, &str)]| Findings {
            marks: times.iter().map(|&(at_s, what)| Mark { at_s, what: what.to_owned() }).collect(),
            ..Findings::default()
        };
        let [a, b] = [4.0, 4.2].map(|cut| findings(&[(cut, "cut"), (8.0, "back"), (cut + 6.0, "cut")]));
        let marks = marks(&[&a, &b]);
        let expected = [(4.1, "cut"), (8.0, "back"), (10.1, "cut")];
        assert_eq!(marks.len(), expected.len());
        for ((at, what), (expected_at, expected)) in marks.iter().zip(expected) {
            assert!((at - expected_at).abs() < 1e-9 && what == expected, "{at} {what}");
        }
    }
}
