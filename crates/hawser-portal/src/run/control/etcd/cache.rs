//! The file that remembers whom a member serves while etcd is away: `hawser0.hub.json` in `state_dir`, written as a
//! whole, for its owner alone.

use std::path::{Path, PathBuf};

use hawser_etcd::roster::Cache;
use tokio::sync::watch;

use crate::pairing::{make_folder, write_private};

/// Where it is, and of which hub. Plain data.
pub struct File {
    path: PathBuf,
    prefix: String,
}

/// Writes it beside the control thread, which waits for no disk. The portal owns it.
pub struct Writer {
    prefix: String,
    text: watch::Sender<String>,
}

impl File {
    pub fn new(folder: &Path, tun: &str, prefix: &str) -> Self {
        Self { path: folder.join(format!("{tun}.hub.json")), prefix: prefix.to_owned() }
    }

    /// What it says. A file that cannot be read is told of: the member goes on without, until it reaches etcd.
    pub fn read(&self) -> Cache {
        let path = self.path.display();
        let text = match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Cache::default(),
            Err(error) => {
                tracing::error!(%path, %error, "peers of the hub not remembered: they wait for etcd");
                return Cache::default();
            }
            Ok(text) => text,
        };
        Cache::decode(&text, &self.prefix).unwrap_or_else(|error| {
            tracing::error!(%path, %error, "peers of the hub not remembered: they wait for etcd");
            Cache::default()
        })
    }

    /// Begins to write what changes, inside a runtime.
    pub fn start(self) -> Writer {
        let Self { path, prefix } = self;
        let (text, mut changed) = watch::channel(String::new());
        tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                let (path, text) = (path.clone(), changed.borrow_and_update().clone());
                // Of many changes the last is written.
                let _ = tokio::task::spawn_blocking(move || write(&path, &text)).await;
            }
        });
        Writer { prefix, text }
    }
}

impl Writer {
    /// This is to be remembered.
    pub fn write(&self, cache: &Cache) {
        let new = cache.encode(&self.prefix);
        self.text.send_if_modified(|text| std::mem::replace(text, new) != *text);
    }
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().unwrap_or(Path::new("."));
    if let Err(error) = make_folder(folder).and_then(|_| write_private(path, text)) {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        tracing::error!(%error, cause, "peers of the hub not remembered: a start without etcd would not have them");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use hawser_config::{PeerName, PublicKey};

    use super::*;

    fn cache(number: u8) -> Cache {
        let key = PublicKey::new([number; 32]).expect("not zero");
        Cache { pending: BTreeMap::from([(key, PeerName::parse("home").expect("a name"))]), ..Cache::default() }
    }

    #[tokio::test]
    async fn the_last_of_what_changed_is_there_after_a_start_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let file = || File::new(&state, "hawser0", "/hawser/hub/");
        assert_eq!(file().read(), Cache::default());
        let writer = file().start();
        (1..9).for_each(|number| writer.write(&cache(number)));
        let written = async {
            while file().read() != cache(8) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), written).await.expect("it is written");
        let path = state.join("hawser0.hub.json");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "{\"v\":").expect("writable");
        assert_eq!(file().read(), Cache::default(), "half a file is none");
    }
}
