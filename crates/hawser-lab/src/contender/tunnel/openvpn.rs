//! OpenVPN 2.6 between two ends on one link. Its options: openvpn(8).
//!
//! 1. Each end trusts the other's certificate by its fingerprint.
//! 2. What goes to its port is steered over the link, whatever the other links' metrics.

use std::net::IpAddr;
use std::path::PathBuf;

use super::{
    Adapter, Choice, ContenderPlan, Ends, Ground, LOCAL, LabError, Options, Pair, Programs, REMOTE, certificate,
    program, seen,
};
use crate::contender::links::steer;

/// The devices, and where the remote end listens. Source: openvpn(8).
const DEVICE: &str = "ovpn0";
const PORT: u16 = 1194;
/// Ciphers of data that it may be told. Source: openvpn(8), --data-ciphers.
const CIPHERS: [&str; 3] = ["AES-128-GCM", "AES-256-GCM", "CHACHA20-POLY1305"];
/// The length of the network of two addresses that IPv6 is given.
const PREFIX_V6: u8 = 64;

/// Its settings. Plain data.
pub(super) struct OpenVpn {
    program: Option<PathBuf>,
    choice: Choice,
    protocol: &'static str,
    cipher: &'static str,
}

/// What a configuration is written from. Borrowed.
struct End<'a> {
    role: &'static str,
    /// The remote end's address.
    outer: IpAddr,
    tun: Ends,
    /// Its own certificate and key.
    files: [&'a str; 2],
    /// The peer's.
    fingerprint: &'a str,
}

impl OpenVpn {
    fn text(&self, end: &End<'_>) -> String {
        let End { role, outer, tun, files: [certificate, key], fingerprint } = end;
        let is_local = *role == LOCAL;
        let version = if outer.is_ipv4() { "4" } else { "6" };
        let protocol = match (self.protocol, is_local) {
            ("tcp", true) => format!("tcp{version}-client"),
            ("tcp", false) => format!("tcp{version}-server"),
            (udp, _) => format!("{udp}{version}"),
        };
        let ways = if is_local {
            format!("tls-client\nnobind\nremote {outer} {PORT}\n")
        } else {
            format!("tls-server\ndh none\nlocal {outer}\nlport {PORT}\nfloat\n")
        };
        let [own, far] = seen(*tun, role);
        let inner = if own.is_ipv4() {
            format!("ifconfig {own} {far}\n")
        } else {
            format!("ifconfig-ipv6 {own}/{PREFIX_V6} {far}\n")
        };
        format!(
            "dev {DEVICE}\ndev-type tun\nproto {protocol}\n{ways}{inner}cert {certificate}\nkey {key}\n\
             peer-fingerprint {fingerprint}\ndata-ciphers {}\nverb 3\n",
            self.cipher
        )
    }
}

impl Adapter for OpenVpn {
    const KIND: &'static str = "openvpn";

    fn parse(plan: &ContenderPlan, options: &mut Options, _: &Programs) -> Result<Self, LabError> {
        Ok(Self {
            program: options.path("program")?,
            choice: Choice::parse(plan, options)?,
            protocol: options.word("protocol", &["udp", "tcp"])?,
            cipher: options.word("cipher", &CIPHERS)?,
        })
    }

    fn choice(&self) -> Option<&Choice> {
        Some(&self.choice)
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let program = program::find(Self::KIND, ("program", self.program.as_deref()), "openvpn")?;
        let link = ground.used[0];
        steer(ground.stage, link, PORT, &mut pair.undo)?;
        let (local, remote) = (certificate::made(LOCAL)?, certificate::made(REMOTE)?);
        for (role, own, peer) in [(REMOTE, &remote, &local), (LOCAL, &local, &remote)] {
            let certificate = pair.write(&format!("{role}.crt"), &own.certificate)?;
            let key = pair.write(&format!("{role}.key"), &own.key)?;
            let end = End {
                role,
                outer: ground.links[link].far_address,
                tun: ground.tun,
                files: [&certificate.to_string_lossy(), &key.to_string_lossy()],
                fingerprint: &peer.fingerprint,
            };
            let file = pair.write(&format!("{role}.conf"), &self.text(&end))?;
            let file = file.to_string_lossy();
            // It would write its log to standard output.
            let log = pair.folder.path().join(format!("{role} openvpn.log"));
            let arguments = ["--config", file.as_ref(), "--log-append", &log.to_string_lossy()];
            pair.start(role, ground.namespace(role), &program, arguments)?;
            pair.bring_up(role, ground.namespace(role), DEVICE)?;
            ground.route(role, DEVICE, pair)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed;
    use super::*;
    use crate::scenario::Family;

    #[test]
    fn configurations_say_what_the_options_do() {
        let end = |role, inner| End {
            role,
            outer: [198, 51, 100, 7].into(),
            tun: super::super::tun_ends(inner),
            files: ["/cert", "/key"],
            fingerprint: "AB:CD",
        };
        let openvpn: OpenVpn = parsed("");
        assert_eq!(openvpn.text(&end(LOCAL, Family::V4)), include_str!("golden/openvpn-local.conf"));
        let openvpn: OpenVpn = parsed("protocol = \"tcp\"");
        assert_eq!(openvpn.text(&end(REMOTE, Family::V6)), include_str!("golden/openvpn-remote-tcp.conf"));
    }
}
