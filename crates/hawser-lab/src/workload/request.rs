//! Requests and answers, one after the other, by one client or several.
//!
//! 1. Each client has a stream of its own, connected before anything is measured.
//! 2. It asks, waits for the whole answer, and asks again, until time is up; a request that is under way then does not count.
//! 3. A client whose stream breaks asks no more: that is a finding.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use hawser_wire::Moment;
use hawser_wire::traffic::{Congestion, Timeline};
use socket2::Socket;
use tokio::task::JoinSet;

use super::exchange::{Answers, Counted, Streams, join, kind, side, until};
use super::figures::{Span, jain};
use super::options::Options;
use super::{CONNECT_PATIENCE, Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// What a request and an answer have, unless told: a small packet, and a page's small object.
const REQUEST_BYTES: u64 = 200;
const ANSWER_BYTES: u64 = 10_000;

/// Requests. Starts unconnected; one owner.
pub(super) struct Request {
    clients: usize,
    request: u64,
    answer: u64,
    congestion: Congestion,
    ready: Option<(Answers, Vec<Socket>)>,
    streams: Streams,
}

/// What came of one client's requests. Starts empty.
#[derive(Default)]
struct Asked {
    completion_ms: Vec<f64>,
    is_broken: bool,
}

impl Request {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            clients: options.count("clients", 1, 1)?,
            request: options.bytes("request")?.unwrap_or(REQUEST_BYTES),
            answer: options.bytes("answer")?.unwrap_or(ANSWER_BYTES),
            congestion: options.congestion()?,
            ready: None,
            streams: Streams::default(),
        })
    }
}

impl Workload for Request {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        let kind = kind(ground, self.congestion);
        let answers = Answers::start(ground, kind, &self.streams)?;
        let connect = || (0..self.clients).map(|_| kind.connect(answers.address, CONNECT_PATIENCE)).collect();
        let sockets: io::Result<Vec<Socket>> = ground.client.run(connect)?;
        let sockets = sockets.map_err(|error| LabError::system("connect clients that ask", error))?;
        self.ready = Some((answers, sockets));
        Ok(())
    }

    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let span = Span { start, duration: ground.duration };
        let (answers, sockets) = self.ready.take().ok_or_else(|| super::unprepared("request"))?;
        let kind = kind(ground, self.congestion);
        let (request, answer) = (self.request, self.answer);
        let streams = Arc::clone(&self.streams);
        let got = Arc::new(Mutex::new(Timeline::new(start)));
        let line = Arc::clone(&got);
        let thread = side(&ground.client, "requests", move || async move {
            let mut asking = JoinSet::new();
            for socket in sockets {
                let stream = Counted::of(socket, kind, &streams)?;
                let line = Arc::clone(&line);
                asking.spawn(ask_on(stream, span, request, answer, line));
            }
            Ok(asking.join_all().await)
        })?;
        let asked = join("client", thread)?;
        answers.end()?;
        let mut found = Findings::default();
        let got = got.lock().unwrap_or_else(PoisonError::into_inner);
        found.put_goodput(&got, span);
        put(&mut found, asked, span);
        let streams = std::mem::take(&mut *self.streams.lock().unwrap_or_else(PoisonError::into_inner));
        found.put_streams(ground.socket, &streams, &streams);
        Ok(found)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of one run")]
fn put(found: &mut Findings, asked: Vec<Asked>, span: Span) {
    let counts: Vec<f64> = asked.iter().map(|each| each.completion_ms.len() as f64).collect();
    found.put("requests_per_s", counts.iter().sum::<f64>() / span.duration.as_secs_f64());
    found.put("broken_flows", asked.iter().filter(|each| each.is_broken).count() as f64);
    if counts.len() > 1 {
        found.metrics.extend(jain(&counts).map(|index| ("jain".to_owned(), index)));
    }
    let all = asked.into_iter().flat_map(|each| each.completion_ms).collect();
    found.put_samples_and_high("completion_ms", "completion_p99_ms", all);
}

/// Steps 2 and 3.
async fn ask_on(mut stream: Counted, span: Span, request: u64, answer: u64, line: Arc<Mutex<Timeline>>) -> Asked {
    let mut asked = Asked::default();
    until(span.start).await;
    let asking = async {
        loop {
            let begin = Moment::now();
            let count = |bytes| line.lock().unwrap_or_else(PoisonError::into_inner).add(Moment::now(), bytes);
            if stream.ask(request, answer, count).await.is_err() {
                asked.is_broken = true;
                return;
            }
            asked.completion_ms.push((Moment::now() - begin).as_secs_f64() * 1e3);
        }
    };
    tokio::select! {
        () = asking => {}
        () = until(span.end()) => {}
    }
    asked
}
