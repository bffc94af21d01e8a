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
use super::{Findings, LabError, Moment, Options, When, Workload, millis};

/// From one stream to the next.
const INTERVAL: Duration = Duration::from_millis(50);

/// Bytes of a request, and of its answer.
type Exchange = Option<(u64, u64)>;

pub(super) fn parse(options: &mut Options) -> Result<Workload, LabError> {
    let interval = options.time("interval")?.unwrap_or(INTERVAL);
    let (request, answer) = (options.bytes("request")?, options.bytes("answer")?);
    let exchange = request.zip(answer);
    if exchange.is_none() && request.or(answer).is_some() {
        return Err(options.fault("`request` and `answer` go together: say both"));
    }
    let congestion = options.congestion()?;
    Ok(Box::new(move |ground| {
        let answers = Answers::start(ground, congestion)?;
        Ok(Box::new(move |when: When| {
            let connects = |target: Target| connects(target, interval, exchange, when);
            let ((begun, stood), ..) = answers.asked(ground, when, connects)?;
            let mut found = Findings::default();
            found.put("connect_failures", (begun - stood.len()) as f64);
            found.put_samples_and_high("connect", stood);
            Ok(found)
        }))
    }))
}

/// Step 1: how many were begun, and how long those took that stood.
async fn connects(target: Target, interval: Duration, exchange: Exchange, when: When) -> io::Result<(usize, Vec<f64>)> {
    let mut dialling = JoinSet::new();
    let mut due = when.start;
    while due < when.end() {
        until(due).await;
        dialling.spawn(connect(target.clone(), exchange, due));
        due = due + interval;
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

/// Step 2: how long it took, in milliseconds.
async fn connect(target: Target, exchange: Exchange, due: Moment) -> io::Result<f64> {
    let counted = match exchange {
        Some((request, answer)) => target.ask(None, request, answer).await?.0,
        None => Counted::dial(&target).await?,
    };
    let took = millis(Moment::now() - due);
    SockRef::from(&counted.stream).set_linger(Some(Duration::ZERO))?;
    Ok(took)
}
