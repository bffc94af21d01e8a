//! An emulated link, as its user holds it.
//!
//! 1. `new` makes both TUN interfaces, addresses them, and gives them to the link's thread; or leaves all to the
//!    kernel.
//! 2. `set`, `cut`, `black_hole`, `restore` change it while it runs, and return when that is done.
//! 3. Drop takes it from the thread; both interfaces vanish.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use netlink_packet_route::route::RouteMessage;
use rustix::event::{PollFd, PollFlags, poll};

use super::backend::{Backend, Timekeeping};
use super::counters::Counters;
use super::engine::{Command, Line, LinkId, Published};
use super::medium::Medium;
use super::netem::Kernel;
use super::slab::BUFFER_BYTES;
use super::spec::{Direction, Way};
use super::thread::Thread;
use super::tun::Tun;
use crate::error::WireError;
use crate::netlink::End;

/// An Ethernet packet. Source: RFC 894.
const DEFAULT_MTU: u32 = 1500;
/// Packets the kernel keeps for us between two wakes, at most. It is emptied at every wake, and so no queue of the
/// link: only room for what comes while the thread waits for a processor, 0.2 s of a gigabit. A packet for
/// which it has no room is dropped, and no counter of the link's has it.
const TUN_QUEUE_PACKETS: u32 = 16_384;

/// What an emulated link shall be. Plain data.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// For logs and errors.
    pub name: String,
    /// One end.
    pub a: End,
    /// The other.
    pub b: End,
    /// Of both interfaces, in bytes, at most 2048.
    pub mtu: u32,
    /// The way from a to b.
    pub a_to_b: Direction,
    /// The way back.
    pub b_to_a: Direction,
    /// Who carries its packets.
    pub backend: Backend,
}

impl LinkSpec {
    /// A link of MTU 1500 with the same settings both ways, and a seed of its own for each.
    #[must_use]
    pub fn symmetric(name: &str, a: End, b: End, direction: &Direction) -> Self {
        let [a_to_b, b_to_a] = direction.both_ways();
        Self { name: name.to_owned(), a, b, mtu: DEFAULT_MTU, a_to_b, b_to_a, backend: Backend::default() }
    }

    /// The same with both ways on a medium.
    #[must_use]
    pub fn on(mut self, medium: &Medium) -> Self {
        self.a_to_b.medium = Some(medium.clone());
        self.b_to_a.medium = Some(medium.clone());
        self
    }

    /// The medium that one way or both are on.
    fn medium(&self) -> Result<Option<Medium>, WireError> {
        let unfit = |reason| WireError::Unfit { link: self.name.clone(), reason };
        for way in [&self.a_to_b, &self.b_to_a] {
            way.fits().map_err(unfit)?;
        }
        match (&self.a_to_b.medium, &self.b_to_a.medium) {
            (Some(one), Some(other)) if one != other => Err(unfit("its ways are on two different media")),
            (one, other) => Ok(one.clone().or_else(|| other.clone())),
        }
    }
}

/// A running emulated link. It starts whole, and is removed on drop.
/// Every method may be called from any thread; each waits until the link's thread has obeyed.
///
/// ```text
///              cut                       black_hole(true)
///   ┌─────┐ ◄────────── ┌───────┐ ────────────────► ┌────────────┐
///   │ cut │             │ whole │                   │ black hole │
///   └─────┘ ──────────► └───────┘ ◄──────────────── └────────────┘
///             restore              restore, black_hole(false)
/// ```
#[derive(Debug)]
pub struct EmulatedLink {
    name: String,
    ends: [End; 2],
    carrier: Carrier,
    settings: Mutex<[Direction; 2]>,
    /// While cut: the routes that went with each interface.
    severed: Mutex<Option<[Vec<RouteMessage>; 2]>>,
}

impl EmulatedLink {
    /// Step 1.
    ///
    /// # Errors
    /// Where an interface cannot be made (the name is taken, or it needs root), the MTU is above 2048, or the settings
    /// of its ways do not go together.
    pub fn new(spec: LinkSpec) -> Result<Self, WireError> {
        if spec.mtu as usize > BUFFER_BYTES {
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(WireError::system(format!("start link {}", spec.name), source));
        }
        let carrier = match spec.backend {
            Backend::Thread => Carrier::by_thread(&spec)?,
            Backend::Netem => {
                let (ends, ways) = ([spec.a.clone(), spec.b.clone()], [spec.a_to_b.clone(), spec.b_to_a.clone()]);
                Carrier::Kernel(Kernel::new(&spec.name, ends, spec.mtu, &ways)?)
            }
        };
        Ok(Self {
            name: spec.name,
            ends: [spec.a, spec.b],
            carrier,
            settings: Mutex::new([spec.a_to_b, spec.b_to_a]),
            severed: Mutex::new(None),
        })
    }

    /// The link's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Both ends, a first.
    #[must_use]
    pub fn ends(&self) -> &[End; 2] {
        &self.ends
    }

    /// The settings of one way now.
    #[must_use]
    pub fn settings(&self, way: Way) -> Direction {
        lock(&self.settings)[way.index()].clone()
    }

    /// Changes the settings of one way. What waits and flies stays; the packet being sent goes on at the new rate.
    ///
    /// # Errors
    /// Where the link's thread has ended, or the new settings do not go: the medium cannot change.
    pub fn set(&self, way: Way, change: impl FnOnce(&mut Direction)) -> Result<(), WireError> {
        let mut settings = lock(&self.settings);
        let mut changed = settings[way.index()].clone();
        change(&mut changed);
        let unfit = |reason| WireError::Unfit { link: self.name.clone(), reason };
        if changed.medium != settings[way.index()].medium {
            return Err(unfit("its medium is set when it is made"));
        }
        changed.fits().map_err(unfit)?;
        match &self.carrier {
            Carrier::Thread { thread, id, .. } => thread.ask(Command::Set(*id, way, Box::new(changed.clone())))?,
            Carrier::Kernel(kernel) => kernel.set(&self.name, way, &changed)?,
        }
        settings[way.index()] = changed;
        Ok(())
    }

    /// How well the link's thread keeps time; None where the kernel carries it.
    #[must_use]
    pub fn timekeeping(&self) -> Option<Timekeeping> {
        match &self.carrier {
            Carrier::Thread { thread, .. } => thread.timekeeping(),
            Carrier::Kernel(_) => None,
        }
    }

    /// Takes the interface down on both ends, and loses what is on the way.
    ///
    /// # Errors
    /// Where an interface is gone.
    pub fn cut(&self) -> Result<(), WireError> {
        let mut severed = lock(&self.severed);
        if severed.is_some() {
            return Ok(());
        }
        let [a, b] = &self.ends;
        let routes = [a.namespace.routes_of(&a.interface)?, b.namespace.routes_of(&b.interface)?];
        a.namespace.set_down(&a.interface)?;
        b.namespace.set_down(&b.interface)?;
        // The kernel's queues are emptied as their interface goes down.
        if let Carrier::Thread { thread, id, .. } = &self.carrier {
            thread.ask(Command::Cut(*id))?;
        }
        *severed = Some(routes);
        Ok(())
    }

    /// Lets every packet vanish before the far end, both ways, without a word: interfaces stay up.
    ///
    /// # Errors
    /// Where the link's thread has ended.
    pub fn black_hole(&self, on: bool) -> Result<(), WireError> {
        Way::BOTH.into_iter().try_for_each(|way| self.black_hole_way(way, on))
    }

    /// The same, one way only.
    ///
    /// # Errors
    /// Where the link's thread has ended.
    pub fn black_hole_way(&self, way: Way, on: bool) -> Result<(), WireError> {
        match &self.carrier {
            Carrier::Thread { thread, id, .. } => thread.ask(Command::BlackHole(*id, way, on)),
            Carrier::Kernel(kernel) => kernel.black_hole(way, &self.settings(way), on),
        }
    }

    /// Makes the link whole: no black hole, and after a cut both interfaces up with the routes they had.
    ///
    /// # Errors
    /// Where an interface is gone, or a route cannot be put back.
    pub fn restore(&self) -> Result<(), WireError> {
        self.black_hole(false)?;
        let mut severed = lock(&self.severed);
        let Some(routes) = &*severed else {
            return Ok(());
        };
        for end in &self.ends {
            end.namespace.set_up(&end.interface)?;
        }
        for (end, routes) in self.ends.iter().zip(routes) {
            end.namespace.put_routes(routes)?;
        }
        *severed = None;
        Ok(())
    }

    /// What one way has counted, as of the thread's last wake. The kernel counts only packets in and out, drops, losses
    /// and what waits.
    #[must_use]
    pub fn counters(&self, way: Way) -> Counters {
        match &self.carrier {
            Carrier::Thread { published, .. } => lock(published)[way.index()],
            Carrier::Kernel(kernel) => kernel.counters(way),
        }
    }
}

/// Who carries a link's packets. One owner.
#[derive(Debug)]
enum Carrier {
    Thread { thread: Arc<Thread>, id: LinkId, published: Arc<Published> },
    Kernel(Kernel),
}

impl Carrier {
    fn by_thread(spec: &LinkSpec) -> Result<Self, WireError> {
        let medium = spec.medium()?;
        let tuns = [open(&spec.a, spec.mtu)?, open(&spec.b, spec.mtu)?];
        let start = || Thread::start(&spec.name, medium.clone());
        let thread = match &medium {
            Some(medium) => medium.thread(start)?,
            None => start()?,
        };
        let (id, published) = (thread.next_id(), Arc::new(Published::default()));
        let settings = [spec.a_to_b.clone(), spec.b_to_a.clone()];
        thread.ask(Command::Add(Box::new(Line { id, tuns, settings, published: Arc::clone(&published) })))?;
        Ok(Self::Thread { thread, id, published })
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if let Self::Thread { thread, id, .. } = self {
            // A thread that has ended carries it no longer.
            let _ = thread.ask(Command::Remove(*id));
        }
    }
}

/// Emulates links until `shutdown` is readable or closed (a pipe from who started this process, say its standard
/// input), and returns their counters, from a to b first. For a process of its own, whose processor time
/// is then the emulation's alone.
///
/// # Errors
/// As [`EmulatedLink::new`].
pub fn emulate_until(specs: Vec<LinkSpec>, shutdown: BorrowedFd<'_>) -> Result<Vec<[Counters; 2]>, WireError> {
    let links: Vec<EmulatedLink> = specs.into_iter().map(EmulatedLink::new).collect::<Result<_, _>>()?;
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(shutdown, PollFlags::IN)], None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(WireError::system("wait for shutdown", error)),
        }
    }
    let counted = |link: &EmulatedLink| Way::BOTH.map(|way| link.counters(way));
    Ok(links.iter().map(counted).collect())
}

/// One end's interface, addressed and up.
fn open(end: &End, mtu: u32) -> Result<Tun, WireError> {
    let tun = Tun::open(end)?;
    end.namespace.set_mtu(&end.interface, mtu)?;
    end.namespace.set_queue(&end.interface, TUN_QUEUE_PACKETS)?;
    end.configure()?;
    Ok(tun)
}

/// Locks what only whole values are written to: a panic elsewhere has not broken it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
