//! The queue that the kernel keeps in front of the TUN device.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use crate::run::RunError;

/// Packets or trains that wait in the kernel until the packet thread reads them. When it does not keep up, this queue
/// is neither fair nor short. But acknowledgements that waited for a gap to be repaired come to the host in one flush,
/// and let it send a window before the thread reads again, in skbs of few segments: at 256 a stream of 20 Mbit/s over
/// 125 ms and 2.6 % loss lost a hundred packets at a time, and half its rate. Source: measured (`measure random`,
/// seed 39).
pub const QUEUE_LEN: u16 = 1000;

/// Gives the queue of the device `name` its length, in the calling thread's network namespace.
pub fn set(name: &str) -> Result<(), RunError> {
    set_length(name, QUEUE_LEN.into()).map_err(RunError::TunQueue)
}

/// `SIOCSIFTXQLEN` (netdevice(7)).
fn set_length(name: &str, length: libc::c_int) -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: all zeroes is a valid `ifreq`: integers, and a union of integers and null pointers.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // `ifr_qlen` of linux/if.h is the union's `int`.
    request.ifr_ifru.ifru_metric = length;
    // SAFETY: the descriptor is open and SIOCSIFTXQLEN reads one `ifreq`, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFTXQLEN as _, &raw const request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use hawser_net::tun::{Tun, TunOpts};

    use super::*;

    #[test]
    fn a_device_gets_the_length_and_a_missing_one_is_an_error() {
        // A namespace of its own, for this thread only, so that nothing of the host's is touched.
        let thread = std::thread::spawn(|| {
            // SAFETY: only this thread's network namespace changes; it holds no descriptor that depends on it.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
                .expect("this test needs root");
            let tun = Tun::create("hwq%d", &TunOpts::default()).expect("a tun device");
            set(tun.name()).expect("the length is set");
            assert_eq!(read_length(tun.name()), i32::from(QUEUE_LEN));
            let missing = set_length("hw-none", QUEUE_LEN.into()).expect_err("no such device");
            assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
        });
        thread.join().expect("no panic");
    }

    fn read_length(name: &str) -> libc::c_int {
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
        let socket = socket.expect("a socket");
        // SAFETY: as in `set_length`.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: the descriptor is open and SIOCGIFTXQLEN writes one `ifreq`, which outlives the call.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFTXQLEN as _, &raw mut request) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        // SAFETY: the kernel wrote the union's `int`.
        unsafe { request.ifr_ifru.ifru_metric }
    }
}
