//! Which protocol a portal speaks, and which frames may be sent to it: said under the handshake's seal, both ways.
//!
//! ```text
//! ciphers: bit 7 set | instance: revision 1, capabilities 2, random 5
//! ```
//!
//! Portals from before this do not set bit 7, and ignore it: their `instance` is random as a whole.

use std::fmt;

/// The major number: it stands in the prologue and in the payload's first byte, and others do not understand each
/// other.
const MAJOR: u8 = 1;

/// What a portal can take beyond the first frames. None by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Capabilities(u16);

impl Capabilities {
    /// Frames of the reserved range are skipped by their length.
    pub const SKIPS: Capabilities = Capabilities(1 << 0);
    /// TERMS is understood.
    pub const TERMS: Capabilities = Capabilities(1 << 1);
    /// PROTECTED and REPAIR are understood.
    pub const REPAIRS: Capabilities = Capabilities(1 << 2);
    /// SPEED is understood.
    pub const SPEED: Capabilities = Capabilities(1 << 3);
    /// CLAIM and CLAIM_ACK are understood: the portal is a member of a hub, or has one. It follows from the
    /// configuration.
    pub const HUB: Capabilities = Capabilities(1 << 4);

    /// All of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Capabilities(self.0 | other.0)
    }

    /// All but those.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Capabilities(self.0 & !other.0)
    }

    /// Whether all of `other` are among them.
    pub const fn contain(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What a portal speaks. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Version {
    /// Names it to people: counted up by each release that says something new.
    pub revision: u8,
    /// What may be sent to it.
    pub capabilities: Capabilities,
}

impl Version {
    /// That of portals which do not say theirs: they take the frames up to 0x0d, and drop a datagram with another.
    pub const UNSAID: Version = Version { revision: 0, capabilities: Capabilities::TERMS.and(Capabilities::REPAIRS) };
    /// Ours: 1.1 had no SPEED.
    pub const OURS: Version = Version {
        revision: 2,
        capabilities: Version::UNSAID.capabilities.and(Capabilities::SKIPS).and(Capabilities::SPEED),
    };
    /// Ours, of a portal that is a member of a hub, or has one.
    pub const OURS_IN_HUB: Version =
        Version { capabilities: Version::OURS.capabilities.and(Capabilities::HUB), ..Version::OURS };
    /// The bits of an instance that say it.
    const SHIFT: u32 = 40;

    /// Whether it is the same but for what follows from the configuration.
    pub fn is_like(self, other: Version) -> bool {
        let apart = |version: Version| (version.revision, version.capabilities.without(Capabilities::HUB));
        apart(self) == apart(other)
    }

    /// `instance` with this version in the place of its first three bytes.
    pub(super) const fn put(self, instance: u64) -> u64 {
        let said = (self.revision as u64) << 16 | self.capabilities.0 as u64;
        said << Self::SHIFT | instance & ((1 << Self::SHIFT) - 1)
    }

    /// The version that `instance` says.
    pub(super) const fn take(instance: u64) -> Self {
        let said = instance >> Self::SHIFT;
        Version { revision: (said >> 16) as u8, capabilities: Capabilities(said as u16) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAJOR}.{}", self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_takes_the_first_three_bytes_of_an_instance() {
        let version = Version { revision: 0xab, capabilities: Capabilities(0xcdef) };
        assert_eq!(version.put(u64::MAX), 0xabcd_efff_ffff_ffff);
        assert_eq!(version.put(0x1122_3344_5566_7788), 0xabcd_ef44_5566_7788);
        assert_eq!(Version::take(version.put(7)), version);
    }

    #[test]
    fn what_we_speak_has_its_golden_number() {
        assert_eq!(Version::OURS.put(0), 0x0200_0f00_0000_0000, "docs/wire.md has it");
        assert_eq!(Version::OURS_IN_HUB.put(0), 0x0200_1f00_0000_0000);
        assert!(Version::OURS_IN_HUB.is_like(Version::OURS) && !Version::OURS.is_like(Version::UNSAID));
        assert_eq!((Version::OURS.to_string(), Version::UNSAID.to_string()), ("1.2".to_owned(), "1.0".to_owned()));
    }

    #[test]
    fn capabilities_are_a_set() {
        let both = Capabilities::SKIPS.and(Capabilities::TERMS);
        assert!(both.contain(Capabilities::TERMS) && !both.contain(Capabilities::TERMS.and(Capabilities::REPAIRS)));
        assert!(!both.without(Capabilities::TERMS).contain(Capabilities::TERMS));
    }
}
