//! How a command fails: what is told on standard error, and the exit status.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

use hawser_config::reading::around;
use hawser_config::{ConfigError, LoadError, TEXT_LIMIT};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};

/// The command failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
const WRONG: u8 = 2;
/// Width of a report in columns, so that corrected lines are seldom folded.
const REPORT_WIDTH: usize = 120;

/// Lines shown before and after a fault: enough to recognise the place.
const CONTEXT_LINES: usize = 1;
/// Characters shown of a line on either side of its fault.
const AROUND: usize = 80;
/// Bytes of a fault itself that are shown: it may be as long as the file.
const FAULT_SHOWN: usize = 80;
/// Faults shown: who has more corrects these first.
const FAULTS_SHOWN: usize = 100;

/// A failed command. Plain data.
#[derive(Debug)]
pub struct Failure {
    error: Box<dyn Error>,
    hint: Option<String>,
    /// Faults of a file with their lines, as they are shown; mostly none.
    faults: String,
    status: u8,
}

impl Failure {
    /// It could not be done.
    pub fn failed(error: impl Into<Box<dyn Error>>) -> Self {
        Self { error: error.into(), hint: None, faults: String::new(), status: FAILED }
    }

    /// It was asked for wrongly.
    pub fn wrong(error: impl Into<Box<dyn Error>>) -> Self {
        Self { error: error.into(), hint: None, faults: String::new(), status: WRONG }
    }

    /// It could not be done, and where anything can be done about that, what.
    pub fn hinted(hint: Option<impl Into<String>>, error: impl Into<Box<dyn Error>>) -> Self {
        Self { hint: hint.map(Into::into), ..Self::failed(error) }
    }

    /// A file is wrong: its faults as they are shown, and a hint if any.
    pub fn faulty(hint: Option<impl Into<String>>, shown: String, error: impl Into<Box<dyn Error>>) -> Self {
        Self { hint: hint.map(Into::into), faults: shown, ..Self::wrong(error) }
    }

    /// What went wrong, without what to do about it.
    pub fn cause(&self) -> String {
        with_causes(&*self.error)
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Tells it, and gives the exit status.
    pub fn report(self) -> ExitCode {
        // Where standard error is closed there is nobody left to tell.
        let _ = io::stderr().write_all(self.to_string().as_bytes());
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.faults, plain(&*self.error, self.hint.as_deref()))
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let hint = match &error {
            LoadError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("name another one: -c FILE".to_owned())
            }
            LoadError::Read { source, .. }
                if matches!(source.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge) =>
            {
                Some(format!("a configuration is an ordinary file of at most {} MiB", TEXT_LIMIT >> 20))
            }
            LoadError::Key(key) => Some(key.hint()),
            _ => None,
        };
        let shown = match &error {
            LoadError::Faulty { text, errors, .. } => faults(text, errors),
            _ => String::new(),
        };
        Self::faulty(hint, shown, error)
    }
}

/// `operation: cause: cause`.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// `error: operation: cause: cause`, and the hint.
fn plain(error: &dyn Error, hint: Option<&str>) -> String {
    let mut text = format!("error: {}\n", with_causes(error));
    if let Some(hint) = hint {
        let _ = writeln!(text, "hint: {hint}");
    }
    text
}

/// Every fault, with its line.
pub fn faults(text: &str, errors: &[ConfigError]) -> String {
    let theme = match (io::stderr().is_terminal(), std::env::var_os("NO_COLOR")) {
        (true, None) => GraphicalTheme::unicode(),
        (true, Some(_)) => GraphicalTheme::unicode_nocolor(),
        (false, _) => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(REPORT_WIDTH)
        .with_context_lines(CONTEXT_LINES)
        .without_syntax_highlighting();
    let mut report = String::new();
    for error in errors.iter().take(FAULTS_SHOWN) {
        let excerpt = Excerpt::new(text, error);
        // Writing to a String does not fail.
        let _ = handler.render_report(&mut report, &Fault { error, excerpt });
    }
    if errors.len() > FAULTS_SHOWN {
        let _ = writeln!(report, "and {} more\n", errors.len() - FAULTS_SHOWN);
    }
    report
}

/// A fault as miette shows it. Lives while it is shown.
#[derive(Debug)]
struct Fault<'e> {
    error: &'e ConfigError,
    excerpt: Excerpt<'e>,
}

/// What is shown of a file around a fault: its lines, or a part of a long one. Made for one fault, in time that does
/// not grow with the file.
#[derive(Debug)]
struct Excerpt<'e> {
    error: &'e ConfigError,
    text: String,
    /// The fault in it.
    span: SourceSpan,
    /// Lines of the file before it, and characters before it in its first line.
    lines: usize,
    column: usize,
}

impl<'e> Excerpt<'e> {
    fn new(text: &str, error: &'e ConfigError) -> Self {
        let end = text.len();
        let start = text.floor_char_boundary(error.span.start.min(end));
        let most = text.ceil_char_boundary((start + FAULT_SHOWN).min(end));
        let fault = start..error.span.end.clamp(start, most);
        let line = around(text, &fault, AROUND);
        let whole = line.start == 0 || text[..line.start].ends_with('\n');
        // The line before, and the one behind, where they are short and nothing was left out between.
        let before =
            if whole { around(text, &(line.start.saturating_sub(1)..line.start), AROUND) } else { line.clone() };
        let ends = text[line.end..].starts_with('\n');
        let behind = if ends { around(text, &(line.end..line.end + 1), AROUND) } else { line.clone() };
        let first = if before.start == 0 || text[..before.start].ends_with('\n') { before.start } else { line.start };
        let last = if behind.end == end || text[behind.end..].starts_with('\n') {
            (behind.end + 1).min(end)
        } else {
            line.end
        };
        let lines = (error.line - 1).saturating_sub(text[first..fault.start].matches('\n').count());
        let column =
            if whole { 0 } else { (error.column - 1).saturating_sub(text[line.start..fault.start].chars().count()) };
        let span = SourceSpan::new((fault.start - first).into(), fault.len());
        Self { error, text: text[first..last].to_owned(), span, lines, column }
    }
}

impl SourceCode for Excerpt<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, before, after)?;
        let column = if read.line() == 0 { self.column + read.column() } else { read.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.error.file.clone(),
            read.data(),
            *read.span(),
            self.lines + read.line(),
            column,
            read.line_count(),
        )))
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl Error for Fault<'_> {}

impl Diagnostic for Fault<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = self.error.hint.iter().cloned();
        let lines: Vec<String> = hint.chain(self.error.corrected.iter().map(|c| format!("write: {c}"))).collect();
        (!lines.is_empty()).then(|| Box::new(lines.join("\n")) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(LabeledSpan::underline(self.excerpt.span))))
    }
}
