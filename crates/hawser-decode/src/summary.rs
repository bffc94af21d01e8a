//! What was found, counted and told.

use std::fmt;

use crate::{Refusal, Verdict};

/// Counts of a decoding. Zero at first; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Packets of the capture.
    pub packets: u64,
    /// Data datagrams that were opened.
    pub opened: u64,
    /// Messages of handshakes.
    pub handshakes: u64,
    /// Data datagrams with a label that no key of the log has.
    pub no_key: u64,
    /// Data datagrams that did not open under the key of their label.
    pub unauthentic: u64,
    /// Datagrams with a number that was there before: captured twice, or replayed.
    pub repeated: u64,
    /// Datagrams that are none.
    pub malformed: u64,
    /// Opened datagrams with frames that this version does not know, or malformed ones.
    pub bad_frames: u64,
    /// Inner packets that were given out.
    pub inner: u64,
    /// Of these, put together of pieces.
    pub in_pieces: u64,
    /// Inner packets that had been given out before: retransmitted, or by two paths.
    pub copies: u64,
    /// IP packets in fragments.
    pub fragments: u64,
    /// Packets of which the capture has a part.
    pub cut_short: u64,
    /// Connections of TCP with TLS on them.
    pub tls: u64,
    /// Times that bytes of a TCP connection were missing.
    pub gaps: u64,
}

impl Summary {
    pub(crate) fn count(&mut self, verdict: &Verdict<'_>) {
        let counter = match verdict {
            Verdict::Handshake(_) => &mut self.handshakes,
            Verdict::Opened { .. } => &mut self.opened,
            Verdict::Refused(Refusal::NoKey) => &mut self.no_key,
            Verdict::Refused(Refusal::Unauthentic) => &mut self.unauthentic,
            Verdict::Refused(Refusal::Repeated) => &mut self.repeated,
            Verdict::Refused(Refusal::Malformed) => &mut self.malformed,
        };
        *counter += 1;
    }

    /// Datagrams that should have opened and did not.
    pub fn refused(&self) -> u64 {
        self.no_key + self.unauthentic + self.malformed
    }

    /// All datagrams that were found.
    pub fn datagrams(&self) -> u64 {
        self.opened + self.handshakes + self.repeated + self.refused()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            (self.packets, "packets captured"),
            (self.opened, "datagrams opened"),
            (self.handshakes, "messages of handshakes"),
            (self.inner, "inner packets"),
        ];
        let more = [
            (self.in_pieces, "of these put together of pieces"),
            (self.copies, "copies of inner packets left out (retransmitted, or by two paths)"),
            (self.repeated, "datagrams left out whose number was there before (captured twice, or replayed)"),
            (self.no_key, "datagrams not opened: no key of the log has their label"),
            (self.unauthentic, "datagrams not opened: unauthentic under the key of their label"),
            (self.malformed, "datagrams not opened: they are none"),
            (self.bad_frames, "datagrams with unknown or malformed frames"),
            (self.fragments, "fragments of IP packets left out"),
            (self.cut_short, "packets left out of which the capture has a part only (tcpdump -s 0 takes all)"),
            (self.tls, "TCP connections left out because there is TLS on them"),
            (self.gaps, "times that bytes of a TCP connection were missing"),
        ];
        let more = more.into_iter().filter(|(count, _)| *count > 0);
        lines.into_iter().chain(more).try_for_each(|(count, what)| writeln!(f, "{count:>9}  {what}"))
    }
}
