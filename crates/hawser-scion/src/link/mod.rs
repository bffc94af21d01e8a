//! SCION paths as links: datagrams in SCION packets, which one UDP socket of this host sends and receives.
//!
//! 1. [`ScionLink::bind`] opens the socket. One that calls is told its ways ([`Way`], [`ScionLink::set_ways`]); one
//!    that listens learns them from those who call (`callers.rs`). Each way is known to a session by an alias.
//! 2. [`Link::send`]: before every datagram of a train there is room for its headers, which a template fills. Trains
//!    stay trains.
//! 3. [`Link::recv`]: headers are read (`came.rs`), and each datagram comes from the alias of the way that it came
//!    (`key.rs`).
//! 4. [`Link::next_error`]: what routers say by SCMP of packets sent along a way, then what the kernel says of the next
//!    hop.

mod callers;
mod came;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod key;
#[cfg(test)]
mod testing;
mod way;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

use hawser_core::alias::Alias;
use hawser_core::units::LinkId;
use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Link, LinkError, LinkFinding, PathError, RecvBatch, SendBatch, SendOutcome, Unwrapped};

use callers::Callers;
use came::{Came, Heads, Word};
use key::Key;
use way::Laid;

use crate::addr::IsdAs;

pub use way::{Way, WayError};

/// The ports that routers send to where an AS says nothing else (`dispatched_ports` of the reference implementation's
/// topology).
pub const DISPATCHED_PORTS: RangeInclusive<u16> = 31_000..=32_767;
/// Ports tried before the kernel is asked for any.
const PORT_TRIES: u64 = 64;
/// What routers said that is kept until it is asked for; one for each way would do.
const WORDS_MAX: usize = 64;

/// What a SCION link is opened with. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScionOpts {
    /// Its socket. Port 0 takes one of [`DISPATCHED_PORTS`].
    pub udp: UdpOpts,
    /// The session's name of it, which its aliases have.
    pub link: LinkId,
    /// It listens, in this AS: ways are those of its callers, and none is set.
    pub listens: Option<IsdAs>,
}

/// Whose ways these are.
#[derive(Debug)]
enum Ways {
    /// Those that were chosen.
    Ours(Vec<Laid>),
    /// Those that callers came by.
    Theirs(Callers),
}

/// A link whose datagrams go in SCION packets.
/// Starts without a way. For one thread.
#[derive(Debug)]
pub struct ScionLink {
    udp: UdpLink,
    ways: Ways,
    heads: Heads,
    /// Scratch.
    key: Key,
    words: VecDeque<PathError>,
}

impl ScionLink {
    /// Opens a link in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`LinkError`], as for a UDP link.
    pub fn bind(opts: ScionOpts) -> Result<ScionLink, LinkError> {
        let ways = match opts.listens {
            Some(isd_as) => Ways::Theirs(Callers::new(opts.link, isd_as)),
            None => Ways::Ours(Vec::new()),
        };
        let udp = bind_port(opts.udp)?;
        Ok(ScionLink { udp, ways, heads: Heads::default(), key: Key::default(), words: VecDeque::new() })
    }

    /// These are its ways from now on, if it calls. Those that stay keep their aliases.
    ///
    /// # Errors
    /// [`WayError`] of the first that cannot be used; the others are in use.
    pub fn set_ways(&mut self, ways: &[Way]) -> Result<(), WayError> {
        let Ways::Ours(ours) = &mut self.ways else { return Ok(()) };
        let local = self.udp.local_addr();
        ours.clear();
        self.heads.clear();
        let mut first = Ok(());
        for way in ways {
            match Laid::new(way, local) {
                Ok(laid) => ours.push(laid),
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// A session opened a datagram that came from this address: what is kept of the way is worth more than a
    /// stranger's.
    pub fn prove(&mut self, remote: SocketAddr) {
        if let (Ways::Theirs(callers), Some(alias)) = (&mut self.ways, Alias::of(&remote)) {
            callers.prove(&alias);
        }
    }

    /// Whether [`Link::next_error`] has something to tell, of which no descriptor speaks.
    pub fn has_word(&self) -> bool {
        !self.words.is_empty()
    }

    /// What the link has to do without.
    pub fn findings(&self) -> &[LinkFinding] {
        self.udp.findings()
    }
}

/// On a port that routers send to, where none is asked for.
fn bind_port(opts: UdpOpts) -> Result<UdpLink, LinkError> {
    if opts.local.port() != 0 {
        return UdpLink::bind(opts);
    }
    let count = u64::from(DISPATCHED_PORTS.end() - DISPATCHED_PORTS.start()) + 1;
    let start = RandomState::new().hash_one(opts.local);
    for offset in 0..PORT_TRIES {
        let port = DISPATCHED_PORTS.start() + (start.wrapping_add(offset) % count) as u16;
        let mut one = opts.clone();
        one.local.set_port(port);
        match UdpLink::bind(one) {
            Err(LinkError::Bind { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
            other => return other,
        }
    }
    UdpLink::bind(opts)
}

/// Step 3, for one packet.
struct Reader<'a> {
    local: SocketAddr,
    headroom: usize,
    ways: &'a mut Ways,
    heads: &'a mut Heads,
    key: &'a mut Key,
    words: &'a mut VecDeque<PathError>,
}

impl Reader<'_> {
    fn read(&mut self, hop: SocketAddr, local: Option<std::net::IpAddr>, packet: &[u8]) -> Option<Unwrapped> {
        if let Some(known) = self.heads.find(hop, local, packet) {
            return Some(known);
        }
        match came::read(packet, self.local, self.key) {
            Came::Nothing => None,
            Came::Word(word) => {
                self.hear(word);
                None
            }
            Came::Datagram(datagram) => {
                let remote = match self.ways {
                    Ways::Theirs(callers) => {
                        let (remote, changed) = callers.learn(&datagram, hop, self.key)?;
                        if changed {
                            self.heads.clear();
                        }
                        remote
                    }
                    Ways::Ours(ours) => {
                        self.key.set_came(&datagram.from, &datagram.path);
                        ours.iter().find(|way| way.key == *self.key)?.alias.address()
                    }
                };
                let unwrapped = Unwrapped { remote, header: datagram.header };
                if datagram.plain {
                    self.heads.keep(hop, local, packet, unwrapped);
                }
                Some(unwrapped)
            }
        }
    }

    /// Word about the way that the key says.
    fn hear(&mut self, Word { reason, mtu, quoted }: Word) {
        let alias = match self.ways {
            Ways::Ours(ours) => ours.iter().find(|way| way.key == *self.key).map(|way| way.alias),
            Ways::Theirs(callers) => callers.named(self.key),
        };
        let Some(alias) = alias.filter(|_| self.words.len() < WORDS_MAX) else { return };
        // As an IP packet that carries a datagram without the headers in between would have it.
        let mtu = mtu.map(|mtu| (usize::from(mtu).saturating_sub(alias.header()) + self.headroom) as u32);
        self.words.push_back(PathError { remote: alias.address(), reason, mtu, from: None, quoted: Some(quoted) });
    }
}

impl Link for ScionLink {
    fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        let runs = self.udp.recv(batch)?;
        let ScionLink { udp, ways, heads, key, words } = self;
        let mut reader = Reader { local: udp.local_addr(), headroom: udp.headroom(), ways, heads, key, words };
        batch.unwrap_each(|hop, local, packet| reader.read(hop, local, packet));
        Ok(runs)
    }

    fn send(&mut self, batch: &mut SendBatch) -> io::Result<SendOutcome> {
        let ways = &mut self.ways;
        batch.wrap(|route, run, stride| {
            let alias = Alias::of(&route.remote)?;
            let (template, hop) = match ways {
                Ways::Ours(ours) => ours.iter().find(|way| way.alias == alias).map(|way| (&way.template, way.hop))?,
                Ways::Theirs(callers) => callers.way(&alias)?,
            };
            template.finish_run(run, stride);
            Some(hop)
        });
        self.udp.send(batch)
    }

    fn next_error(&mut self) -> io::Result<Option<PathError>> {
        match self.words.pop_front() {
            Some(word) => Ok(Some(word)),
            None => self.udp.next_error(),
        }
    }

    fn reopen(&mut self) -> Result<bool, LinkError> {
        self.udp.reopen()
    }

    fn local_addr(&self) -> SocketAddr {
        self.udp.local_addr()
    }

    fn interface_index(&self) -> Option<u32> {
        self.udp.interface_index()
    }

    /// Those of IP and UDP: what SCION adds each alias says.
    fn headroom(&self) -> usize {
        self.udp.headroom()
    }

    fn kernel_drops(&self) -> u64 {
        self.udp.kernel_drops()
    }
}

impl AsFd for ScionLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

#[cfg(test)]
mod tests;
