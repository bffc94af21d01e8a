//! What the contract knows and this version does not carry out yet.
//!
//! This is the one place: an issue that carries something out deletes its line here.

/// A value of a key that is refused. `key` is `section.key`.
struct Later {
    key: &'static str,
    value: &'static str,
}

const fn later(key: &'static str, value: &'static str) -> Later {
    Later { key, value }
}

/// Values that are refused, as they are written in the file (strings without quotes). `*` is every value but the default.
const LATER_VALUES: &[Later] = &[
    // It listens at addresses of its own.
    later("portal.transports", "scion"),
    // Who listens takes what is named.
    later("portal.transports", "auto"),
    #[cfg(not(feature = "scion"))]
    later("link.transport", "scion"),
    #[cfg(not(feature = "metrics"))]
    later("metrics.listen", "*"),
];

/// Whether this version carries out `value` of `key` (`section.key`).
pub(super) fn value(key: &str, value: &str) -> bool {
    !LATER_VALUES.iter().any(|l| l.key == key && (l.value == value || l.value == "*"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_refusal_names_something_of_the_contract() {
        for l in LATER_VALUES {
            let (section, key) = l.key.split_once('.').expect("section.key");
            let section = schema::section(section).unwrap_or_else(|| panic!("no section {section}"));
            assert!(section.keys.iter().any(|k| k.name == key), "no key {}", l.key);
        }
    }
}
