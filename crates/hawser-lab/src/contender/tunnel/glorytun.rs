//! glorytun, version 0.3: multipath UDP with the rate of each path told, of a recording its mean. Its commands: the
//! project's README.

use super::{Adapter, Ground, LOCAL, LabError, Options, Pair, REMOTE};
use crate::contender::links::rates;
use crate::portals::{any_of, new_key};
use crate::text::hex;

/// Devices: their names tell both ends apart, whose control sockets lie in one folder.
const DEVICES: [(&str, &str); 2] = [(REMOTE, "gt-remote"), (LOCAL, "gt-local")];
/// Where the remote end listens, and the local one too. Source: glorytun, its default.
const PORT: &str = "5000";
/// What it is told of a link without a rate, in bytes a second: more than anything here.
const UNSHAPED: u64 = 1_250_000_000;

/// Its settings. Plain data.
pub(super) struct Glorytun {
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

/// The words that add a path, with its rates in bytes a second.
fn path(address: &str, [up, down]: [u64; 2]) -> String {
    format!("path up {address} dev {} rate tx {up} rx {down}", DEVICES[1].1)
}

impl Adapter for Glorytun {
    const KIND: &'static str = "glorytun";
    const PROGRAM: Option<&'static str> = Some("glorytun");

    fn parse(options: &mut Options) -> Result<Self, LabError> {
        Ok(Self { chacha: options.word("cipher", &["auto", "chacha20"])? == "chacha20" })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        // As `glorytun keygen` writes it: 32 bytes, in hexadecimal digits.
        let key = pair.write("key", &hex(new_key()?.as_bytes()))?;
        let endpoint = ground.stage.endpoint;
        let (any, endpoint) = (any_of(endpoint).to_string(), endpoint.to_string());
        for (role, device) in DEVICES {
            let words = self.bind(role, &any, &endpoint, device, &key);
            pair.start(role, ground.namespace(role), &ground.program, words)?;
            ground.configure(role, device, pair)?;
        }
        for link in &ground.stage.links {
            let words = path(&link.address.to_string(), rates(link).map(|rate| rate.unwrap_or(UNSHAPED)));
            let words: Vec<_> = words.split(' ').collect();
            pair.run(ground.namespace(LOCAL), &ground.program, &words)?;
        }
        Ok(())
    }
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
        let words = path("10.1.1.2", [1_000_000, 2_000_000]);
        assert_eq!(words, "path up 10.1.1.2 dev gt-local rate tx 1000000 rx 2000000");
    }
}
