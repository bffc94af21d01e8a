//! The yardstick on one link: the minimal forwarder of the crate hawser-yardstick, for comparison.
//!
//! 1. It is built beside `hawser`. 2. Both ends know each other's address, so that its packets leave by the link.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::pair::find;
use super::{Adapter, Ground, LOCAL, LabError, Options, Pair, REMOTE};

/// Where both listen.
const PORT: u16 = 4921;
/// From what both derive their key. It guards nothing: the traffic is our own.
const SECRET: &str = "measured, not guarded";
/// Source: `yardstick --help`.
const CIPHERS: [&str; 2] = ["aes-128-gcm", "chacha20-poly1305"];

/// Its settings. Plain data.
pub(super) struct Yardstick {
    cipher: &'static str,
    program: Option<PathBuf>,
}

impl Adapter for Yardstick {
    const KIND: &'static str = "yardstick";
    const ON_ONE_LINK: bool = true;

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self { cipher: options.word("cipher", &CIPHERS)?, program: options.path("program")? })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let beside = ground.programs.hawser.with_file_name(Self::KIND);
        let told = self.program.clone().or_else(|| beside.is_file().then_some(beside));
        let program = find(Self::KIND, ("program", told.as_deref()), Self::KIND)?;
        let link = ground.used[0];
        let home = SocketAddr::new(ground.stage.address(link), PORT).to_string();
        let far = SocketAddr::new(ground.stage.links[link].far_address, PORT).to_string();
        for (role, bind, peer) in [(REMOTE, &far, &home), (LOCAL, &home, &far)] {
            let device = format!("ys-{role}");
            let ends = ["--tun", &device, "--bind", bind, "--peer", peer, "--role", role];
            let arguments = ends.into_iter().chain(["--cipher", self.cipher, "--secret", SECRET]);
            pair.start(role, ground.namespace(role), &program, arguments)?;
            ground.configure(role, &device, pair)?;
        }
        Ok(())
    }
}
