//! Every series' figures as rows of CSV: for spreadsheets, and whoever draws plots of their own.

use super::{Book, Metric, Report, Summary};

/// The first row.
const HEAD: [&str; 12] =
    ["scenario", "case", "contender", "workload", "metric", "unit", "n", "mean", "sd", "median", "least", "most"];

/// A metric of a series. Plain data.
pub(super) struct Figure {
    /// Scenario, case, contender, workload, metric.
    names: [String; 5],
    summary: Summary,
}

/// In the scenario's order, then by metric.
pub(super) fn all(book: &Book<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (case, contender, workload, series) in book.all() {
        let mut metrics: Vec<&String> = series.found.iter().flat_map(|found| found.metrics.keys()).collect();
        metrics.sort_unstable();
        metrics.dedup();
        for metric in metrics {
            let names = [&book.scenario.name, &case.name, contender, workload, metric].map(str::to_owned);
            figures.extend(series.summary(metric).map(|summary| Figure { names, summary }));
        }
    }
    figures
}

/// All reports' figures.
pub(super) fn write(reports: &[Report]) -> csv::Result<Vec<u8>> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(HEAD)?;
    for Figure { names, summary } in reports.iter().flat_map(|report| &report.figures) {
        let Summary { n, mean, deviation, least, median, most } = summary;
        let unit = Metric::named(&names[4]).unit.to_owned();
        let deviation = deviation.map_or(String::new(), |deviation| deviation.to_string());
        let numbers = [mean.to_string(), deviation, median.to_string(), least.to_string(), most.to_string()];
        rows.write_record(names.iter().chain(&[unit, n.to_string()]).chain(&numbers))?;
    }
    rows.into_inner().map_err(|error| error.into_error().into())
}
