//! How long it takes to connect: a new stream now and then, closed as soon as it stands, or once a request was
//! answered.
//!
//! 1. A stream is begun whenever one is due, however many are under way: a slow one delays no other.
//! 2. Its time counts from when it was due until the client may send, or has the whole answer. Then it is reset, so
//!    that no port is held.
//! 3. What is refused, or does not stand when time is up, has failed.

use std::io;
use std::time::Duration;

use socket2::SockRef;
use tokio::task::JoinSet;

use super::exchange::{Answers, Counted, Target, by, until};
use super::{Congestion, Findings, Ground, LabError, Moment, Options, Ready, When, Workload, millis};

/// From one stream to the next.
const INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Connect {
    interval: Duration,
    /// Bytes of a request, and of its answer.
    exchange: Option<(u64, u64)>,
    congestion: Congestion,
}

impl Connect {
    pub(super) fn parse(options: &mut Options) -> Result<Self, LabError> {
        let interval = options.time("interval")?.unwrap_or(INTERVAL);
        let (request, answer) = (options.bytes("request")?, options.bytes("answer")?);
        let exchange = request.zip(answer);
        if exchange.is_none() && request.or(answer).is_some() {
            return Err(options.fault("`request` and `answer` go together: say both"));
        }
        Ok(Self { interval, exchange, congestion: options.congestion()? })
    }

    /// Step 1: how many were begun, and how long those took that stood.
    async fn connects(&self, target: Target, when: When) -> io::Result<(usize, Vec<f64>)> {
        let mut dialling = JoinSet::new();
        let mut due = when.start;
        while due < when.end() {
            until(due).await;
            dialling.spawn(connect(target.clone(), self.exchange, due));
            due = due + self.interval;
        }
        let begun = dialling.len();
        let mut stood = Vec::with_capacity(begun);
        let all = async {
            while let Some(done) = dialling.join_next().await {
                stood.extend(done.ok().and_then(Result::ok));
            }
        };
        by(when.end(), all).await;
        Ok((begun, stood))
    }
}

/// Step 2: how long it took, in milliseconds.
async fn connect(target: Target, exchange: Option<(u64, u64)>, due: Moment) -> io::Result<f64> {
    let counted = match exchange {
        Some((request, answer)) => target.ask(None, request, answer).await?.0,
        None => Counted::dial(&target).await?,
    };
    let took = millis(Moment::now() - due);
    SockRef::from(&counted.stream).set_linger(Some(Duration::ZERO))?;
    Ok(took)
}

impl Workload for Connect {
    fn prepare<'g>(&'g self, ground: Ground<'g>) -> Result<Ready<'g>, LabError> {
        let answers = Answers::start(ground, self.congestion)?;
        Ok(Box::new(move |when: When| {
            let ((begun, stood), ..) = answers.asked(ground, when, |target: Target| self.connects(target, when))?;
            let mut found = Findings::default();
            found.put("connect_failures", (begun - stood.len()) as f64);
            found.put_samples_and_high("connect", stood);
            Ok(found)
        }))
    }
}
