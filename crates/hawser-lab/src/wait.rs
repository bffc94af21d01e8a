//! Waiting for what others do.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::LabError;

/// Asks from time to time until there is an answer; none where there was none in time.
pub(crate) fn until<T>(
    patience: Duration,
    glance: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, LabError>,
) -> Result<Option<T>, LabError> {
    let late = Instant::now() + patience;
    loop {
        let answer = ask()?;
        if answer.is_some() || Instant::now() > late {
            return Ok(answer);
        }
        thread::sleep(glance);
    }
}
