//! Plots, as SVG: one file a kind. All take their series from [`strands`], their frame from [`panel`].

mod axes;
mod bars;
mod canvas;
mod cdf;
mod lines;
mod panel;
mod points;
mod shares;
mod strands;
pub mod style;
mod time;

pub use canvas::{Canvas, escaped};

use super::metrics::Metric;
use super::series::Book;
use crate::scenario::{Plot, PlotKind};

/// A plot, ready to be written. Plain data.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// As the scenario gives it.
    pub title: String,
    /// One or several, each a picture of its own.
    pub panels: Vec<Canvas>,
    /// Why there is none.
    pub problem: Option<String>,
}

/// The scenario's plots in its order; bars of its own metric where it asks for none.
pub(super) fn all(book: &Book<'_>) -> Vec<Drawing> {
    let scenario = book.scenario;
    if !scenario.plots.is_empty() {
        return scenario.plots.iter().map(|plot| draw(book, plot)).collect();
    }
    let metric = scenario.repeat.metric.clone();
    let title = Metric::named(&metric).axis();
    let plot = Plot { title, kind: PlotKind::Bars, cases: Vec::new(), contenders: Vec::new(), metric, axis: None };
    vec![draw(book, &plot)]
}

fn draw(book: &Book<'_>, plot: &Plot) -> Drawing {
    let cases = book.cases(&plot.cases);
    let panels = match plot.kind {
        PlotKind::Lines => lines::draw(book, plot, &cases),
        PlotKind::Bars => bars::draw(book, plot, &cases),
        PlotKind::Time => time::draw(book, plot, &cases),
        PlotKind::Shares => shares::draw(book, plot, &cases),
        PlotKind::Cdf => cdf::draw(book, plot, &cases),
    };
    let problem = panels.is_empty().then(|| match plot.kind {
        PlotKind::Lines if cases.iter().all(|case| case.x.is_none()) => "no case has an x".to_owned(),
        _ => format!("no run found {}", plot.metric),
    });
    Drawing { title: plot.title.clone(), panels, problem }
}
