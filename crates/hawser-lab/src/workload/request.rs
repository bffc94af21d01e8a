//! Requests and answers, one after the other, by one client or several.
//!
//! 1. Each client has a stream of its own, connected before anything is measured; or a fresh one for each request,
//!    whose time then counts from before it connects.
//! 2. It asks, waits for the whole answer, perhaps pauses, and asks again, for one size after the other, until time
//!    is up; a request that is under way then does not count.
//! 3. A stream that breaks is a finding: its client asks no more, unless it has a fresh one for each request.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_wire::traffic::Timeline;
use socket2::Socket;
use tokio::task::JoinSet;

use super::exchange::{Answers, Counted, Target, ask, by, join, lock, side, until};
use super::{CONNECT_PATIENCE, Congestion, Findings, Ground, LabError, Moment, Options, Span, Workload};

/// What a request and an answer have, unless told: a small packet, and a page's small object.
const REQUEST_BYTES: u64 = 200;
const ANSWER_BYTES: u64 = 10_000;
/// Before a fresh stream is tried again, once one broke.
const AFTER_A_BREAK: Duration = Duration::from_millis(100);

/// Requests. Starts unconnected; one owner.
pub(super) struct Request {
    clients: usize,
    request: u64,
    /// Sizes as they were written, with their bytes; at least one.
    answers: Vec<(String, u64)>,
    is_fresh: bool,
    pause: Duration,
    congestion: Congestion,
    ready: Option<(Answers, Vec<Socket>)>,
}

/// What came of one client's requests: the size's place, and how long it took. Starts empty.
#[derive(Default)]
struct Asked {
    completion_ms: Vec<(usize, f64)>,
    broken: u32,
}

/// How a client asks. Shared by all; plain data.
#[derive(Clone)]
struct Asking {
    span: Span,
    target: Target,
    request: u64,
    answers: Vec<u64>,
    pause: Duration,
    line: Arc<Mutex<Timeline>>,
}

impl Request {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self {
            clients: options.count("clients", 1, 1)?,
            request: options.bytes("request")?.unwrap_or(REQUEST_BYTES),
            answers: answers(options)?,
            is_fresh: options.yes("fresh", false)?,
            pause: options.time("pause")?.unwrap_or_default(),
            congestion: options.congestion()?,
            ready: None,
        })
    }
}

impl Workload for Request {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        let answers = Answers::start(ground, self.congestion)?;
        let standing = if self.is_fresh { 0 } else { self.clients };
        let Target { kind, address, .. } = answers.target;
        let connect = || (0..standing).map(|_| kind.connect(address, CONNECT_PATIENCE)).collect();
        let sockets: io::Result<Vec<Socket>> = ground.client.run(connect)?;
        let sockets = sockets.map_err(|error| LabError::system("connect clients that ask", error))?;
        self.ready = Some((answers, sockets));
        Ok(())
    }

    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let span = Span { start, duration: ground.duration };
        let (answers, sockets) = self.ready.take().ok_or_else(|| super::unprepared("request"))?;
        let got = Arc::new(Mutex::new(Timeline::new(start)));
        let asking = Asking {
            span,
            target: answers.target.clone(),
            request: self.request,
            answers: self.answers.iter().map(|&(_, bytes)| bytes).collect(),
            pause: self.pause,
            line: Arc::clone(&got),
        };
        let fresh = if self.is_fresh { self.clients } else { 0 };
        let thread = side(&ground.client, "requests", move || async move {
            let mut clients = JoinSet::new();
            for socket in sockets {
                let stream = Counted::of(socket, &asking.target)?;
                clients.spawn(asking.clone().ask_on(Some(stream)));
            }
            (0..fresh).for_each(|_| drop(clients.spawn(asking.clone().ask_on(None))));
            Ok(clients.join_all().await)
        })?;
        let asked = join("client", thread)?;
        let streams = answers.end()?;
        let mut found = Findings::default();
        found.put_goodput(&lock(&got), span);
        put(&mut found, &asked, span, &self.answers);
        found.put_streams(ground.socket, &streams, &streams);
        Ok(found)
    }
}

/// `answer`, or each of `answers`.
fn answers(options: &mut Options) -> Result<Vec<(String, u64)>, LabError> {
    let one = options.bytes("answer")?;
    let names = options.names("answers")?;
    match (one, names.is_empty()) {
        (Some(_), false) => Err(options.fault("`answer` beside `answers`: leave one of them out")),
        (one, true) => Ok(vec![(String::new(), one.unwrap_or(ANSWER_BYTES))]),
        (None, false) => {
            names.into_iter().map(|name| Ok((name.clone(), options.bytes_of("answers", &name)?))).collect()
        }
    }
}

fn put(found: &mut Findings, asked: &[Asked], span: Span, sizes: &[(String, u64)]) {
    let counts: Vec<f64> = asked.iter().map(|each| each.completion_ms.len() as f64).collect();
    found.put("requests_per_s", counts.iter().sum::<f64>() / span.duration.as_secs_f64());
    found.put("broken_flows", asked.iter().map(|each| f64::from(each.broken)).sum());
    found.put_jain(&counts);
    for (place, (name, _)) in sizes.iter().enumerate() {
        let of_size = asked.iter().flat_map(|each| &each.completion_ms).filter(|(size, _)| *size == place);
        let times = of_size.map(|&(_, time)| time).collect();
        let size = if name.is_empty() { String::new() } else { format!("_{name}") };
        found.put_samples_and_high(&format!("completion{size}"), times);
    }
}

impl Asking {
    /// Steps 2 and 3, over one stream, or a fresh one each time.
    async fn ask_on(self, stream: Option<Counted>) -> Asked {
        let mut asked = Asked::default();
        until(self.span.start).await;
        by(self.span.end(), self.ask_again(stream, &mut asked)).await;
        asked
    }

    async fn ask_again(&self, mut stream: Option<Counted>, asked: &mut Asked) {
        for (place, &answer) in self.answers.iter().enumerate().cycle() {
            let begin = Moment::now();
            let answered = match &mut stream {
                Some(stream) => self.ask(stream, answer).await,
                None => self.ask_afresh(answer).await,
            };
            match answered {
                Ok(()) => asked.completion_ms.push((place, (Moment::now() - begin).as_secs_f64() * 1e3)),
                Err(_) => asked.broken += 1,
            }
            if stream.is_some() && asked.broken > 0 {
                return;
            }
            // One that is refused at once is not asked for in a busy loop.
            let rest = if asked.broken > 0 { self.pause.max(AFTER_A_BREAK) } else { self.pause };
            if !rest.is_zero() {
                until(Moment::now() + rest).await;
            }
        }
    }

    async fn ask_afresh(&self, answer: u64) -> io::Result<()> {
        let mut stream = Counted::dial(&self.target).await?;
        self.ask(&mut stream, answer).await
    }

    async fn ask(&self, stream: &mut Counted, answer: u64) -> io::Result<()> {
        let count = |bytes| lock(&self.line).add(Moment::now(), bytes);
        ask(&mut stream.stream, self.request, answer, count).await
    }
}
