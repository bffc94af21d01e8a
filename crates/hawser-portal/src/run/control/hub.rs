//! Hubs in the control thread: what a peer keeps of its epochs, what a member announces, what people see of either.
//!
//! 1. [`Epochs::reserve`] writes a block of epochs down before the first of them is used, [`Epochs::follow`] the next
//!    one.
//! 2. [`announced`] says with which routes a member tells routers that it owns a peer.
//! 3. [`Seen`] remembers since when it has stood so with each peer: the status tells.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use hawser_config::{Config, Peer, PublicKey};
use hawser_hub::claim::Role;
use hawser_hub::epochs::Reserve;
use hawser_hub::units::Epoch;
use hawser_net::netcfg::{Change, IfIndex, Metric, RouteSpec, TableId};
use serde::{Deserialize, Serialize};

use super::mtu::Fit;
use super::system::needs_route;
use crate::api::HubStatus;
use crate::run::messages::Standing;

/// What the state file holds. Plain data.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// No epoch from this one on was ever made.
    next: u64,
}

/// The epochs that are reserved. Begins with what the disk says; the control thread owns it.
#[derive(Debug)]
pub struct Epochs {
    file: PathBuf,
    reserve: Reserve,
}

/// Why no epochs could be reserved. Without them a hub's members could not tell two lives of this portal apart.
#[derive(Debug, thiserror::Error)]
pub enum EpochsError {
    /// The file is there and says nothing.
    #[error("read epochs in {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// It cannot be written.
    #[error("write epochs to {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    /// It says that there are none left.
    #[error("reserve epochs in {}: there are no more", .0.display())]
    Over(PathBuf),
}

impl EpochsError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Read(file, _) | Self::Over(file) => {
                format!("the hub's members say which come next: rm {}", file.display())
            }
            Self::Write(file, _) => {
                let folder = file.parent().unwrap_or(file).display();
                format!("a peer of a hub keeps them in [portal] state_dir: is {folder} on a disk that can be written?")
            }
        }
    }
}

impl Epochs {
    /// Step 1: the first epoch that the portal with this TUN device may make.
    ///
    /// # Errors
    /// [`EpochsError`]: no claim may be made then.
    pub fn reserve(folder: &Path, tun: &str) -> Result<(Self, Epoch), EpochsError> {
        let file = folder.join(format!("{tun}.epochs.json"));
        let stored = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => {
                let parsed = read.and_then(|bytes| Ok(serde_json::from_slice::<Saved>(&bytes)?));
                let saved = parsed.map_err(|error| EpochsError::Read(file.clone(), error))?;
                Some(Epoch::new(saved.next).ok_or_else(|| EpochsError::Over(file.clone()))?)
            }
        };
        let (reserve, first) = Reserve::begin(stored).ok_or_else(|| EpochsError::Over(file.clone()))?;
        let epochs = Self { file, reserve };
        epochs.write(reserve)?;
        Ok((epochs, first))
    }

    /// Step 1: this one is in use.
    ///
    /// # Errors
    /// [`EpochsError::Write`]: half a block is left then, or less, and the next one tries again.
    pub fn follow(&mut self, epoch: Epoch) -> Result<(), EpochsError> {
        if let Some(next) = self.reserve.follow(epoch) {
            self.write(next)?;
            self.reserve = next;
        }
        Ok(())
    }

    /// To another file first, which then takes the place of the old one; on the disk before this returns.
    fn write(&self, reserve: Reserve) -> Result<(), EpochsError> {
        let Some(next) = reserve.to_store() else { return Err(EpochsError::Over(self.file.clone())) };
        let write = || {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let fresh = self.file.with_extension("json.new");
            let mut out = File::create(&fresh)?;
            out.write_all(&serde_json::to_vec(&Saved { next: next.get() })?)?;
            out.sync_all()?;
            fs::rename(&fresh, &self.file)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|error| EpochsError::Write(self.file.clone(), error))
    }
}

/// The metrics of announced routes, by the keys of their peers: who comes under a name that another one had has none of
/// its routes. None where nothing is announced.
pub type Announcements = BTreeMap<PublicKey, u32>;

/// Whether the route of a peer's network is announced, and nothing else routes it.
pub fn is_own_route(config: &Config) -> bool {
    config.hub.as_ref().is_some_and(|hub| TableId(hub.table) == TableId::MAIN)
}

/// Step 2: the routes that tell routers of a peer; none where this portal is no member, or does not announce it.
pub fn announced(
    config: &Config,
    peer: &Peer,
    interface: IfIndex,
    announcements: &Announcements,
    fit: &Fit<'_>,
) -> Vec<Change> {
    let Some(hub) = &config.hub else { return Vec::new() };
    let Some(metric) = announcements.get(&peer.public_key).copied().map(Metric) else { return Vec::new() };
    let table = Some(TableId(hub.table)).filter(|table| *table != TableId::MAIN);
    let mtu = fit.of_route(peer).filter(|_| table.is_none());
    let nets = peer.allowed_ips.iter().filter(|net| needs_route(config, net));
    let route = |net| RouteSpec { table, metric: Some(metric), mtu, ..RouteSpec::to(net, interface) };
    nets.map(|net| Change::Route(route(*net))).collect()
}

/// How it stands with each peer, and since when. Nothing at first; the control thread owns it.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<String, (&'static str, Option<Epoch>, Instant)>);

impl Seen {
    /// Step 3: what the status says of a peer.
    pub fn status(&mut self, now: Instant, peer: &Peer, standing: Standing) -> HubStatus {
        let (role, epoch) = in_words(standing);
        let seen = self.0.entry(peer.name.to_string()).or_insert((role, epoch, now));
        if (seen.0, seen.1) != (role, epoch) {
            *seen = (role, epoch, now);
        }
        let epoch = epoch.map_or(0, Epoch::get);
        HubStatus { role: role.to_owned(), epoch, since_s: now.duration_since(seen.2).as_secs_f64(), draining: false }
    }
}

fn in_words(standing: Standing) -> (&'static str, Option<Epoch>) {
    match standing {
        Standing::Active { epoch, settled: true } => ("active", epoch),
        Standing::Active { epoch, settled: false } => ("claiming", epoch),
        Standing::Backup { epoch } => ("standby", epoch),
        Standing::Spare { epoch } => ("spare", epoch),
        Standing::Member { role, epoch } => {
            let word = match role {
                Role::None => "none",
                Role::Standby => "standby",
                // A lease that is over is renewed by the next packet: nobody else owns.
                Role::Owner | Role::Lapsed => "owner",
                Role::Fenced => "fenced",
            };
            (word, epoch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_begins_above_all_epochs_that_any_before_it_could_make() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let mut last = 0;
        for start in 0..4 {
            let (mut epochs, first) = Epochs::reserve(&state, "hawser0").expect("it can be written");
            assert!(first.get() > last, "start {start} begins at {first:?}");
            last = first.get() + 100 * start;
            epochs.follow(Epoch::new(last).expect("in range")).expect("it can be written");
        }
        assert_eq!(state.read_dir().expect("readable").count(), 1, "nothing is left beside the file");
    }

    #[test]
    fn a_block_that_the_disk_did_not_take_is_written_with_the_next_move_and_long_before_the_last_is_used_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let (mut epochs, first) = Epochs::reserve(&state, "hawser0").expect("it can be written");
        let later = |moves: u64| Epoch::new(first.get() + moves).expect("in range");
        fs::rename(&state, folder.path().join("away")).expect("it is there");
        fs::write(&state, "no folder").expect("writable");
        for moves in [64, 65] {
            let error = epochs.follow(later(moves)).expect_err("there is no folder");
            assert!(matches!(error, EpochsError::Write(..)), "{error}");
        }
        fs::remove_file(&state).expect("it is there");
        epochs.follow(later(66)).expect("it can be written");
        let (_, next) = Epochs::reserve(&state, "hawser0").expect("it can be written");
        assert!(next > later(66) && next > later(127), "a start after a crash begins at {next:?}");
    }

    #[test]
    fn a_portal_that_cannot_keep_its_epochs_claims_nothing_and_says_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("hawser0.epochs.json");
        for (text, wanted) in [("{\"nex", "read epochs in "), ("{\"next\":0}", "reserve epochs in ")] {
            fs::write(&file, text).expect("writable");
            let error = Epochs::reserve(folder.path(), "hawser0").expect_err("it says nothing");
            assert!(error.to_string().starts_with(wanted) && error.hint().ends_with("hawser0.epochs.json"), "{error}");
        }
        fs::write(folder.path().join("file"), "").expect("writable");
        let error = Epochs::reserve(&folder.path().join("file"), "hawser0").expect_err("it is no folder");
        assert!(error.to_string().contains("epochs") && error.hint().contains("hub"), "{error}");
    }
}
