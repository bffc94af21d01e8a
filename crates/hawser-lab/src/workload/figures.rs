//! From what arrived to figures with names.

use std::time::Duration;

use hawser_wire::traffic::{PingReport, Sample, StreamInfo, Timeline};

use super::{Findings, Stack, When};
use crate::experiment::Line;

/// Steps of lines, and of the fine one, from which recovery times are told.
const STEP: Duration = Duration::from_millis(500);
const FINE_STEP: Duration = Duration::from_millis(10);
/// Which percentile stands beside a median.
pub(super) const HIGH: f64 = 99.0;

impl Findings {
    pub(crate) fn put(&mut self, name: impl Into<String>, value: f64) {
        self.metrics.insert(name.into(), value);
    }

    /// A figure, where there is one.
    pub(crate) fn put_some(&mut self, name: &str, value: Option<f64>) {
        self.metrics.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// How fairly several share.
    pub(super) fn put_jain(&mut self, shares: &[f64]) {
        self.put_some("jain", jain(shares).filter(|_| shares.len() > 1));
    }

    /// A figure over time, of no link.
    pub(crate) fn put_line(&mut self, name: impl Into<String>, step_s: f64, values: Vec<f64>) {
        self.lines.push(Line { name: name.into(), link: None, step_s, values });
    }

    /// Rates over whole steps; a step at the end that is not whole is left out.
    fn put_rates(&mut self, name: &str, got: &Timeline, when: When, step: Duration) {
        let steps = u32::try_from(when.duration.as_nanos() / step.as_nanos()).unwrap_or(u32::MAX);
        let at = |index: u32| when.start + step * index;
        let values = (0..steps).map(|index| got.mbps_between(at(index), at(index + 1))).collect();
        self.put_line(name, step.as_secs_f64(), values);
    }

    /// Goodput and its line, under a name of its own.
    pub(super) fn put_rate(&mut self, name: &str, got: &Timeline, when: When) {
        self.put(name, got.mbps_between(when.start, when.end()));
        self.put_rates(name, got, when, STEP);
    }

    /// What all bytes together amount to: goodput, its lines, and the longest gap.
    pub(super) fn put_goodput(&mut self, got: &Timeline, when: When) {
        self.put_rate("goodput_mbps", got, when);
        self.put_rates("goodput_fine_mbps", got, when, FINE_STEP);
        self.put("longest_gap_ms", millis(got.longest_gap(when.start, when.end())));
    }

    /// Samples under a name; their median as a figure. None without any.
    pub(super) fn put_samples(&mut self, name: &str, values: Vec<f64>) {
        if !values.is_empty() {
            self.put_some(name, Sample::from_iter(values.iter().copied()).median());
            self.samples.insert(name.to_owned(), values);
        }
    }

    /// As [`Findings::put_samples`] under `STEM_ms`, with the 99th percentile.
    pub(super) fn put_samples_and_high(&mut self, stem: &str, values: Vec<f64>) {
        self.put_some(&format!("{stem}_p99_ms"), Sample::from_iter(values.iter().copied()).percentile(HIGH));
        self.put_samples(&format!("{stem}_ms"), values);
    }

    /// What a ping told. One that nobody answered has no times.
    pub(super) fn put_ping(&mut self, report: &PingReport, when: When) {
        let counted = report.echoes.iter().filter(|echo| echo.sent >= when.start + when.after);
        let counted: Vec<f64> = counted.map(|echo| millis(echo.round_trip)).collect();
        let times = Sample::from_iter(counted.iter().copied());
        self.put_some("rtt_ms", times.median());
        self.put_some("rtt_p99_ms", times.percentile(HIGH));
        self.put("ping_loss_percent", 100.0 * ratio(report.lost(), report.sent.len()));
        let step = |time: Duration| usize::try_from(time.as_nanos() / FINE_STEP.as_nanos()).unwrap_or(usize::MAX);
        let mut values = vec![0.0; step(when.duration)];
        let echoes = report.echoes.iter().map(|echo| (echo.sent, -1.0));
        for (sent, count) in report.sent.iter().map(|&sent| (sent, 1.0)).chain(echoes) {
            values.get_mut(step(sent.since(when.start))).into_iter().for_each(|lost| *lost += count);
        }
        self.put_line("ping_lost_fine", FINE_STEP.as_secs_f64(), values);
        self.samples.insert("round_trip_ms".to_owned(), counted);
    }

    /// What the kernel knew of the sending sockets, and of the receiving ones.
    pub(super) fn put_streams(&mut self, stack: Stack, senders: &[StreamInfo], receivers: &[StreamInfo]) {
        if senders.is_empty() {
            return;
        }
        let sum = |infos: &[StreamInfo]| infos.iter().copied().fold(StreamInfo::default(), StreamInfo::with);
        let (sent, got) = (sum(senders), sum(receivers));
        self.put("retransmissions", sent.retransmissions as f64);
        self.put("needless_retransmissions", sent.duplicates_told as f64);
        self.put("reordering_packets", f64::from(sent.reordering));
        self.put("reordering_events", sent.reordering_seen as f64);
        self.put("out_of_order_packets", got.out_of_order as f64);
        if stack == Stack::Mptcp {
            self.put("subflows", f64::from(sent.subflows) / senders.len() as f64);
            let fallen = senders.iter().filter(|info| info.has_fallen_back).count();
            self.put("fallbacks", fallen as f64);
        }
    }
}

/// Jain's index: 1 where all have the same, 1/n where one has all; none where nobody has anything.
/// Source: Jain, Chiu and Hawe, A Quantitative Measure of Fairness, DEC-TR-301, 1984.
pub(crate) fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A part of a whole; nothing of nothing is nothing.
pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use hawser_wire::Moment;

    use super::*;

    #[test]
    fn jains_index_is_as_the_paper_has_it() {
        let table: [(&[f64], Option<f64>); 5] = [
            (&[], None),
            (&[0.0, 0.0], None),
            (&[7.0], Some(1.0)),
            (&[5.0, 5.0, 5.0], Some(1.0)),
            // (1 + 2 + 3)² / (3 (1 + 4 + 9))
            (&[1.0, 2.0, 3.0], Some(36.0 / 42.0)),
        ];
        for (shares, expected) in table {
            assert_eq!(jain(shares), expected, "{shares:?}");
        }
    }

    #[test]
    fn goodput_counts_what_came_in_the_span_and_its_line_has_every_whole_step() {
        let start = Moment::from_nanos(1_000_000_000);
        let when = When { start, duration: Duration::from_millis(1200), after: Duration::ZERO };
        let mut got = Timeline::new(start);
        for (at, bytes) in [(100, 62_500), (700, 125_000), (1300, 1_000_000)] {
            got.add(start + Duration::from_millis(at), bytes);
        }
        let mut found = Findings::default();
        found.put_goodput(&got, when);
        assert!((found.metrics["goodput_mbps"] - 1.25).abs() < 1e-9, "{found:?}");
        assert!((found.metrics["longest_gap_ms"] - 599.0).abs() < 1e-6, "{found:?}");
        assert_eq!((found.lines[0].step_s, &*found.lines[0].values), (0.5, &[1.0, 2.0][..]));
        assert_eq!((found.lines[1].step_s, found.lines[1].values.len()), (0.01, 120));
    }

    #[test]
    fn no_samples_make_no_figure() {
        let mut found = Findings::default();
        found.put_samples_and_high("page", vec![]);
        assert_eq!(found, Findings::default());
        found.put_samples_and_high("page", vec![30.0, 10.0]);
        assert_eq!((found.metrics["page_ms"], found.samples["page_ms"].len()), (20.0, 2));
        assert!((found.metrics["page_p99_ms"] - 29.8).abs() < 1e-9);
    }
}
