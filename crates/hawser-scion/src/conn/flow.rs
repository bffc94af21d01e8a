//! The way to one destination, kept good while packets use it.
//!
//! 1. A flow is found: inside the AS, by looking paths up, along a path that is given, or from a packet that came
//!    ([`Flow::inside`], [`Flow::looked_up`], [`Flow::given`], [`Flow::learned`]).
//! 2. A batch takes the way as it is now ([`Flow::way`]): the next batch may find another.
//! 3. The keeper's thread asks for paths again when the flow says so ([`Flow::due`]) and tells it the answer.
//! 4. What SCMP says of the path in use changes the way at once ([`Flow::died`], [`Flow::lower_mtu`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use super::dead::{DeadPart, DeadParts};
use super::error::RouteError;
use super::events::{Event, Events};
use super::flows::Key;
use super::renewal::{Chance, Renewal};
use super::way::{Local, Now, Way};
use crate::addr::EndpointAddr;
use crate::path::{Fingerprint, Path};

/// Paths whose lower MTU is remembered, for one flow.
const MOST_LIMITS: usize = 32;

/// One destination and the way there. Begins with a way; keeps it until it expires or a better one is found.
/// For several threads: senders read the way, one at a time changes it.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) key: Key,
    pub(super) destination: EndpointAddr,
    way: RwLock<Arc<Way>>,
    book: Mutex<Book>,
    /// Which of the socket's batches used it last.
    pub(super) used: AtomicU64,
}

/// How the way was found, and what else is known.
#[derive(Debug)]
enum Book {
    /// Inside the AS.
    Inside,
    /// By asking.
    LookedUp(LookedUp),
    /// By whoever uses it, who also renews it; its packets may have no more than this many bytes.
    Given(u16),
    /// From a packet with this path in its header.
    Learned(Box<[u8]>),
}

/// What was answered, and what came of it.
#[derive(Debug)]
struct LookedUp {
    known: Vec<Path>,
    renewal: Renewal,
    /// When a better path than the one in use is no longer dead.
    better_at: Option<Instant>,
    limits: Vec<(Fingerprint, u16)>,
}

/// What a flow's decisions need beside itself. Borrowed for one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) local: &'a Local,
    pub(super) dead: &'a Mutex<DeadParts>,
    pub(super) events: &'a Events,
    pub(super) now: Now,
}

impl Flow {
    fn new(key: Key, way: Way, book: Book) -> Flow {
        let destination = key.destination();
        Flow { key, destination, way: RwLock::new(Arc::new(way)), book: Mutex::new(book), used: AtomicU64::new(0) }
    }

    /// Step 1: to a host of the own AS.
    pub(super) fn inside(local: &Local, destination: EndpointAddr) -> Result<Flow, RouteError> {
        Ok(Flow::new(Key::To(destination), local.inside(destination)?, Book::Inside))
    }

    /// Step 1: the same, back to whoever sent a packet.
    pub(super) fn back_inside(key: Key, way: Way) -> Flow {
        Flow::new(key, way, Book::Inside)
    }

    /// Step 1: by paths that were looked up.
    pub(super) fn looked_up(
        around: Around<'_>,
        destination: EndpointAddr,
        known: Vec<Path>,
        chance: Chance,
    ) -> Result<Flow, RouteError> {
        let Some((path, better_at)) = choose(around, &known, None) else {
            return Err(RouteError::NoPath { destination, family: around.local.family() });
        };
        let way = around.local.along(destination, path, u16::MAX)?;
        let renewal = Renewal::new(around.now.wall, path.expiry, chance);
        Ok(Flow::new(
            Key::To(destination),
            way,
            Book::LookedUp(LookedUp { known, renewal, better_at, limits: Vec::new() }),
        ))
    }

    /// Step 1: along one path, whatever happens to it.
    pub(super) fn given(local: &Local, destination: EndpointAddr, path: &Path) -> Result<Flow, RouteError> {
        Ok(Flow::new(Key::To(destination), local.along(destination, path, u16::MAX)?, Book::Given(u16::MAX)))
    }

    /// Step 3: the same path with other hop fields, or another one, of one that was given.
    pub(super) fn give(&self, local: &Local, path: &Path) -> Result<(), RouteError> {
        let mut book = self.book();
        if let Book::Given(limit) = &mut *book {
            if self.current().path != path.interfaces {
                *limit = u16::MAX;
            }
            self.swap(local.along(self.destination, path, *limit)?);
        }
        Ok(())
    }

    /// Step 1: back along the path in a packet's header, `raw`.
    pub(super) fn learned(key: Key, way: Way, raw: &[u8]) -> Flow {
        Flow::new(key, way, Book::Learned(raw.into()))
    }

    /// Whether it goes back along a path, and another one than `raw`.
    pub(super) fn learned_another(&self, raw: &[u8]) -> bool {
        matches!(&*self.book(), Book::Learned(known) if **known != *raw)
    }

    /// Whether it only goes back along a path.
    pub(super) fn is_learned(&self) -> bool {
        matches!(*self.book(), Book::Learned(_))
    }

    /// Step 2: the way as it is now.
    pub(super) fn way(&self, now: SystemTime) -> Result<Arc<Way>, RouteError> {
        let way = self.current();
        match way.expiry {
            Some(since) if since <= now => Err(RouteError::Expired { destination: self.destination, since }),
            _ => Ok(way),
        }
    }

    /// Notes that a batch used it.
    pub(super) fn touch(&self, batch: u64) {
        self.used.store(batch, Ordering::Relaxed);
    }

    /// The way, expired or not.
    pub(super) fn current(&self) -> Arc<Way> {
        Arc::clone(&self.way.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Step 3: when to ask for paths again, and when to look again at those known.
    pub(super) fn due(&self) -> (Option<SystemTime>, Option<Instant>) {
        match &*self.book() {
            Book::LookedUp(looked_up) => (looked_up.renewal.due(), looked_up.better_at),
            Book::Inside | Book::Given(_) | Book::Learned(_) => (None, None),
        }
    }

    /// Step 3: paths are asked for now.
    pub(super) fn ask(&self) {
        if let Book::LookedUp(looked_up) = &mut *self.book() {
            looked_up.renewal.ask();
        }
    }

    /// Step 3: these are the paths.
    pub(super) fn answered(&self, around: Around<'_>, known: Vec<Path>, chance: Chance) {
        let mut book = self.book();
        let Book::LookedUp(looked_up) = &mut *book else { return };
        let keep = looked_up.better_at.is_none().then(|| self.current().path.clone());
        let Some((path, better_at)) = choose(around, &known, keep.as_ref()) else {
            looked_up.renewal.failed(around.now.wall);
            let reason = format!("no path to {} that can be used", self.destination.isd_as);
            around.events.tell(Event::RenewalFailed { destination: self.destination, reason });
            return;
        };
        let path = path.clone();
        looked_up.known = known;
        looked_up.better_at = better_at;
        looked_up.renewal.answered(around.now.wall, path.expiry, chance);
        self.renew(around, looked_up, &path);
    }

    /// Step 3: there was no answer.
    pub(super) fn failed(&self, around: Around<'_>, reason: String) {
        if let Book::LookedUp(looked_up) = &mut *self.book() {
            looked_up.renewal.failed(around.now.wall);
            around.events.tell(Event::RenewalFailed { destination: self.destination, reason });
        }
    }

    /// Step 3: a better path than the one in use may be tried again.
    pub(super) fn reconsider(&self, around: Around<'_>) {
        let mut book = self.book();
        let Book::LookedUp(looked_up) = &mut *book else { return };
        let known = std::mem::take(&mut looked_up.known);
        if let Some((path, better_at)) = choose(around, &known, None) {
            looked_up.better_at = better_at;
            if path.interfaces != self.current().path {
                self.renew(around, looked_up, path);
            }
        } else {
            looked_up.better_at = None;
        }
        looked_up.known = known;
    }

    /// Step 4: a part of the path in use died; says whether that was so. `around.dead` knows of it already.
    pub(super) fn died(&self, around: Around<'_>, because: DeadPart) -> bool {
        let mut book = self.book();
        let (from, destination) = (self.current().path.clone(), self.destination);
        if !because.is_on(&from) {
            return false;
        }
        let Book::LookedUp(looked_up) = &mut *book else {
            let is_given = matches!(*book, Book::Given(_));
            if is_given {
                around.events.tell(Event::NoOther { destination, path: from, because });
            }
            return is_given;
        };
        looked_up.renewal.hurry(around.now.wall);
        let known = std::mem::take(&mut looked_up.known);
        let chosen = choose(around, &known, None);
        let event = match chosen {
            Some((path, better_at)) if path.interfaces != from => {
                looked_up.better_at = better_at;
                let to = path.interfaces.clone();
                self.install(around.local, looked_up, path).then_some(Event::PathReplaced {
                    destination,
                    from,
                    to,
                    because,
                })
            }
            _ => Some(Event::NoOther { destination, path: from, because }),
        };
        looked_up.known = known;
        event.into_iter().for_each(|event| around.events.tell(event));
        true
    }

    /// Step 4: the path in use carries no more than `mtu`; says whether that was news.
    pub(super) fn lower_mtu(&self, mtu: u16, events: &Events) -> bool {
        let mut book = self.book();
        let Some(way) = self.current().lowered(mtu) else { return false };
        if let Book::Given(limit) = &mut *book {
            *limit = mtu;
        }
        if let Book::LookedUp(looked_up) = &mut *book {
            looked_up.limits.retain(|(path, _)| *path != way.path);
            if looked_up.limits.len() == MOST_LIMITS {
                looked_up.limits.remove(0);
            }
            looked_up.limits.push((way.path.clone(), mtu));
        }
        events.tell(Event::MtuLowered { destination: self.destination, mtu, max_payload: way.max_payload });
        self.swap(way);
        true
    }

    /// Puts a path in the place of the one in use, and tells of it.
    fn renew(&self, around: Around<'_>, looked_up: &LookedUp, path: &Path) {
        let (destination, from) = (self.destination, self.current().path.clone());
        if self.install(around.local, looked_up, path) {
            around.events.tell(Event::PathRenewed { destination, from, to: path.interfaces.clone() });
        }
    }

    /// Makes a path the one in use; a path whose bytes make no header changes nothing.
    fn install(&self, local: &Local, looked_up: &LookedUp, path: &Path) -> bool {
        let limit = looked_up.limits.iter().find(|(limited, _)| *limited == path.interfaces);
        let way = local.along(self.destination, path, limit.map_or(u16::MAX, |(_, mtu)| *mtu));
        way.map(|way| self.swap(way)).is_ok()
    }

    fn swap(&self, way: Way) {
        *self.way.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(way);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path to take: `keep` if it lives, else the first that does, else the one that is dead for the shortest time;
/// and when a path that would have been taken first is no longer dead.
fn choose<'a>(
    around: Around<'_>,
    known: &'a [Path],
    keep: Option<&Fingerprint>,
) -> Option<(&'a Path, Option<Instant>)> {
    let dead = around.dead.lock().unwrap_or_else(PoisonError::into_inner);
    let usable = || known.iter().filter(|path| around.local.can_use(path, around.now.wall));
    let until = |path: &Path| dead.until(&path.interfaces, around.now.mono);
    let kept = usable().find(|path| Some(&path.interfaces) == keep && until(path).is_none());
    if let Some(path) = kept {
        return Some((path, None));
    }
    let live = usable().find(|path| until(path).is_none());
    let path = live.or_else(|| usable().min_by_key(|path| until(path)))?;
    let better = usable().take_while(|before| before.interfaces != path.interfaces);
    Some((path, better.filter_map(until).min()))
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
