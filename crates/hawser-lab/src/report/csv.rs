//! Every series' figures as rows (RFC 4180): for spreadsheets, and whoever draws plots of their own.

use super::Report;
use super::metrics::Metric;
use super::series::Book;
use super::statistics::Summary;

/// The first row.
const HEAD: &str = "scenario,case,contender,workload,metric,unit,n,mean,sd,median,least,most";
/// RFC 4180, section 2.
const END: &str = "\r\n";

/// A metric of a series. Plain data.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Scenario, case, contender, workload, metric.
    names: [String; 5],
    summary: Summary,
}

/// In the scenario's order, then by metric.
pub(super) fn figures(book: &Book<'_>) -> Vec<Figure> {
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
pub(super) fn write(reports: &[Report]) -> String {
    let mut text = format!("{HEAD}{END}");
    for Figure { names, summary } in reports.iter().flat_map(|report| &report.figures) {
        let Summary { n, mean, deviation, least, median, most } = summary;
        let deviation = deviation.map_or(String::new(), |deviation| deviation.to_string());
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let unit = quoted(Metric::named(&names[4]).unit);
        text.push_str(&format!("{},{unit},{n},{mean},{deviation},{median},{least},{most}{END}", names.join(",")));
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let rows = [("tcp", "tcp"), ("hawser, udp", "\"hawser, udp\""), ("a \"b\"", "\"a \"\"b\"\"\"")];
        rows.into_iter().for_each(|(field, expected)| assert_eq!(quoted(field), expected));
    }
}
