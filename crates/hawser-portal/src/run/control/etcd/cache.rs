//! The file that remembers whom a member serves while etcd is away: `hawser0.hub.json` in `state_dir`, written as a
//! whole, for its owner alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_etcd::roster::Cache;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::pairing::{make_folder, write_private};

/// A disk that is well takes milliseconds.
const DISK_PATIENCE: Duration = Duration::from_secs(1);

/// Where it is, and of which hub. Plain data.
#[derive(Clone)]
pub struct File {
    path: PathBuf,
    prefix: String,
}

/// Writes it beside the control thread, which waits for the disk where a key is revoked, and nowhere else. The portal
/// owns it.
pub struct Writer {
    prefix: String,
    /// The text, with its number.
    text: watch::Sender<(u64, String)>,
    /// The number of the text that was written last, and why it was not.
    written: watch::Receiver<(u64, Result<(), String>)>,
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
        self.start_by(write)
    }

    /// The same by what writes a text to a path.
    pub fn start_by(self, write: impl Fn(&Path, &str) -> Result<(), String> + Clone + Send + 'static) -> Writer {
        let Self { path, prefix } = self;
        let (text, mut changed) = watch::channel((0, String::new()));
        let (told, written) = watch::channel((0, Ok(())));
        tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                // Of many changes the last is written.
                let (number, text) = changed.borrow_and_update().clone();
                let (path, write) = (path.clone(), write.clone());
                let outcome = tokio::task::spawn_blocking(move || write(&path, &text)).await;
                // Nobody may wait for it any more.
                let _ = told.send((number, outcome.unwrap_or_else(|error| Err(error.to_string()))));
            }
        });
        Writer { prefix, text, written }
    }
}

impl Writer {
    /// This is to be remembered.
    pub fn write(&self, cache: &Cache) {
        let new = cache.encode(&self.prefix);
        let failed = self.written.borrow().1.is_err();
        self.text.send_if_modified(|(number, text)| {
            let changed = failed || *text != new;
            (*number, *text) = (*number + u64::from(changed), new);
            changed
        });
    }

    /// Waits until that is on the disk, a second at most: the control thread does nothing meanwhile but what packets
    /// wait for.
    ///
    /// # Errors
    /// Why it is not, as far as is known.
    pub async fn written(&mut self) -> Result<(), String> {
        let number = self.text.borrow().0;
        match timeout(DISK_PATIENCE, self.written.wait_for(|(done, _)| *done >= number)).await {
            Ok(Ok(written)) => written.1.clone(),
            Ok(Err(_)) => Err("its writer has ended".to_owned()),
            Err(_) => Err("the disk does not answer".to_owned()),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder).and_then(|_| write_private(path, text)).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        tracing::error!(%error, cause, "peers of the hub not remembered: a start without etcd would not have them");
        format!("{error}: {cause}")
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

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
        let mut writer = file().start();
        (1..9).for_each(|number| writer.write(&cache(number)));
        assert_eq!(writer.written().await, Ok(()));
        assert_eq!(file().read(), cache(8));
        let path = state.join("hawser0.hub.json");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "{\"v\":").expect("writable");
        assert_eq!(file().read(), Cache::default(), "half a file is none");
    }

    #[tokio::test]
    async fn what_the_disk_did_not_take_is_told_and_tried_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        std::fs::write(&state, "no folder").expect("writable");
        let mut writer = File::new(&state, "hawser0", "/hawser/hub/").start();
        writer.write(&cache(1));
        let why = writer.written().await.expect_err("there is no folder");
        assert!(why.starts_with("make folder ") && why.contains(": "), "{why}");
        std::fs::remove_file(&state).expect("it is there");
        writer.write(&cache(1));
        assert_eq!(writer.written().await, Ok(()));
    }
}
