//! Values that are one of a few words.

pub use hawser_core::congestion::Kind as Congestion;
pub use hawser_core::treatment::Kind as Scheduler;
pub use hawser_core::wire::{Cipher, Protection};

/// A value that is one of a few words.
pub trait Keyword: Sized + Copy + PartialEq + 'static {
    /// Every value with its word, in the contract's order.
    const WORDS: &'static [(Self, &'static str)];

    /// The value called `word`.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(v, _)| *v)
    }

    /// What it is called; empty where no word is.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(value, _)| *value == self).map_or("", |(_, word)| word)
    }
}

/// Makes a type whose values are words.
#[macro_export]
macro_rules! keyword {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $crate::Keyword for $name {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$variant, $word),)+];
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($crate::Keyword::word(*self))
            }
        }
    };
}

keyword! {
    /// How the log is written.
    LogFormat {
        /// Lines that people read.
        Text = "text",
        /// An object of JSON a line.
        Json = "json",
    }
}

keyword! {
    /// How a path carries packets. Plain data.
    Transport {
        /// UDP datagrams.
        Udp = "udp",
        /// A TCP stream.
        Tcp = "tcp",
        /// A bare IP protocol.
        Ip = "ip",
        /// SCION packets.
        Scion = "scion",
        /// UDP where it passes, else TCP, else TCP inside TLS.
        Auto = "auto",
    }
}

impl Keyword for Scheduler {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::Adaptive, "adaptive"),
        (Self::Weighted, "weighted"),
        (Self::Flow, "flow"),
        (Self::Redundant, "redundant"),
    ];
}

keyword! {
    /// Whether repairs go along. Plain data.
    Fec {
        /// None.
        Off = "off",
        /// As many as the measured loss asks for.
        Auto = "auto",
    }
}

keyword! {
    /// What becomes of the default route's traffic while the tunnel is away. Plain data.
    Fail {
        /// It goes by the links, as before there was a tunnel.
        Open = "open",
        /// It goes nowhere.
        Closed = "closed",
    }
}

keyword! {
    /// A protocol with ports. Plain data.
    Transported {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
}

impl Keyword for Congestion {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::NewReno, "newreno"),
        (Self::Cubic, "cubic"),
        (Self::Bbr, "bbr"),
        (Self::Lia, "lia"),
        (Self::Olia, "olia"),
        (Self::Balia, "balia"),
    ];
}

impl Keyword for Protection {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Encrypt, Self::Encrypt.name()), (Self::Authenticate, Self::Authenticate.name())];
}

/// As the values of `cipher`; none: AES where both ends have the instructions, else ChaCha20.
impl Keyword for Option<Cipher> {
    const WORDS: &'static [(Self, &'static str)] = &[
        (None, "auto"),
        (Some(Cipher::Aes128Gcm), Cipher::Aes128Gcm.name()),
        (Some(Cipher::ChaCha20Poly1305), Cipher::ChaCha20Poly1305.name()),
        (Some(Cipher::Blake2s), Cipher::Blake2s.name()),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_as_itself() {
        fn holds<K: Keyword + std::fmt::Debug>() {
            for (value, word) in K::WORDS {
                assert_eq!((value.word(), K::from_word(word)), (*word, Some(*value)));
            }
            assert_eq!(K::from_word("UDP"), None);
        }
        holds::<Transport>();
        holds::<Scheduler>();
        holds::<Congestion>();
        holds::<Protection>();
        holds::<Option<Cipher>>();
        assert!(Transport::WORDS.iter().all(|(value, word)| value.to_string() == *word));
    }
}
