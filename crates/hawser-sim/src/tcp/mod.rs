//! A model of Linux's TCP: a sender and a receiver of real segments in virtual time.
//!
//! 1. Both ends open the connection with the options of Linux; either may ask for it ([`Transfer`]).
//! 2. The sender ([`sender`]) sends what window, congestion control and pacing allow, as super-packets (TSO).
//! 3. The receiver ([`receiver`]) checks every byte, and acknowledges as Linux does: delayed, with SACK blocks.
//! 4. The sender finds losses by RACK-TLP (RFC 8985), repairs them under PRR (RFC 6937), undoes what was spurious.
//! 5. CUBIC with HyStart (RFC 9438, RFC 9406's ancestor in Linux) or BBR version 1 say how much may be under way.
//!
//! It is written after the RFCs and after what Linux 6 does where they leave a choice. The file names are those of
//! the mechanisms. No FIN is sent: a transfer is over when its receiver has all bytes.

mod arrived;
pub mod bbr;
pub mod cubic;
pub mod hosts;
pub mod hystart;
pub mod rack;
pub mod rate;
pub mod receiver;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod sender;
#[cfg(test)]
mod tests;
pub mod window;

use hawser_core::units::Time;
use std::time::Duration;

/// The window's scale (RFC 7323), as Linux chooses it for 6 MB of `tcp_rmem`.
pub const SCALE: u8 = 7;
/// A SYN or its answer that is not answered is retransmitted after this, twice as long each time (RFC 6298
/// section 2.1).
pub const SYN_TIMEOUT: Duration = Duration::from_secs(1);

/// What decides how much is under way.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Congestion {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// BBR, version 1.
    Bbr,
}

/// One connection and what goes over it. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Transfer {
    /// It is opened then.
    pub from: Time,
    /// The application writes nothing more from then on.
    pub until: Time,
    /// The bytes that it writes, at once; `None`: as much as TCP takes.
    pub bytes: Option<u64>,
    /// The receiver opens it (a download); else the sender does.
    pub asked: bool,
    /// The sender's congestion control.
    pub congestion: Congestion,
}

impl Transfer {
    /// As much as TCP takes between two moments.
    pub fn bulk(from: Time, until: Time) -> Self {
        Transfer { from, until, bytes: None, asked: false, congestion: Congestion::Cubic }
    }

    /// This number of bytes.
    pub fn of(bytes: u64, from: Time) -> Self {
        Transfer { bytes: Some(bytes), ..Transfer::bulk(from, Time::NEVER) }
    }

    /// The receiver opens it.
    pub fn asked(self) -> Self {
        Transfer { asked: true, ..self }
    }

    /// With this congestion control.
    pub fn by(self, congestion: Congestion) -> Self {
        Transfer { congestion, ..self }
    }
}

/// The position in the stream whose sequence number is `number`, nearest to `near`; -1 and less lie before its start.
fn unwrap(number: u32, first: u32, near: u64) -> i64 {
    let expected = first.wrapping_add(near as u32);
    near as i64 + i64::from(number.wrapping_sub(expected) as i32)
}

/// TCP's clock of timestamps: ms, as Linux's.
fn stamp(now: Time) -> u32 {
    // Zero says that there is none.
    (now.as_nanos() / 1_000_000) as u32 + 1
}

#[cfg(test)]
mod sequence_tests {
    use super::*;

    #[test]
    fn sequence_numbers_unwrap_near_where_the_stream_is() {
        let first = u32::MAX - 5;
        assert_eq!(unwrap(first, first, 0), 0);
        assert_eq!(unwrap(first.wrapping_sub(1), first, 0), -1);
        assert_eq!(unwrap(4, first, 0), 10, "over the wrap");
        let far = (7 << 32) + 100;
        assert_eq!(unwrap(first.wrapping_add(90), first, far), far as i64 - 10);
    }
}
