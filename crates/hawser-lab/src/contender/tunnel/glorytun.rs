//! glorytun, version 0.3: multipath UDP with the rate of each path told, of a recording its mean. Its commands: the
//! project's README.

use std::path::{Path, PathBuf};

use super::{Adapter, ContenderPlan, Ground, LOCAL, LabError, Options, Pair, Programs, REMOTE, program};
use crate::contender::links::rates;
use crate::portals::{any_of, new_key};
use crate::text::hex;

/// Devices: their names tell both ends apart, whose control sockets lie in one folder.
const DEVICES: [(&str, &str); 2] = [(REMOTE, "gt-remote"), (LOCAL, "gt-local")];
/// Where the remote end listens, and the local one too. Source: glorytun, its default.
const PORT: &str = "5000";
/// What it is told of a link without a rate, in bits a second: more than anything here.
const UNSHAPED: u64 = 10_000_000_000;
/// Bits of a byte: it counts rates in bytes.
const BYTE_BITS: u64 = 8;

/// Its settings. Plain data.
pub(super) struct Glorytun {
    program: Option<PathBuf>,
    /// ChaCha20 in place of AES.
    chacha: bool,
}

impl Glorytun {
    /// The words that start an end; the local one calls `endpoint`.
    fn bind<'a>(&self, role: &str, any: &'a str, endpoint: &'a str, device: &'a str, key: &'a str) -> Vec<&'a str> {
        let mut words = vec!["bind", any, PORT];
        if role == LOCAL {
            words.extend(["to", endpoint, PORT]);
        }
        words.extend(["dev", device, "keyfile", key]);
        if self.chacha {
            words.push("chacha");
        }
        words
    }
}

/// The words that add a path, with its rates in bits a second.
fn path(address: &str, [up, down]: [u64; 2]) -> String {
    let (device, up, down) = (DEVICES[1].1, up / BYTE_BITS, down / BYTE_BITS);
    format!("path up {address} dev {device} rate tx {up} rx {down}")
}

impl Adapter for Glorytun {
    const KIND: &'static str = "glorytun";

    fn parse(_: &ContenderPlan, options: &mut Options, _: &Programs) -> Result<Self, LabError> {
        let program = options.path("program")?;
        let chacha = options.word("cipher", &["auto", "chacha20"])? == "chacha20";
        Ok(Self { program, chacha })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let program = program::find(Self::KIND, ("program", self.program.as_deref()), "glorytun")?;
        let key = pair.write("key", &secret()?)?;
        let endpoint = ground.stage.endpoint;
        let (any, endpoint, key) = (any_of(endpoint).to_string(), endpoint.to_string(), key.to_string_lossy());
        for (role, device) in DEVICES {
            let words = self.bind(role, &any, &endpoint, device, &key);
            pair.start(role, ground.namespace(role), &program, words)?;
            ground.configure(role, device, pair)?;
        }
        paths(ground, pair, &program)
    }
}

/// A path for each link.
fn paths(ground: &Ground<'_>, pair: &Pair, program: &Path) -> Result<(), LabError> {
    for link in ground.links {
        let words = path(&link.address.to_string(), rates(link).map(|rate| rate.unwrap_or(UNSHAPED)));
        let words: Vec<_> = words.split(' ').collect();
        pair.run(ground.namespace(LOCAL), program, &words)?;
    }
    Ok(())
}

/// A key as `glorytun keygen` writes it: 32 bytes, in hexadecimal digits.
fn secret() -> Result<String, LabError> {
    Ok(hex(new_key()?.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::parsed;
    use super::*;

    #[test]
    fn commands_are_those_of_its_readme() {
        let glorytun: Glorytun = parsed("cipher = \"chacha20\"");
        let local = glorytun.bind(LOCAL, "0.0.0.0", "198.51.100.7", "gt-local", "/key").join(" ");
        assert_eq!(local, "bind 0.0.0.0 5000 to 198.51.100.7 5000 dev gt-local keyfile /key chacha");
        let glorytun: Glorytun = parsed("");
        let remote = glorytun.bind(REMOTE, "0.0.0.0", "198.51.100.7", "gt-remote", "/key").join(" ");
        assert_eq!(remote, "bind 0.0.0.0 5000 dev gt-remote keyfile /key");
        let words = path("10.1.1.2", [8_000_000, 16_000_000]);
        assert_eq!(words, "path up 10.1.1.2 dev gt-local rate tx 1000000 rx 2000000");
    }

    #[test]
    fn a_key_is_of_64_digits_and_never_the_same() {
        let keys = [secret().expect("randomness"), secret().expect("randomness")];
        assert!(keys.iter().all(|key| key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit())));
        assert_ne!(keys[0], keys[1]);
    }
}
