//! Names of interfaces with `*` for anything.

use std::fmt;

use super::values::{InterfaceName, NameError};

/// A pattern for interface names: `*` stands for any characters, also none. Never empty; plain data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfacePattern(String);

impl InterfacePattern {
    /// Takes `text` as a pattern.
    ///
    /// # Errors
    /// [`NameError`] where no interface can have such a name.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        InterfaceName::parse(text).map(|name| Self(name.as_str().to_owned()))
    }

    /// Whether the interface called `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        let (first, rest) = self.0.split_once('*').map_or((self.0.as_str(), None), |(first, rest)| (first, Some(rest)));
        let Some(rest) = rest else { return name == first };
        let Some(mut left) = name.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            let Some(at) = left.find(part) else { return false };
            left = &left[at + part.len()..];
        }
        left.ends_with(last)
    }
}

impl fmt::Debug for InterfacePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, fits, fails) in [
            ("lo", &["lo"][..], &["lo0", "l", ""][..]),
            ("docker*", &["docker", "docker0"], &["dockr", "xdocker0"]),
            ("*", &["", "eth0"], &[]),
            ("*.100", &["eth0.100", ".100"], &["eth0.1001", "100"]),
            ("br-*-x", &["br-1-x", "br--x"], &["br-x", "br-1-y"]),
            ("v*e*h", &["veth", "vxexh"], &["vhe", "veh1"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
        ] {
            let pattern = InterfacePattern::parse(pattern).expect("a pattern");
            assert!(fits.iter().all(|name| pattern.matches(name)), "{pattern:?} {fits:?}");
            assert!(!fails.iter().any(|name| pattern.matches(name)), "{pattern:?} {fails:?}");
        }
        assert_eq!(InterfacePattern::parse(""), Err(NameError::Empty));
        assert!(InterfacePattern::parse("eth/0").is_err());
    }
}
