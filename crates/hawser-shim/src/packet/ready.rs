//! Which descriptors are ready: by poll(2), as the portal's packet thread does, and for its reasons.

use hawser_net::netcfg::EventReceiver;
use hawser_scion::conn::ScionSocket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use smallvec::SmallVec;

use super::handle::Told;
use super::tuns::Tuns;
use super::world::World;
use crate::engine::ConnId;

/// Descriptors that are waited for without an allocation: 9 TUN devices, the port, orders, and 21 connections.
const FEW: usize = 32;

/// What was ready when the thread last looked. Nothing at first; reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Bit k: interface k.
    pub tuns: u16,
    pub told: bool,
    pub port: bool,
    pub port_writable: bool,
    pub conns: Vec<ConnId>,
    pub writable: Vec<ConnId>,
    /// Ports to which segments of TCP came.
    pub tcp: Vec<u16>,
}

impl Ready {
    /// Waits until something is ready or the time is over.
    ///
    /// # Errors
    /// The kernel's. A signal is none: nothing is ready then.
    pub fn wait(
        &mut self,
        tuns: &Tuns,
        told: &EventReceiver<Told>,
        socket: &ScionSocket,
        world: &World,
        timeout: Option<&Timespec>,
    ) -> Result<(), Errno> {
        let flags = |is_full: bool| if is_full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut watched = SmallVec::<[PollFd<'_>; FEW]>::new();
        watched.extend([PollFd::new(told, PollFlags::IN), PollFd::new(socket, flags(world.is_port_full()))]);
        watched.extend(tuns.all().map(|tun| PollFd::new(tun, PollFlags::IN)));
        watched.extend(world.conns().map(|(_, conn, is_full)| PollFd::new(conn, flags(is_full))));
        watched.extend(world.tcps().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)));
        self.conns.clear();
        self.tcp.clear();
        self.writable.clear();
        (self.tuns, self.told, self.port, self.port_writable) = (0, false, false, false);
        match poll(&mut watched, timeout) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        let mut seen = watched.iter().map(PollFd::revents);
        self.told = seen.next().is_some_and(|flags| !flags.is_empty());
        let port = seen.next().unwrap_or(PollFlags::empty());
        (self.port, self.port_writable) = (port.intersects(!PollFlags::OUT), port.intersects(PollFlags::OUT));
        for (place, flags) in seen.by_ref().take(tuns.all().len()).enumerate() {
            self.tuns |= u16::from(!flags.is_empty()) << place;
        }
        for ((id, ..), flags) in world.conns().zip(seen.by_ref()) {
            if flags.intersects(!PollFlags::OUT) {
                self.conns.push(id);
            }
            if flags.intersects(PollFlags::OUT) {
                self.writable.push(id);
            }
        }
        self.tcp.extend(world.tcps().zip(seen).filter(|(_, flags)| !flags.is_empty()).map(|((port, _), _)| port));
        Ok(())
    }
}
