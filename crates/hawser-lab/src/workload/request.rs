//! Requests and answers, one after the other, by one client or several.
//!
//! 1. Each client has a stream of its own, connected before anything is measured; or a fresh one for each request,
//!    whose time then counts from before it connects.
//! 2. It asks, waits for the whole answer, perhaps pauses, and asks again, for one size after the other, until time
//!    is up; a request that is under way then does not count.
//! 3. A stream that breaks is a finding: its client asks no more, unless it has a fresh one for each request.

use std::io;
use std::time::Duration;

use socket2::Socket;
use tokio::task::JoinSet;

use super::exchange::{Answers, Counted, Target, by, until};
use super::{Congestion, Findings, Ground, LabError, Moment, Options, Ready, When, Workload};

/// What a request and an answer have, unless told: a small packet, and a page's small object.
const REQUEST_BYTES: u64 = 200;
const ANSWER_BYTES: u64 = 10_000;
/// Before a fresh stream is tried again, once one broke.
const AFTER_A_BREAK: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(super) struct Request {
    clients: usize,
    request: u64,
    /// What figures of an answer's size have in their names, with its bytes; at least one.
    answers: Vec<(String, u64)>,
    is_fresh: bool,
    pause: Duration,
    congestion: Congestion,
}

/// What came of one client's requests: the size's place, and how long it took. Starts empty.
#[derive(Default)]
struct Asked {
    completion_ms: Vec<(usize, f64)>,
    broken: u32,
}

impl Request {
    pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
        let request = Self {
            clients: options.count("clients", 1, 1)?,
            request: options.bytes("request")?.unwrap_or(REQUEST_BYTES),
            answers: answers(options)?,
            is_fresh: options.yes("fresh", false)?,
            pause: options.time("pause")?.unwrap_or_default(),
            congestion: options.congestion()?,
        };
        Ok(Box::new(move |ground| request.prepare(ground)))
    }

    fn prepare(self, ground: Ground<'_>) -> Result<Ready<'_>, LabError> {
        let answers = Answers::start(ground, self.congestion)?;
        let connect = |_| (!self.is_fresh).then(|| answers.connect()).transpose();
        let sockets: io::Result<Vec<_>> = ground.client.run(|| (0..self.clients).map(connect).collect())?;
        let sockets = sockets.map_err(|error| LabError::system("connect clients that ask", error))?;
        Ok(Box::new(move |when: When| {
            let ask_all = |target: Target| self.ask_all(target, sockets, when);
            let (asked, _, mut found) = answers.asked(ground, when, ask_all)?;
            self.put(&mut found, &asked, when);
            Ok(found)
        }))
    }

    fn put(&self, found: &mut Findings, asked: &[Asked], when: When) {
        let counts: Vec<f64> = asked.iter().map(|each| each.completion_ms.len() as f64).collect();
        found.put("requests_per_s", counts.iter().sum::<f64>() / when.duration.as_secs_f64());
        found.put("broken_flows", asked.iter().map(|each| f64::from(each.broken)).sum());
        found.put_jain(&counts);
        for (place, (name, _)) in self.answers.iter().enumerate() {
            let of_size = asked.iter().flat_map(|each| &each.completion_ms).filter(|(size, _)| *size == place);
            let times = of_size.map(|&(_, time)| time).collect();
            found.put_samples_and_high(&format!("completion{name}"), times);
        }
    }

    /// All clients, by their sockets: those without one take a fresh one each time.
    async fn ask_all(&self, target: Target, sockets: Vec<Option<Socket>>, when: When) -> io::Result<Vec<Asked>> {
        let mut clients = JoinSet::new();
        for socket in sockets {
            let stream = socket.map(|socket| Counted::of(socket, &target)).transpose()?;
            let (own, target) = (self.clone(), target.clone());
            clients.spawn(async move {
                let mut asked = Asked::default();
                until(when.start).await;
                by(when.end(), own.ask_again(stream, &target, &mut asked)).await;
                asked
            });
        }
        Ok(clients.join_all().await)
    }

    /// Steps 2 and 3, without an end.
    async fn ask_again(&self, mut stream: Option<Counted>, target: &Target, asked: &mut Asked) {
        for (place, &(_, answer)) in self.answers.iter().enumerate().cycle() {
            match target.ask(stream.take(), self.request, answer).await {
                Ok((used, took)) => {
                    asked.completion_ms.push((place, took));
                    stream = Some(used).filter(|_| !self.is_fresh);
                }
                Err(_) => asked.broken += 1,
            }
            if !self.is_fresh && asked.broken > 0 {
                return;
            }
            // One that is refused at once is not asked for in a busy loop.
            let rest = if asked.broken > 0 { self.pause.max(AFTER_A_BREAK) } else { self.pause };
            if !rest.is_zero() {
                until(Moment::now() + rest).await;
            }
        }
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
            names.iter().map(|name| Ok((format!("_{name}"), options.bytes_of("answers", name)?))).collect()
        }
    }
}
