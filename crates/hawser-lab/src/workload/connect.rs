//! How long it takes to connect: a new stream now and then, closed as soon as it stands, or once a request was
//! answered.
//!
//! 1. A stream is begun whenever one is due, however many are under way: a slow one delays no other.
//! 2. Its time counts from when it was due until the client may send, or has the whole answer. Then it is reset, so
//!    that no port is held.
//! 3. What is refused, or does not stand when time is up, has failed.

use std::time::Duration;

use socket2::SockRef;
use tokio::task::JoinSet;

use super::exchange::{Answers, ask, by, dial, join, side, until};
use super::{Congestion, Findings, Ground, LabError, Moment, Options, Span, Workload};

/// From one stream to the next.
const INTERVAL: Duration = Duration::from_millis(50);

/// Connections. Starts without a server; one owner.
pub(super) struct Connect {
    interval: Duration,
    /// Bytes of a request, and of its answer.
    exchange: Option<(u64, u64)>,
    congestion: Congestion,
    ready: Option<Answers>,
}

impl Connect {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        let interval = options.time("interval")?.unwrap_or(INTERVAL);
        let (request, answer) = (options.bytes("request")?, options.bytes("answer")?);
        let exchange = request.zip(answer);
        if exchange.is_none() && request.or(answer).is_some() {
            return Err(options.fault("`request` and `answer` go together: say both"));
        }
        Ok(Self { interval, exchange, congestion: options.congestion()?, ready: None })
    }
}

impl Workload for Connect {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        self.ready = Some(Answers::start(ground, self.congestion)?);
        Ok(())
    }

    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let span = Span { start, duration: ground.duration };
        let answers = self.ready.take().ok_or_else(|| super::unprepared("connect"))?;
        let (target, interval, exchange) = (answers.target.clone(), self.interval, self.exchange);
        let thread = side(&ground.client, "connects", move || async move {
            let mut dialling = JoinSet::new();
            let mut due = span.start;
            while due < span.end() {
                until(due).await;
                let target = target.clone();
                dialling.spawn(async move {
                    let mut stream = dial(&target).await?;
                    if let Some((request, answer)) = exchange {
                        ask(&mut stream, request, answer, |_| ()).await?;
                    }
                    let took = Moment::now() - due;
                    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                    std::io::Result::Ok(took.as_secs_f64() * 1e3)
                });
                due = due + interval;
            }
            let begun = dialling.len();
            let mut stood = Vec::with_capacity(begun);
            let all = async {
                while let Some(done) = dialling.join_next().await {
                    stood.extend(done.ok().and_then(Result::ok));
                }
            };
            by(span.end(), all).await;
            Ok((begun, stood))
        })?;
        let (begun, stood) = join("client", thread)?;
        answers.end()?;
        let mut found = Findings::default();
        found.put("connect_failures", (begun - stood.len()) as f64);
        found.put_samples_and_high("connect", stood);
        Ok(found)
    }
}
