//! Plots, as SVG: one file a kind. All take their series from [`strands`], their frame from [`panel`].

mod axes;
mod bars;
mod canvas;
mod cdf;
mod lines;
mod panel;
mod shares;
mod strands;
pub mod style;
mod time;

pub use canvas::{Canvas, escaped};

use super::series::case_label;
use super::{Book, Metric, Scenario, Summary};
use crate::experiment::{Findings, Line};
use crate::scenario::{Case, Plot, PlotKind};
use axes::Axis;
use strands::titled;

/// A plot, ready to be written. Plain data.
pub struct Drawing {
    pub title: String,
    /// One or several, each a picture of its own.
    pub panels: Vec<Canvas>,
    /// Why there is none.
    pub problem: Option<String>,
}

/// The scenario's plots in its order; bars of its own metric where it asks for none.
pub(super) fn all(book: &Book<'_>) -> Vec<Drawing> {
    let Scenario { plots, repeat, .. } = book.scenario;
    if !plots.is_empty() {
        return plots.iter().zip(1..).map(|(plot, number)| draw(book, plot, number)).collect();
    }
    let (title, metric) = (Metric::named(&repeat.metric).axis(), repeat.metric.clone());
    let plot = Plot { title, kind: PlotKind::Bars, cases: Vec::new(), contenders: Vec::new(), metric, axis: None };
    vec![draw(book, &plot, 1)]
}

fn draw(book: &Book<'_>, plot: &Plot, number: usize) -> Drawing {
    let cases = book.cases(&plot.cases);
    let mut panels = match plot.kind {
        PlotKind::Lines => lines::draw(book, plot, &cases),
        PlotKind::Bars => bars::draw(book, plot, &cases),
        PlotKind::Time => time::draw(book, plot, &cases),
        PlotKind::Shares => shares::draw(book, plot, &cases),
        PlotKind::Cdf => cdf::draw(book, plot, &cases),
    };
    let several = panels.len() > 1;
    for (panel, part) in panels.iter_mut().zip(1..) {
        let part = if several { format!("-{part}") } else { String::new() };
        panel.name = format!("{}-{number}{part}", book.scenario.name);
        panel.title = titled(&plot.title, &panel.title);
    }
    let problem = panels.is_empty().then(|| match plot.kind {
        PlotKind::Lines if cases.iter().all(|case| case.x.is_none()) => "no case has an x".to_owned(),
        _ => format!("no run found {}", plot.metric),
    });
    Drawing { title: plot.title.clone(), panels, problem }
}
