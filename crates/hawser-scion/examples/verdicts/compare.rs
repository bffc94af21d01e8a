//! Two verdicts on one packet, and where ours may be stricter (README.md, "Stricter than the reference").

use hawser_scion::packet::{Malformed, NotReversible, Packet, Quote, Upper};

use crate::ours::{Accepted, verdict};

/// How two verdicts compare.
pub enum Outcome {
    /// All fields are the same.
    BothAccept,
    /// Neither reads it.
    BothReject,
    /// We refuse something that the reference lets pass, and are to do so.
    Stricter(Reason),
    /// A bug of one of them; our line.
    Unexplained(String),
}

/// Why we refuse what the reference lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Version,
    PayloadLength,
    Service,
    UdpLength,
    Interface,
    Position,
    Quote,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::Version => "a version whose layout is not known",
            Reason::PayloadLength => "payload length is not what follows",
            Reason::Service => "a service where a host is needed",
            Reason::UdpLength => "udp length is 0, or more than there is",
            Reason::Interface => "an interface of more than 16 bits",
            Reason::Position => "no way back from a position that is not on the path",
            Reason::Quote => "no port for a quote that we would refuse as a packet",
        })
    }
}

/// Compares verdicts on a packet. Where the reference does not look at a field that we refuse it for, the field is
/// mended and all else compared, so that no other difference hides behind it.
pub fn compare(packet: &[u8], theirs: &str) -> Outcome {
    match verdict(packet) {
        Ok((packet, ours)) => compare_accepted(&packet, ours, theirs),
        Err(_) if theirs == "reject" => Outcome::BothReject,
        Err(Malformed::Version(_)) => mended(packet, theirs, Reason::Version, |packet| packet[0] &= 0xf),
        Err(Malformed::PayloadLength { there, .. }) => mended(packet, theirs, Reason::PayloadLength, |packet| {
            packet[6..8].copy_from_slice(&(there as u16).to_be_bytes());
        }),
        Err(Malformed::Service(_)) => Outcome::Stricter(Reason::Service),
        Err(Malformed::UdpLength { said, there }) if said == 0 || said > there => Outcome::Stricter(Reason::UdpLength),
        Err(Malformed::Interface(_)) => Outcome::Stricter(Reason::Interface),
        Err(error) => Outcome::Unexplained(format!("reject: {error}")),
    }
}

fn mended(packet: &[u8], theirs: &str, reason: Reason, mend: impl FnOnce(&mut [u8])) -> Outcome {
    let mut packet = packet.to_vec();
    mend(&mut packet);
    match compare(&packet, theirs) {
        Outcome::Unexplained(ours) => Outcome::Unexplained(ours),
        _ => Outcome::Stricter(reason),
    }
}

fn compare_accepted(packet: &Packet<'_>, mut ours: Accepted, theirs: &str) -> Outcome {
    let line = ours.line();
    if line == theirs {
        return Outcome::BothAccept;
    }
    let mut reason = None;
    if matches!(packet.dataplane().reversed(), Err(NotReversible::Position { .. })) {
        ours.back = field(theirs, "back=");
        reason = Some(Reason::Position);
    }
    if refuses_quote(packet) {
        ours.port = field(theirs, "port=");
        reason = Some(Reason::Quote);
    }
    match reason {
        Some(reason) if ours.line() == theirs => Outcome::Stricter(reason),
        _ => Outcome::Unexplained(line),
    }
}

/// Whether a quote is refused for what the reference does not look at when it looks for a port.
fn refuses_quote(packet: &Packet<'_>) -> bool {
    let Upper::Scmp(scmp) = packet.upper() else { return false };
    let refused = scmp.quoted().map(Quote::read);
    matches!(refused, Some(Err(Malformed::Version(_) | Malformed::AddressType(_) | Malformed::Interface(_))))
}

fn field(line: &str, name: &str) -> String {
    let value = line.split(' ').find_map(|word| word.strip_prefix(name));
    value.unwrap_or_default().to_owned()
}
