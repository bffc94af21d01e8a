//! Recordings of links, from the text of files that others published.
//!
//! 1. [`mahimahi`]: each line is the millisecond at which 1500 bytes may leave (Netravali et al., "Mahimahi", 2015).
//! 2. [`drives`]: throughput of several links in one car in the same seconds, as a table.

use crate::net::Recording;
use crate::net::spec::mbit_rate;
use hawser_core::units::{ByteCount, Rate};
use std::time::Duration;

/// Bytes of an opportunity, and how many ms of them are one step.
const OPPORTUNITY: u64 = 1500;
const STEP_MS: u64 = 20;

/// One drive: for each link, the rate of each second.
#[derive(Clone, Debug)]
pub struct Drive {
    /// Its number in the table.
    pub number: u32,
    /// By link, the Mbit/s of each second.
    pub rates: Vec<Vec<f64>>,
}

/// Step 1. `None` where there is nothing but other text.
pub fn mahimahi(text: &str) -> Option<Recording> {
    let mut steps: Vec<u64> = Vec::new();
    for at in text.lines().filter_map(|line| line.trim().parse::<u64>().ok()) {
        // An opportunity at the end of a millisecond belongs to it.
        let step = (at.saturating_sub(1) / STEP_MS) as usize;
        if steps.len() <= step {
            steps.resize(step + 1, 0);
        }
        steps[step] += OPPORTUNITY;
    }
    let length = Duration::from_millis(STEP_MS);
    Recording::new(steps.into_iter().map(|bytes| (length, Rate::of(ByteCount(bytes), length))))
}

/// Step 2: the names of the links, and all drives. Columns that are no numbers are no links.
pub fn drives(text: &str) -> (Vec<String>, Vec<Drive>) {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').skip(2).collect();
    let mut names: Vec<String> = Vec::new();
    let mut all: Vec<Drive> = Vec::new();
    for line in lines {
        let mut cells = line.split(',');
        let Some(number) = cells.next().and_then(|cell| cell.trim().parse().ok()) else { continue };
        let rates: Vec<f64> = cells.skip(1).map_while(|cell| cell.trim().parse().ok()).collect();
        if names.is_empty() {
            names = heads.iter().take(rates.len()).map(|name| (*name).to_owned()).collect();
        }
        if all.last().is_none_or(|drive| drive.number != number) {
            all.push(Drive { number, rates: vec![Vec::new(); names.len()] });
        }
        let drive = all.last_mut().expect("one was pushed");
        drive.rates.iter_mut().zip(rates).for_each(|(link, rate)| link.push(rate));
    }
    (names, all)
}

impl Drive {
    /// Seconds.
    pub fn seconds(&self) -> usize {
        self.rates.first().map_or(0, Vec::len)
    }

    /// A stretch of a link of it, at a multiple of the rate.
    pub fn stretch(&self, link: usize, from: usize, seconds: usize, scale: f64) -> Option<Recording> {
        let rates = self.rates.get(link)?.iter().skip(from).take(seconds);
        Recording::new(rates.map(|mbit| (Duration::from_secs(1), mbit_rate(mbit * scale))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hawser_core::units::Time;

    #[test]
    fn lines_are_opportunities() {
        let recording = mahimahi("1\n1\n20\n21\n60\n").expect("a recording");
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let bytes = [(0, 20), (20, 40), (40, 60)].map(|(from, to)| recording.carries(at(from), at(to)).0);
        assert_eq!(bytes, [4_500, 1_500, 1_500]);
        assert!(mahimahi("nothing\n").is_none());
    }

    #[test]
    fn a_table_is_cut_into_drives_and_stretches() {
        let (names, drives) = drives("drive,second,a,b,area\n0,0,1,2.5,x\n0,1,3,4,x\n5,0,6,7,y\n");
        assert_eq!((names, drives.len()), (vec!["a".to_owned(), "b".to_owned()], 2));
        assert_eq!((drives[0].rates.clone(), drives[1].number), (vec![vec![1.0, 3.0], vec![2.5, 4.0]], 5));
        assert_eq!(drives[0].stretch(1, 1, 9, 0.5).expect("a second").mean(), mbit_rate(2.0));
        assert!(drives[0].stretch(1, 2, 9, 0.5).is_none());
    }
}
