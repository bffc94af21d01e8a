//! The distribution of samples: which share of them is at most so large. Samples of a series' runs are taken together.

use std::iter::once;

use hawser_wire::traffic;

use super::panel::{Entry, Outline, Sample};
use super::strands::{Strand, groups, in_words};
use super::{Axis, Book, Canvas, Case, Findings, Metric, Plot, Summary, style};

/// A curve has at most this many points, equally far apart in share.
const POINTS: usize = 400;

/// A panel for each case; or one with a curve for each case, where there is one contender.
pub(super) fn draw<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Canvas> {
    let has = |found: &Findings| found.samples.get(&plot.metric).is_some_and(|samples| !samples.is_empty());
    let groups = groups(book, plot, cases, has);
    groups.into_iter().filter_map(|(title, strands)| panel(plot, title, &strands)).collect()
}

fn panel(plot: &Plot, title: String, strands: &[Strand<'_>]) -> Option<Canvas> {
    let samples = |strand: &Strand<'_>| {
        let all = strand.series.found.iter().filter_map(|found| found.samples.get(&plot.metric));
        let mut samples: Vec<f64> = all.flatten().copied().collect();
        samples.sort_by(f64::total_cmp);
        samples
    };
    let curves: Vec<(&Strand<'_>, Vec<f64>)> = strands.iter().map(|strand| (strand, samples(strand))).collect();
    let ends = curves.iter().filter_map(|(_, samples)| Some((*samples.first()?, *samples.last()?)));
    let (least, most) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let entry = |(strand, samples): &(&Strand<'_>, Vec<f64>)| {
        let label = format!("{} (n = {}, {} samples)", strand.label, strand.series.found.len(), samples.len());
        Entry { slot: strand.slot, label, sample: Sample::Line }
    };
    let outline = Outline {
        title,
        legend: curves.iter().map(entry).collect(),
        x: Axis::nice(least.min(0.0), most, Metric::named(&plot.metric).axis()),
        y: Axis::nice(0.0, 1.0, "Share of samples at most so large"),
        ..Outline::default()
    };
    let mut panel = outline.open();
    for (strand, samples) in &curves {
        panel.curve(&format!("curve {}", style::class(strand.slot)), &steps(samples), &strand.label);
    }
    let summaries = curves.iter().filter_map(|(strand, samples)| Some((strand.label.as_str(), Summary::of(samples)?)));
    Some(panel.finish(in_words(&plot.metric, summaries)))
}

/// The distribution's stairs for few samples, its quantiles for many.
fn steps(samples: &[f64]) -> Vec<(f64, f64)> {
    let Some(&first) = samples.first() else { return Vec::new() };
    let count = samples.len();
    if count > POINTS {
        let sample: traffic::Sample = samples.iter().copied().collect();
        let shares = (0..=POINTS).map(|place| place as f64 / POINTS as f64);
        return shares.map(|share| (sample.percentile(share * 100.0).unwrap_or(first), share)).collect();
    }
    let stair = |(place, value): (usize, &f64)| [place, place + 1].map(|at| (*value, at as f64 / count as f64));
    once((first, 0.0)).chain(samples.iter().enumerate().flat_map(stair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_stairs_and_many_are_quantiles() {
        assert_eq!(steps(&[1.0, 3.0]), [(1.0, 0.0), (1.0, 0.0), (1.0, 0.5), (3.0, 0.5), (3.0, 1.0)]);
        assert_eq!(steps(&[]), []);
        let many: Vec<f64> = (0..=4000).map(f64::from).collect();
        let steps = steps(&many);
        assert_eq!(steps.len(), POINTS + 1);
        assert_eq!((steps[0], steps[POINTS / 2], steps[POINTS]), ((0.0, 0.0), (2000.0, 0.5), (4000.0, 1.0)));
    }
}
