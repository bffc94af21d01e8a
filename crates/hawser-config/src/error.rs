//! What is wrong with a configuration: where, what, and how to write it instead.

use std::cell::OnceCell;
use std::ops::Range;

/// Characters that are shown of what a user wrote: of a line around its fault, of a message, and of a hint, which may
/// list keys.
const LINE_SHOWN: usize = 160;
const MESSAGE_SHOWN: usize = 240;
const HINT_SHOWN: usize = 1_000;
/// Characters of a longer line before its fault, and after.
const AROUND: usize = 40;
/// In a line that is longer up to its fault, columns are counted in bytes.
const COLUMN_COUNTED: usize = 4_096;
/// A longer word is nobody's slip.
const WORD_MOST: usize = 64;

/// Bytes of the configuration's text, from the first to one past the last.
pub type Span = Range<usize>;

/// A value that is right, or what is wrong with it.
pub type Read<T> = Result<T, Fault>;

/// One fault of a configuration file. Made by [`super::Config::parse`] only; it owns its text and is `Send`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ConfigError {
    /// The file as the user named it.
    pub file: String,
    /// Line of the fault's first character, counted from 1.
    pub line: usize,
    /// Column of the fault's first character, in characters (far into a line in bytes), counted from 1.
    pub column: usize,
    /// The faulty bytes of the text.
    pub span: Span,
    /// What is wrong, lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The faulty line as it should read; of a long one what stands around the fault.
    pub corrected: Option<String>,
}

impl ConfigError {
    /// File, line and column.
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Everything found wrong so far. Starts empty; used by one thread.
#[derive(Debug)]
pub struct Faults<'t> {
    file: &'t str,
    text: &'t str,
    /// Where each line begins, once somebody asks.
    lines: OnceCell<Vec<usize>>,
    found: Vec<ConfigError>,
    /// What is read, and written otherwise today.
    outdated: Vec<ConfigError>,
}

/// A fault before it knows its line. Starts without hint and fix; plain data, which somebody must note.
#[must_use]
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
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the one of `known` that was meant by `word`; where there is none, a hint.
    pub fn meant(self, word: &str, known: &[&str], hint: impl FnOnce() -> String) -> Self {
        match did_you_mean(word, known).map(super::parsers::quoted) {
            Some(meant) => self.hint(format!("did you mean {meant}?")).fix(meant),
            None => self.hint(hint()),
        }
    }

    /// Adds what should stand there.
    pub fn fix(mut self, replacement: impl Into<String>) -> Self {
        self.fix = Some(replacement.into());
        self
    }
}

impl<'t> Faults<'t> {
    /// None yet, of a file and its text.
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, lines: OnceCell::new(), found: Vec::new(), outdated: Vec::new() }
    }

    /// Notes a fault at `span`.
    pub fn add(&mut self, span: Span, fault: Fault) {
        self.found.push(self.placed(span, fault));
    }

    /// Notes an old spelling at `span`, which is read all the same.
    pub fn warn(&mut self, span: Span, fault: Fault) {
        self.outdated.push(self.placed(span, fault));
    }

    fn placed(&self, span: Span, fault: Fault) -> ConfigError {
        let (line, column) = self.line_and_column(span.start);
        let corrected = fault.fix.and_then(|fix| corrected_line(self.text, &span, &fix));
        ConfigError {
            file: self.file.to_owned(),
            line,
            column,
            span,
            message: shortened(&fault.message, MESSAGE_SHOWN),
            hint: fault.hint.map(|hint| shortened(&hint, HINT_SHOWN)),
            corrected,
        }
    }

    /// The line, counted from 1, in which the byte `at` stands.
    pub fn line_of(&self, at: usize) -> usize {
        self.line_and_column(at).0
    }

    /// Line and column, counted from 1, of byte `at`; past the end it is the end.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let ends = |text: &str| text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(n, _)| n + 1).collect();
        let starts: &Vec<usize> = self.lines.get_or_init(|| ends(self.text));
        let before = starts.partition_point(|&start| start <= at);
        let start = before.checked_sub(1).map_or(0, |last| starts[last]);
        let column = if at - start > COLUMN_COUNTED { at - start } else { self.text[start..at].chars().count() };
        (before + 1, column + 1)
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All faults in the order of the file.
    pub fn into_sorted(self) -> Vec<ConfigError> {
        sorted(self.found)
    }

    /// All old spellings in the order of the file.
    pub fn into_outdated(self) -> Vec<ConfigError> {
        sorted(self.outdated)
    }
}

fn sorted(mut errors: Vec<ConfigError>) -> Vec<ConfigError> {
    errors.sort_by_key(|e| (e.span.start, e.span.end));
    errors
}

/// What is shown of a text that may be long: all of it, or beginning and end.
fn shortened(text: &str, most: usize) -> String {
    // As many bytes are as many characters at most.
    if text.len() <= most || text.char_indices().nth(most).is_none() {
        return text.to_owned();
    }
    format!("{}…{}", start_of(text, most / 2), end_of(text, most / 2))
}

/// The first `most` characters.
fn start_of(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

/// The last `most` characters.
fn end_of(text: &str, most: usize) -> &str {
    text.char_indices().rev().nth(most.saturating_sub(1)).map_or(text, |(at, _)| &text[at..])
}

/// A text's part of a line: what stands around `span`, whole lines where they are short. It gives the part's bytes of
/// the text.
pub fn around(text: &str, span: &Span, most: usize) -> Span {
    let (first, last) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
    let before = end_of(&text[..first], most).rsplit('\n').next().unwrap_or_default();
    let after = start_of(&text[last..], most).split('\n').next().unwrap_or_default();
    first - before.len()..last + after.len()
}

/// The line around `span` with `fix` in the span's place; none where the span covers several lines.
fn corrected_line(text: &str, span: &Span, fix: &str) -> Option<String> {
    let faulty = text.get(span.clone())?;
    if faulty.contains('\n') {
        return None;
    }
    let (mut shown, fix) = (around(text, span, LINE_SHOWN), shortened(fix, LINE_SHOWN));
    if shown.len() > LINE_SHOWN {
        shown = around(text, span, AROUND);
    }
    let cut = |is: bool| if is { "…" } else { "" };
    let starts = shown.start == 0 || text[..shown.start].ends_with('\n');
    let ends = shown.end == text.len() || text[shown.end..].starts_with(['\n', '\r']);
    let (before, after) = (&text[shown.start..span.start], &text[span.end..shown.end]);
    let line = format!("{}{before}{fix}{after}{}", cut(!starts), cut(!ends));
    Some(line.trim().to_owned())
}

/// The candidate a user most likely meant by `written`, if any is near enough.
///
/// Near is at most a third of the letters changed, swapped, left out or added (Damerau-Levenshtein):
/// `mertic` means `metric`, `foo` means nothing.
pub fn did_you_mean<'c>(written: &str, candidates: &[&'c str]) -> Option<&'c str> {
    if written.len() > WORD_MOST {
        return None;
    }
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
            assert_eq!(Faults::new("f", text).line_and_column(at), expect, "byte {at}");
        }
    }

    #[test]
    fn of_a_long_line_and_a_long_word_little_is_shown() {
        let text = format!("{}oops{}\nnext", "a ".repeat(5_000), " b".repeat(5_000));
        let mut faults = Faults::new("f", &text);
        let word = "é".repeat(100_000);
        faults.add(10_000..10_004, Fault::new(format!("unknown {word}")).hint(&word).fix("ok"));
        faults.add(10_000..10_004, Fault::new("x").fix(&word));
        let [first, second] = &faults.into_sorted()[..] else { panic!("two") };
        assert_eq!((first.line, first.column), (1, 10_001));
        assert_eq!(first.corrected.as_deref(), Some(&*format!("…{}ok{}…", "a ".repeat(20), " b".repeat(20))));
        let lens = [&first.message, first.hint.as_ref().unwrap(), second.corrected.as_ref().unwrap()];
        assert_eq!(lens.map(|text| text.chars().count()), [241, 1_001, 243]);
        assert_eq!(did_you_mean(&word, &["name"]), None);
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
