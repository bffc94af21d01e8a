//! What may stand in the file once.

use std::collections::BTreeMap;

use super::error::{Fault, Span};
use super::reader::Table;

/// The values seen so far, each with the byte it stands at. Starts empty; used by one thread.
pub struct Unique<T> {
    seen: BTreeMap<T, usize>,
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self { seen: BTreeMap::new() }
    }
}

impl<T: Ord> Unique<T> {
    /// Takes `value`, or notes `fault` with the line of the first.
    pub fn claim(&mut self, table: &mut Table<'_, '_, '_>, value: T, span: Span, fault: &str) {
        if let Some(&first) = self.seen.get(&value) {
            let line = table.line_of(first);
            table.fault(span, Fault::new(fault).hint(format!("first in line {line}")));
        } else {
            self.seen.insert(value, span.start);
        }
    }
}
