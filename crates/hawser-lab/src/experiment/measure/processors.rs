//! Processor time of the whole machine.

use std::fs;
use std::io;
use std::time::Duration;

use crate::error::LabError;

/// Columns of the line `cpu` that are no work: idle, iowait. Source: proc_stat(5).
const IDLE: [usize; 2] = [3, 4];
/// Columns that count: user, nice, system, idle, iowait, irq, softirq; steal and guests are not ours.
const COLUMNS: usize = 7;
/// /proc/stat counts in hundredths of a second (USER_HZ, 100 on every Linux architecture in use).
const TICK: Duration = Duration::from_millis(10);

/// What all processors have worked since boot, kernel and interrupts included.
pub(crate) fn busy() -> Result<Duration, LabError> {
    let parsed = fs::read_to_string("/proc/stat")
        .and_then(|text| parse(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)));
    parsed.map_err(|error| LabError::system("read /proc/stat", error))
}

fn parse(text: &str) -> Option<Duration> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let columns: Vec<u32> =
        line.split_whitespace().take(COLUMNS).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let work = columns.iter().enumerate().filter(|(column, _)| !IDLE.contains(column)).map(|(_, ticks)| ticks);
    (columns.len() == COLUMNS).then(|| TICK * work.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_no_work() {
        let text = "cpu  100 10 50 9000 400 5 35 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse(text), Some(Duration::from_secs(2)));
        assert_eq!(parse("cpu  1 2 3\n"), None);
        assert_eq!(parse(""), None);
    }
}
