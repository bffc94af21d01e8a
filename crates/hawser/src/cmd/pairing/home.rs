//! Where a portal's files are, by the name of its configuration.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_config::{DEFAULT_FILE, DEFAULT_SOCKET, DEFAULT_STATE_DIR, Portal};

/// Of the private key, beside the configuration.
const KEY_FILE: &str = "private.key";

/// A portal's files. Plain data.
#[derive(Clone, Debug)]
pub struct Home {
    /// The configuration.
    pub config: PathBuf,
    /// Its folder.
    pub folder: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    /// What the portal keeps.
    pub state: PathBuf,
}

impl Home {
    /// As the configuration says. Where there is none that can be read, the usual one's are where the system has such
    /// files, and another one's are beside it.
    pub fn of(config: &Path) -> Self {
        Self::by(config, hawser_config::read(config).ok().map(|(read, _)| read.portal))
    }

    /// The same by what was read of it; none where it cannot be.
    fn by(config: &Path, portal: Option<Portal>) -> Self {
        let folder = config.parent().unwrap_or(Path::new("")).to_owned();
        let (socket, state) = match portal {
            Some(portal) => (portal.socket, portal.state_dir),
            None if config == Path::new(DEFAULT_FILE) => (DEFAULT_SOCKET.into(), DEFAULT_STATE_DIR.into()),
            None => {
                let folder = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
                (folder.join("hawser.sock"), folder.join("state"))
            }
        };
        Self { config: config.to_owned(), key: folder.join(KEY_FILE), folder, socket, state }
    }

    /// `[portal]` with what is not the default.
    pub fn portal_section(&self) -> String {
        let mut text = format!("[portal]\nprivate_key_file = \"{KEY_FILE}\"\n");
        if self.socket != Path::new(DEFAULT_SOCKET) {
            text += &format!("socket = \"{}\"\nstate_dir = \"{}\"\n", self.socket.display(), self.state.display());
        }
        text
    }

    /// A command line for this configuration.
    pub fn command(&self, words: &str) -> String {
        let c = if self.config == Path::new(DEFAULT_FILE) {
            String::new()
        } else {
            format!(" -c {}", self.config.display())
        };
        format!("sudo hawser {words}{c}")
    }
}

/// Seconds since 1970, as tokens count them.
pub fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_and_state_are_where_the_file_says_or_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("site.toml");
        let places = |home: Home| (home.socket, home.state);
        assert_eq!(places(Home::of(&file)), (folder.path().join("hawser.sock"), folder.path().join("state")));
        // This machine may have such a file, with places of its own.
        let usual = places(Home::by(Path::new(DEFAULT_FILE), None));
        assert_eq!(usual, (DEFAULT_SOCKET.into(), DEFAULT_STATE_DIR.into()));
        let portal = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n";
        let rest = "[tun]\naddresses = [\"10.77.0.1/24\"]\n";
        let own = (folder.path().join("own.sock"), "/var/own".into());
        let table = [("", usual), ("socket = \"own.sock\"\nstate_dir = \"/var/own\"\n", own)];
        std::fs::create_dir(folder.path().join("peers.d")).expect("a folder");
        for (more, expect) in table {
            std::fs::write(&file, format!("{portal}{more}{rest}")).expect("it is written");
            assert_eq!(places(Home::of(&file)), expect, "{more:?}");
        }
    }
}
