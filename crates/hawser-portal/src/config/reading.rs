//! Strict TOML with every fault in its place: what other files of Hawser's are read with, too.

use toml::Spanned;
use toml::de::DeTable;

pub use super::error::{Fault, Faults, did_you_mean};
pub use super::reader::{Sited, Table, boolean, integer, kind, quoted, string};
pub use super::unique::Unique;

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
