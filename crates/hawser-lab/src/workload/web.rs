//! A web page: many short flows.
//!
//! 1. A page is a first object, then the rest over some connections at once, each object asked by the next that is
//!    free.
//! 2. The objects' sizes are log-normal, from a seed: every run loads the same page (Barford and Crovella: Generating
//!    Representative Web Workloads, 1998).
//! 3. Every object has a stream of its own, as without keep-alive; with it a connection asks for one after the other.
//! 4. Pages are loaded one after the other until time is up; the one under way then does not count.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use hawser_wire::traffic::Timeline;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::exchange::{Answers, Counted, Target, ask, by, join, lock, side, until};
use super::{Congestion, Findings, Ground, LabError, Moment, Options, Span, Workload};

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

/// A page, loaded again and again. Starts without a server; one owner.
pub(super) struct Web {
    objects: Vec<u64>,
    connections: usize,
    keep_alive: bool,
    congestion: Congestion,
    ready: Option<Answers>,
}

/// Where pages are loaded from, and what is kept. Shared by the streams of a page.
#[derive(Clone)]
struct Browser {
    target: Target,
    connections: usize,
    keep_alive: bool,
    got: Arc<Mutex<Got>>,
}

/// What came. Starts empty.
struct Got {
    line: Timeline,
    object_ms: Vec<f64>,
    page_ms: Vec<f64>,
    is_broken: bool,
}

impl Web {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        let count = options.count("objects", 1, OBJECTS)?;
        let median = options.bytes("median")?.unwrap_or(MEDIAN_BYTES);
        let spread = options.number("spread", SPREAD)?;
        let page = options.count("page", 0, PAGE)? as u64;
        Ok(Self {
            objects: sizes(count, median, spread, page),
            connections: options.count("connections", 1, CONNECTIONS)?,
            keep_alive: options.yes("keep-alive", false)?,
            congestion: options.congestion()?,
            ready: None,
        })
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

impl Workload for Web {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        self.ready = Some(Answers::start(ground, self.congestion)?);
        Ok(())
    }

    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let span = Span { start, duration: ground.duration };
        let answers = self.ready.take().ok_or_else(|| super::unprepared("web"))?;
        let line = Timeline::new(start);
        let got = Got { line, object_ms: Vec::new(), page_ms: Vec::new(), is_broken: false };
        let browser = Browser {
            target: answers.target.clone(),
            connections: self.connections,
            keep_alive: self.keep_alive,
            got: Arc::new(Mutex::new(got)),
        };
        let (objects, loading) = (self.objects.clone(), browser.clone());
        let thread = side(&ground.client, "browser", move || async move {
            until(span.start).await;
            by(span.end(), loading.pages(&objects)).await;
            Ok(())
        })?;
        join("client", thread)?;
        let streams = answers.end()?;
        let mut found = Findings::default();
        let mut got = lock(&browser.got);
        found.put_goodput(&got.line, span);
        found.put("pages", got.page_ms.len() as f64);
        found.put("broken_flows", f64::from(got.is_broken));
        found.put_samples("page_ms", std::mem::take(&mut got.page_ms));
        found.put_samples_and_high("object", std::mem::take(&mut got.object_ms));
        found.put_streams(ground.socket, &streams, &streams);
        Ok(found)
    }
}

impl Browser {
    /// Step 4. A page that breaks is the last.
    async fn pages(&self, objects: &[u64]) {
        loop {
            let begin = Moment::now();
            if self.page(objects).await.is_err() {
                self.note(|got| got.is_broken = true);
                return;
            }
            self.note(|got| got.page_ms.push((Moment::now() - begin).as_secs_f64() * 1e3));
        }
    }

    /// Step 1.
    async fn page(&self, objects: &[u64]) -> io::Result<()> {
        let mut left: VecDeque<u64> = objects.iter().copied().collect();
        let first = left.pop_front().unwrap_or_default();
        let stream = self.load(None, first).await?;
        let left = Arc::new(Mutex::new(left));
        let mut loading = JoinSet::new();
        let mut kept = Some(stream).filter(|_| self.keep_alive);
        for _ in 0..self.connections {
            let (browser, left, mut stream) = (self.clone(), Arc::clone(&left), kept.take());
            loading.spawn(async move {
                loop {
                    let next = lock(&left).pop_front();
                    let Some(size) = next else { return io::Result::Ok(()) };
                    stream = Some(browser.load(stream.filter(|_| browser.keep_alive), size).await?);
                }
            });
        }
        while let Some(done) = loading.join_next().await {
            done.map_err(io::Error::other)??;
        }
        Ok(())
    }

    /// Step 3.
    async fn load(&self, stream: Option<Counted>, size: u64) -> io::Result<Counted> {
        let begin = Moment::now();
        let mut stream = match stream {
            Some(stream) => stream,
            None => Counted::dial(&self.target).await?,
        };
        let note = |bytes| self.note(|got| got.line.add(Moment::now(), bytes));
        ask(&mut stream.stream, REQUEST_BYTES, size, note).await?;
        self.note(|got| got.object_ms.push((Moment::now() - begin).as_secs_f64() * 1e3));
        Ok(stream)
    }

    fn note(&self, what: impl FnOnce(&mut Got)) {
        what(&mut lock(&self.got));
    }
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
