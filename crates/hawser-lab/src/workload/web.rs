//! A web page: many short flows.
//!
//! 1. A page is a first object, then the rest over some connections at once, each object asked by the next that is
//!    free.
//! 2. The objects' sizes are log-normal, from a seed: every run loads the same page (Barford and Crovella: Generating
//!    Representative Web Workloads, 1998).
//! 3. Every object has a stream of its own, as without keep-alive; with it a connection asks for one after the other.
//! 4. Pages are loaded one after the other until time is up; the one under way then does not count.

use std::io;
use std::sync::{Arc, Mutex};

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::exchange::{Answers, Target, by, lock, until};
use super::{Congestion, Ground, LabError, Moment, Options, Ready, When, Workload, millis};

/// A page unless told: 40 objects of 12 kB in the median, about 1 MB in all, as HTTP Archive's lighter half.
const OBJECTS: usize = 40;
const MEDIAN_BYTES: u64 = 12_000;
/// Standard deviation of the logarithm of sizes. Source: Barford and Crovella, 1998, table 3 (1.318 for the body).
const SPREAD: f64 = 1.318;
/// No object is smaller (an answer's head) or larger.
const LEAST_BYTES: f64 = 200.0;
const MOST_BYTES: f64 = 2e6;
/// What browsers open to one server. Source: RFC 9112, section 9.4, and practice.
const CONNECTIONS: usize = 6;
/// A request's head.
const REQUEST_BYTES: u64 = 400;
/// Which page, unless told.
const PAGE: usize = 1;

/// A page, loaded again and again.
pub(super) struct Web {
    objects: Vec<u64>,
    connections: usize,
    keep_alive: bool,
    congestion: Congestion,
}

impl Web {
    pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
        let count = options.count("objects", 1, OBJECTS)?;
        let median = options.bytes("median")?.unwrap_or(MEDIAN_BYTES);
        let spread = options.number("spread", SPREAD)?;
        let page = options.count("page", 0, PAGE)? as u64;
        let web = Self {
            objects: sizes(count, median, spread, page),
            connections: options.count("connections", 1, CONNECTIONS)?,
            keep_alive: options.yes("keep-alive", false)?,
            congestion: options.congestion()?,
        };
        Ok(Box::new(move |ground| web.prepare(ground)))
    }

    fn prepare(self, ground: Ground<'_>) -> Result<Ready<'_>, LabError> {
        let answers = Answers::start(ground, self.congestion)?;
        Ok(Box::new(move |when: When| {
            let browse = |target: Target| self.browse(target, when);
            let ((page_ms, is_broken), object_ms, mut found) = answers.asked(ground, when, browse)?;
            found.put("pages", page_ms.len() as f64);
            found.put("broken_flows", f64::from(is_broken));
            found.put_samples("page_ms", page_ms);
            found.put_samples_and_high("object", object_ms);
            Ok(found)
        }))
    }

    /// Step 4: how long each page took, in milliseconds, and whether one broke, which is the last.
    async fn browse(&self, target: Target, when: When) -> io::Result<(Vec<f64>, bool)> {
        let mut page_ms = Vec::new();
        let pages = async {
            loop {
                let begin = Moment::now();
                if self.page(&target).await.is_err() {
                    return;
                }
                page_ms.push(millis(Moment::now() - begin));
            }
        };
        until(when.start).await;
        let is_broken = by(when.end(), pages).await.is_some();
        Ok((page_ms, is_broken))
    }

    /// Steps 1 and 3.
    async fn page(&self, target: &Target) -> io::Result<()> {
        let mut left = self.objects.clone().into_iter();
        let (stream, _) = target.ask(None, REQUEST_BYTES, left.next().unwrap_or_default()).await?;
        let left = Arc::new(Mutex::new(left));
        let mut loading = JoinSet::new();
        let keep_alive = self.keep_alive;
        let mut kept = Some(stream).filter(|_| keep_alive);
        for _ in 0..self.connections {
            let (target, left, mut stream) = (target.clone(), Arc::clone(&left), kept.take());
            loading.spawn(async move {
                loop {
                    let Some(size) = lock(&left).next() else { return io::Result::Ok(()) };
                    let (used, _) = target.ask(stream.filter(|_| keep_alive), REQUEST_BYTES, size).await?;
                    stream = Some(used);
                }
            });
        }
        while let Some(done) = loading.join_next().await {
            done.map_err(io::Error::other)??;
        }
        Ok(())
    }
}

/// Step 2.
fn sizes(count: usize, median: u64, spread: f64, page: u64) -> Vec<u64> {
    let mut chance = ChaCha8Rng::seed_from_u64(page);
    // Above 0 and at most 1.
    let mut fraction = || (f64::from(chance.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0);
    let size = |_| {
        // A standard normal number (Box and Muller).
        let normal = (-2.0 * fraction().ln()).sqrt() * (std::f64::consts::TAU * fraction()).cos();
        (median as f64 * (spread * normal).exp()).clamp(LEAST_BYTES, MOST_BYTES) as u64
    };
    (0..count).map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_same_objects_whenever_it_is_loaded_and_another_has_others() {
        let page = |seed| sizes(OBJECTS, MEDIAN_BYTES, SPREAD, seed);
        assert_eq!(page(1), page(1));
        assert_ne!(page(1), page(2));
    }

    #[test]
    fn sizes_are_log_normal_within_their_bounds() {
        let mut many = sizes(10_001, MEDIAN_BYTES, SPREAD, 7);
        many.sort_unstable();
        // A standard error of the median is 1.6 %, of the quantile at one deviation 2.6 %.
        let (median, one_up) = (many[5000], many[8413]);
        assert!(median.abs_diff(12_000) < 1200, "{median}");
        assert!(one_up.abs_diff(44_800) < 6000, "{one_up}");
        assert!(many[0] >= 200 && many[10_000] <= 2_000_000);
    }
}
