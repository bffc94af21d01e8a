//! What a daemon says of itself: lines on standard error, as `HAWSER_LOG` asks.
//!
//! 1. A terminal gets colours, unless `NO_COLOR` says otherwise (no-color.org). 2. The journal gets a priority before
//!    each line (sd-daemon(3)), and no time: it adds one. 3. Whoever else reads gets lines with a time. 4. Where
//!    `[log] format` is `json`, each line is an object, wherever it goes: what reads it asks for no priority.

use std::env;
use std::fmt::Result as Formatted;
use std::io::{self, IsTerminal};

use hawser_config::LogFormat;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, fmt, registry};

use crate::failure::Failure;

/// The environment variable that chooses what is logged.
const LOG_VARIABLE: &str = "HAWSER_LOG";
/// What is logged where the variable says nothing.
const LOG_DEFAULT: &str = "info";

/// Begins; nothing was said before.
///
/// # Errors
/// Where `HAWSER_LOG` cannot be read.
pub fn start_log(format: LogFormat) -> Result<(), Failure> {
    let filter = env::var(LOG_VARIABLE).unwrap_or_else(|_| LOG_DEFAULT.to_owned());
    let filter: Targets = filter.parse().map_err(|e| {
        Failure::wrong(format!("read {LOG_VARIABLE}={filter}: {e}"))
            .hint(format!("such as {LOG_VARIABLE}=debug or {LOG_VARIABLE}=info,hawser_net=trace"))
    })?;
    let others = filter.default_level().unwrap_or(LevelFilter::ERROR);
    let log = registry().with(filter.with_default(others));
    if format == LogFormat::Json {
        log.with(json(io::stderr)).init();
        return Ok(());
    }
    let colours = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(colours);
    if env::var_os("JOURNAL_STREAM").is_some() {
        log.with(lines.event_format(WithPriority(fmt::format().compact().without_time()))).init();
    } else {
        log.with(lines.compact()).init();
    }
    Ok(())
}

/// Step 4: time, level, message, and the fields of the event beside them, as the values that they are.
fn json<S, W>(writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false).with_writer(writer)
}

/// Step 2: lines of another format, each behind its priority. Plain value.
struct WithPriority<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithPriority<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> Formatted {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

/// The priority of a level (syslog(3)): what `journalctl -p` goes by.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_journal_is_told_how_much_a_line_matters() {
        let kept = Kept::default();
        let writer = kept.clone();
        let lines = fmt::layer().with_writer(move || writer.clone()).with_ansi(false);
        let log = registry()
            .with(lines.event_format(WithPriority(fmt::format().compact().without_time().with_target(false))));
        tracing::subscriber::with_default(log, || {
            tracing::error!("cannot go on");
            tracing::warn!(link = "lte", "link degraded");
            tracing::info!("session");
            tracing::debug!("counters");
        });
        let text = String::from_utf8(kept.0.lock().expect("no panic").clone()).expect("text");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let expect =
            ["<3>ERROR cannot go on", "<4> WARN link degraded link=\"lte\"", "<6> INFO session", "<7>DEBUG counters"];
        assert_eq!(lines, expect);
    }

    #[test]
    fn each_line_of_json_is_an_object_with_its_fields_as_values() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = registry().with(json(move || writer.clone()));
        tracing::subscriber::with_default(log, || {
            tracing::warn!(link = "lte", rtt_ms = 42.5, lost = 3, up = false, "link degraded");
            tracing::info!("session");
        });
        let text = String::from_utf8(kept.0.lock().expect("no panic").clone()).expect("text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        let [degraded, session] = &lines[..] else { panic!("{text}") };
        let expect = serde_json::json!({
            "level": "WARN", "message": "link degraded", "link": "lte", "rtt_ms": 42.5, "lost": 3, "up": false,
        });
        for (key, value) in expect.as_object().expect("an object") {
            assert_eq!(&degraded[key], value, "{key} of {degraded}");
        }
        assert!(degraded["timestamp"].is_string() && session["message"] == "session");
    }
}
