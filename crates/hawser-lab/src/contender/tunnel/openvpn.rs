//! OpenVPN 2.6 between two ends on one link. Its options: openvpn(8).
//!
//! 1. Each end trusts the other's certificate by its fingerprint.
//! 2. What goes to its port is steered over the link, whatever the other links' metrics.

use std::net::IpAddr;

use super::{Adapter, Ends, Ground, LOCAL, LabError, Options, Pair, REMOTE, seen};
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
    protocol: &'static str,
    cipher: &'static str,
}

impl OpenVpn {
    /// What an end reads: the remote end's address, its own certificate and key, and the peer's fingerprint.
    fn text(
        &self,
        role: &str,
        outer: IpAddr,
        tun: Ends,
        [certificate, key]: &[String; 2],
        fingerprint: &str,
    ) -> String {
        let is_local = role == LOCAL;
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
        let [own, far] = seen(tun, role);
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
    const PROGRAM: Option<&'static str> = Some("openvpn");
    const ON_ONE_LINK: bool = true;

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self { protocol: options.word("protocol", &["udp", "tcp"])?, cipher: options.word("cipher", &CIPHERS)? })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let link = ground.used[0];
        steer(ground.stage, link, PORT, &mut pair.undo)?;
        let (local, remote) = (pair.certify(LOCAL)?, pair.certify(REMOTE)?);
        for (role, own, peer) in [(REMOTE, &remote, &local), (LOCAL, &local, &remote)] {
            let outer = ground.stage.links[link].far_address;
            let text = self.text(role, outer, ground.tun, &own.files, &peer.fingerprint);
            let file = pair.write(&format!("{role}.conf"), &text)?;
            // It would write its log to standard output.
            let log = pair.folder.path().join(format!("{role} openvpn.log"));
            let arguments = ["--config", &file, "--log-append", &log.to_string_lossy()];
            pair.start(role, ground.namespace(role), &ground.program, arguments)?;
            ground.route(role, DEVICE, pair)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Family, parsed, tun_ends};
    use super::*;

    #[test]
    fn configurations_say_what_the_options_do() {
        let files = ["/cert", "/key"].map(str::to_owned);
        let text = |options, role, inner| {
            parsed::<OpenVpn>(options).text(role, [198, 51, 100, 7].into(), tun_ends(inner), &files, "AB:CD")
        };
        assert_eq!(text("", LOCAL, Family::V4), include_str!("golden/openvpn-local.conf"));
        let remote = text("protocol = \"tcp\"", REMOTE, Family::V6);
        assert_eq!(remote, include_str!("golden/openvpn-remote-tcp.conf"));
    }
}
