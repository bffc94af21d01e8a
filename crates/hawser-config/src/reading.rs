//! Strict TOML with every fault in its place: what other files of Hawser's are read with, too.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use super::error::{Fault, Faults, Span, around, did_you_mean};
pub use super::reader::{Sited, Table, boolean, integer, kind, quoted, string};
#[cfg(feature = "scion")]
pub use super::scion::{daemon, policy};
pub use super::shape::{repeated, single, title, unknown_sections};
pub use super::unique::Unique;
use super::values::Keyword;

/// The text as a tree that knows its bytes. None where it is no TOML (then that is noted).
#[must_use]
pub fn tree<'t>(text: &'t str, faults: &mut Faults<'_>) -> Option<Spanned<DeTable<'t>>> {
    let (tree, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        let span = error.span().unwrap_or(0..0);
        faults.add(span.clone(), syntax_fault(error.message(), text.get(span).unwrap_or_default()));
    }
    faults.is_empty().then_some(tree)
}

/// What `toml` found wrong with `written`.
fn syntax_fault(message: &str, written: &str) -> Fault {
    match message {
        "duplicate key" => Fault::new(format!("duplicate `{written}`")).hint("leave one of them out"),
        _ => Fault::new(message),
    }
}

/// One of the words of `K`.
///
/// # Errors
/// A fault with the word that was meant, or all of them.
pub fn keyword<K: Keyword>(value: &DeValue<'_>) -> Result<K, Fault> {
    string(value, |word| {
        let known: Vec<&str> = K::WORDS.iter().map(|(_, w)| *w).collect();
        K::from_word(word).ok_or_else(|| no_such_word(word, &known))
    })
}

/// The fault of a word that is none of those known.
#[must_use]
pub fn no_such_word(word: &str, known: &[&str]) -> Fault {
    let fault = Fault::new(format!("unknown value {}", quoted(word)));
    match did_you_mean(word, known) {
        Some(meant) => fault.hint(format!("did you mean {}?", quoted(meant))).fix(quoted(meant)),
        None => fault.hint(format!("one of: {}", known.join(", "))),
    }
}
