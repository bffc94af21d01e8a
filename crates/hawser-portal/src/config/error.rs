//! What is wrong with a configuration: where, what, and how to write it instead.

use std::fmt;
use std::ops::Range;

/// Bytes of the configuration's text, from the first to one past the last.
pub type Span = Range<usize>;

/// One fault of a configuration file. Made by [`super::Config::parse`] only; it owns its text and is `Send`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as the user named it.
    pub file: String,
    /// Line of the fault's first character, counted from 1.
    pub line: usize,
    /// Column of the fault's first character, in characters, counted from 1.
    pub column: usize,
    /// The faulty bytes of the text.
    pub span: Span,
    /// What is wrong, lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The faulty line as it should read.
    pub corrected: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

impl std::error::Error for ConfigError {}

/// Everything found wrong so far. Starts empty; used by one thread.
#[derive(Debug)]
pub struct Faults<'t> {
    file: &'t str,
    text: &'t str,
    found: Vec<ConfigError>,
}

/// A fault before it knows its line. Starts without hint and fix; plain data.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// What is wrong, lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What should stand there.
    pub fix: Option<String>,
}

impl Fault {
    /// One that says what is wrong.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what should stand there.
    #[must_use]
    pub fn fix(mut self, replacement: impl Into<String>) -> Self {
        self.fix = Some(replacement.into());
        self
    }
}

impl<'t> Faults<'t> {
    /// None yet, of a file and its text.
    #[must_use]
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, found: Vec::new() }
    }

    /// Notes a fault at `span`.
    pub fn add(&mut self, span: Span, fault: Fault) {
        let (line, column) = line_and_column(self.text, span.start);
        let corrected = fault.fix.and_then(|fix| corrected_line(self.text, &span, &fix));
        self.found.push(ConfigError {
            file: self.file.to_owned(),
            line,
            column,
            span,
            message: fault.message,
            hint: fault.hint,
            corrected,
        });
    }

    /// The line, counted from 1, in which the byte `at` stands.
    pub fn line_of(&self, at: usize) -> usize {
        line_and_column(self.text, at).0
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All faults in the order of the file.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<ConfigError> {
        self.found.sort_by_key(|e| (e.span.start, e.span.end));
        self.found
    }
}

/// Line and column, counted from 1, of byte `at`; past the end it is the end.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// The line around `span` with `fix` in the span's place; none where the span covers several lines.
fn corrected_line(text: &str, span: &Span, fix: &str) -> Option<String> {
    let faulty = text.get(span.clone())?;
    if faulty.contains('\n') {
        return None;
    }
    let start = text[..span.start].rfind('\n').map_or(0, |i| i + 1);
    let end = text[span.end..].find('\n').map_or(text.len(), |i| span.end + i);
    let line = format!("{}{fix}{}", &text[start..span.start], &text[span.end..end]);
    Some(line.trim().to_owned())
}

/// The candidate a user most likely meant by `written`, if any is near enough.
///
/// Near is at most a third of the letters changed, swapped, left out or added (Damerau-Levenshtein):
/// `mertic` means `metric`, `foo` means nothing.
pub fn did_you_mean<'c>(written: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let written = written.to_ascii_lowercase().replace('_', "-");
    let distance = |c: &&str| strsim::damerau_levenshtein(&written, &c.replace('_', "-"));
    let nearest = candidates.iter().copied().min_by_key(distance)?;
    let longest = nearest.len().max(written.len());
    (distance(&nearest) * 3 <= longest).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let text = "a = 1\nnäme = \"x\"\n";
        for (at, expect) in [(0, (1, 1)), (5, (1, 6)), (6, (2, 1)), (9, (2, 3)), (99, (3, 1))] {
            assert_eq!(line_and_column(text, at), expect, "byte {at}");
        }
    }

    #[test]
    fn a_correction_shows_the_whole_line_and_never_several() {
        let text = "  metrik = 1\nb = [\n1]";
        assert_eq!(corrected_line(text, &(2..8), "metric").as_deref(), Some("metric = 1"));
        assert_eq!(corrected_line(text, &(17..20), "2"), None);
    }

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let keys = ["name", "interface", "metric", "private_key_file"];
        let table = [
            ("mertic", Some("metric")),
            ("Metric", Some("metric")),
            ("interfaces", Some("interface")),
            ("private-key-file", Some("private_key_file")),
            ("zebra", None),
            ("x", None),
        ];
        for (written, expect) in table {
            assert_eq!(did_you_mean(written, &keys), expect, "{written}");
        }
    }
}
