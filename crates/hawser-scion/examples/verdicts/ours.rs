//! What our decoder makes of a packet, in the words of golden/verdicts.

use std::fmt::Write;

use hawser_scion::packet::{Malformed, Packet, PathType, ScmpView, Upper, dispatched_port, parse};

/// What was read of a packet; parts that the comparison looks at on their own.
pub struct Accepted {
    before: String,
    /// The way back in hex, or `-`.
    pub back: String,
    /// The port it is handed to, or `-`.
    pub port: String,
    after: String,
}

impl Accepted {
    /// The line.
    pub fn line(&self) -> String {
        format!("{} back={} port={} {}", self.before, self.back, self.port, self.after)
    }
}

/// Reads a packet.
pub fn verdict(packet: &[u8]) -> Result<(Packet<'_>, Accepted), Malformed> {
    let packet = parse(packet)?;
    let (header, path) = (packet.header(), packet.dataplane());
    let (source, destination) = (packet.source(), packet.destination());
    let kind = match path.path_type() {
        PathType::Empty => 0,
        PathType::Scion => 1,
        PathType::OneHop => 2,
        PathType::Epic => 3,
    };
    let before = format!(
        "tc={} flow={} src={},{} dst={},{} path={kind}:{}",
        header.traffic_class(),
        header.flow_id(),
        source.0,
        source.1,
        destination.0,
        destination.1,
        hex(path.as_bytes())
    );
    let back = path.reversed().map_or_else(|_| "-".to_owned(), |back| hex(back.as_bytes()));
    let port = dispatched_port(&packet).map_or_else(|_| "-".to_owned(), |port| port.to_string());
    let after = match packet.upper() {
        Upper::Udp(udp) => {
            let (payload, sum) = (digest(udp.payload()), udp.verify_checksum());
            format!("udp {} {} payload={payload} sum={sum}", udp.source_port(), udp.destination_port())
        }
        Upper::Scmp(scmp) => {
            format!("scmp {} {} sum={}", scmp.kind_and_code().0, message(&scmp), packet.verify_checksum())
        }
        Upper::Other(protocol) => format!("other {protocol}"),
    };
    Ok((packet, Accepted { before, back, port, after }))
}

fn message(scmp: &ScmpView<'_>) -> String {
    match *scmp {
        ScmpView::DestinationUnreachable { code, quoted } => format!("code={code} quoted={}", digest(quoted)),
        ScmpView::PacketTooBig { mtu, quoted } => format!("mtu={mtu} quoted={}", digest(quoted)),
        ScmpView::ParameterProblem { code, pointer, quoted } => {
            format!("code={code} pointer={pointer} quoted={}", digest(quoted))
        }
        ScmpView::ExternalInterfaceDown { isd_as, interface, quoted } => {
            format!("as={isd_as} interface={interface} quoted={}", digest(quoted))
        }
        ScmpView::InternalConnectivityDown { isd_as, ingress, egress, quoted } => {
            format!("as={isd_as} ingress={ingress} egress={egress} quoted={}", digest(quoted))
        }
        ScmpView::EchoRequest(echo) | ScmpView::EchoReply(echo) => {
            format!("id={} seq={} data={}", echo.id, echo.seq, digest(echo.data))
        }
        ScmpView::TracerouteRequest(trace) | ScmpView::TracerouteReply(trace) => {
            format!("id={} seq={} as={} interface={}", trace.id, trace.seq, trace.isd_as, trace.interface)
        }
        ScmpView::Unknown { code, body, .. } => format!("code={code} body={}", digest(body)),
    }
}

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}

/// Length and 64-bit FNV-1a.
fn digest(bytes: &[u8]) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let sum = bytes.iter().fold(OFFSET, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME));
    format!("{}:{sum:x}", bytes.len())
}
