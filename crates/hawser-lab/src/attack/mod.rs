//! Hostile datagrams, as fast as told.
//!
//! 1. An [`Arsenal`] writes one after the other: against a portal (`portal`), or a shim (`shim`).
//! 2. An [`Attack`] throws as many as are due in each pulse, and counts what comes back.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;

use crate::background::{Background, Stop};
use crate::error::LabError;

pub(crate) mod portal;
pub(crate) mod shim;

/// The attack's pulse.
const PULSE: Duration = Duration::from_millis(1);
const PULSES_A_SECOND: u32 = 1_000;

/// What is thrown. The attack's thread owns it.
pub(crate) trait Arsenal: Send + 'static {
    /// Step 1: the next datagram.
    fn next(&mut self) -> &[u8];
}

/// What came of an attack. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Thrown {
    /// Datagrams.
    pub count: u64,
    /// How many of them in a second.
    pub per_second: f64,
    /// Packets that came back.
    pub answers: u64,
}

/// Step 2: the attack's thread. Runs from the start; stopped on drop.
pub(crate) struct Attack(Background<Thrown>);

impl Attack {
    /// Against an address, from a namespace and a port: as many as are due in each pulse, and those of pulses that were
    /// slept through too.
    pub fn start(
        from: &Namespace,
        mut arsenal: impl Arsenal,
        [own, target]: [SocketAddr; 2],
        per_second: u32,
    ) -> Result<Self, LabError> {
        let throw = move |mut stop: Stop| -> io::Result<Thrown> {
            let socket = UdpSocket::bind(own)?;
            socket.set_nonblocking(true)?;
            let (start, mut thrown) = (Instant::now(), Thrown::default());
            let per_pulse = u64::from(per_second / PULSES_A_SECOND).max(1);
            while !stop.is_told() {
                let pulses = u64::try_from(start.elapsed().as_nanos() / PULSE.as_nanos()).unwrap_or(u64::MAX);
                while thrown.count < pulses * per_pulse {
                    match socket.send_to(arsenal.next(), target) {
                        Ok(_) => thrown.count += 1,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
                while socket.recv(&mut [0; 2048]).is_ok() {
                    thrown.answers += 1;
                }
                thread::sleep(PULSE);
            }
            Ok(Thrown { per_second: thrown.count as f64 / start.elapsed().as_secs_f64(), ..thrown })
        };
        Background::start(from, "stranger", throw).map(Self)
    }

    /// Ends it.
    pub fn stop(self) -> Result<Thrown, LabError> {
        self.0.finish().map_err(|error| LabError::system("throw hostile datagrams", error))
    }
}
