//! Sockets on both sides of a real line: every mode, family and offload.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};

use super::frame::{Outer, SERVICE_VLAN, VLAN, datagram, template};
use super::host::{FAR, Hosts, LINE, NEAR, assert_nothing, bound, receive, until};
use crate::packet::{ENDHOST_PORT, Upper, parse};
use crate::xdp::{Lease, Left, Mode, Wanted, interfaces};

/// The application's port, on the whitelist, and one that is not.
const LISTED: u16 = 31000;
const UNLISTED: u16 = 31001;
/// Datagrams for each port, and how many are on their way at once.
const COUNT: u32 = 600;
const AT_ONCE: u32 = 50;

const MODES: [(Wanted, Mode); 2] = [(Wanted::Generic, Mode::Generic), (Wanted::Native, Mode::Native)];

/// The far host's sockets: an application with a lease, one without, and the dispatcher.
struct Far {
    listed: UdpSocket,
    unlisted: UdpSocket,
    dispatcher: UdpSocket,
    lease: Lease,
}

fn at(host: &str, port: u16) -> SocketAddr {
    SocketAddr::new(host.parse::<IpAddr>().expect("an address"), port)
}

impl Far {
    fn new(hosts: &Hosts, address: &str) -> Far {
        hosts.at_far(|| {
            let [listed, unlisted, dispatcher] = [LISTED, UNLISTED, ENDHOST_PORT].map(|port| bound(at(address, port)));
            let lease = Lease::take(&listed).expect("the bypass is there");
            Far { listed, unlisted, dispatcher, lease }
        })
    }
}

/// What a datagram for a port carries.
fn payload(port: u16, number: u32) -> Vec<u8> {
    let mut payload = number.to_be_bytes().repeat(1 + number as usize % 280);
    payload.extend(port.to_be_bytes());
    // An odd length now and then.
    payload.extend(&[0x5a][..number as usize % 2]);
    payload
}

/// The SCION packet is whole, checksum and all, and carries this.
fn assert_carries(packet: &[u8], expected: &[u8]) {
    let parsed = parse(packet).expect("a packet");
    assert!(parsed.verify_checksum(), "not one byte of it was changed");
    let Upper::Udp(udp) = parsed.upper() else { panic!("a datagram") };
    assert_eq!(udp.payload(), expected);
}

#[test]
fn datagrams_arrive_whole_in_either_mode_over_either_family_with_any_offload() {
    for (wanted, mode) in MODES {
        let hosts = Hosts::new("xio");
        assert_eq!(hosts.attach(wanted).mode, mode);
        for offload in [true, false] {
            hosts.near.set_features(LINE, &[("tx-checksum-ip-generic", offload)]).expect("a veth has it");
            for (near, far) in NEAR.into_iter().zip(FAR) {
                exchange(&hosts, near, far);
            }
        }
        assert_eq!(hosts.checksum_errors(), 0, "{mode}");
    }
}

/// Datagrams for both applications; the one with the lease gets its own, the dispatcher those of the other.
fn exchange(hosts: &Hosts, near: &str, far: &str) {
    let ends = Far::new(hosts, far);
    let sender = hosts.at_near(|| bound(at(near, 0)));
    sender.connect(at(far, ENDHOST_PORT)).expect("a route");
    let source = sender.local_addr().expect("its address");
    let templates = [LISTED, UNLISTED].map(|port| (port, template(source, at(far, port), &[2, 2])));
    let before = hosts.counters();
    for first in (0..COUNT).step_by(AT_ONCE as usize) {
        for number in first..first + AT_ONCE {
            for (port, template) in &templates {
                let packet = datagram(template, &payload(*port, number));
                assert_eq!(sender.send(&packet).expect("sent"), packet.len());
            }
        }
        for number in first..first + AT_ONCE {
            assert_carries(&receive(&ends.listed), &payload(LISTED, number));
            assert_carries(&receive(&ends.dispatcher), &payload(UNLISTED, number));
        }
    }
    assert_nothing(&ends.listed);
    assert_nothing(&ends.unlisted);
    assert_nothing(&ends.dispatcher);
    let after = hosts.counters();
    assert_eq!(after.forwarded - before.forwarded, u64::from(COUNT));
    assert_eq!(after.left_for(Left::Port) - before.left_for(Left::Port), u64::from(COUNT));
    assert!(after.packets - before.packets >= u64::from(2 * COUNT));
    drop(ends.lease);
    let packet = datagram(&templates[0].1, b"after the lease");
    sender.send(&packet).expect("sent");
    assert_carries(&receive(&ends.dispatcher), b"after the lease");
}

#[test]
fn a_packet_that_was_corrupt_stays_corrupt() {
    for (wanted, mode) in MODES {
        let hosts = Hosts::new("xbad");
        hosts.attach(wanted);
        let ends = Far::new(&hosts, FAR[0]);
        let line = Line::new(&hosts);
        let outer = Line::outer(&[]);
        let good =
            outer.frame(&datagram(&template(outer.source, at(FAR[0], LISTED), &[]), b"twenty-four bytes of it."));
        let mut bad = good.clone();
        *bad.last_mut().expect("it is long") ^= 1;
        line.send(&bad);
        line.send(&good);
        assert_carries(&receive(&ends.listed), b"twenty-four bytes of it.");
        assert_nothing(&ends.listed);
        assert_eq!((hosts.checksum_errors(), hosts.counters().forwarded), (1, 2), "{mode}");
    }
}

#[test]
fn tagged_frames_are_forwarded_too() {
    for (wanted, mode) in MODES {
        let hosts = Hosts::new("xtag");
        hosts.attach(wanted);
        let ends = Far::new(&hosts, FAR[0]);
        let line = Line::new(&hosts);
        for tags in [&[VLAN][..], &[VLAN, VLAN], &[SERVICE_VLAN, VLAN]] {
            let outer = Line::outer(tags);
            let to = |port| outer.frame(&datagram(&template(outer.source, at(FAR[0], port), &[2]), b"with a priority"));
            line.send(&to(LISTED));
            line.send(&to(UNLISTED));
            assert_carries(&receive(&ends.listed), b"with a priority");
            assert_carries(&receive(&ends.dispatcher), b"with a priority");
        }
        assert_eq!((hosts.checksum_errors(), hosts.counters().forwarded), (0, 3), "{mode}");
    }
}

#[test]
fn super_packets_arrive_whole_and_mixed_ones_go_to_the_dispatcher() {
    for (wanted, mode) in MODES {
        let hosts = Hosts::new("xgso");
        hosts.attach(wanted);
        for merge in [true, false] {
            for (near, far) in NEAR.into_iter().zip(FAR) {
                let whole = super_packets(&hosts, near, far, merge);
                assert_eq!(whole, mode == Mode::Generic, "a driver that runs programs itself gets no super-packets");
            }
        }
        assert_eq!(hosts.checksum_errors(), 0, "{mode}");
    }
}

/// Packets of one length in one send; the receiver takes them merged, or one by one. Says whether they crossed as one.
fn super_packets(hosts: &Hosts, near: &str, far: &str, merge: bool) -> bool {
    const LEN: usize = 1000;
    const PACKETS: usize = 20;
    let ends = Far::new(hosts, far);
    if merge {
        set_option(&ends.listed, libc::UDP_GRO, 1);
    }
    let sender = hosts.at_near(|| bound(at(near, 0)));
    sender.connect(at(far, ENDHOST_PORT)).expect("a route");
    let source = sender.local_addr().expect("its address");
    let [listed, unlisted] = [LISTED, UNLISTED].map(|port| template(source, at(far, port), &[2, 2]));
    let packet = |number: usize| datagram(&listed, &[number as u8; LEN]);
    let stride = packet(0).len();
    set_option(&sender, libc::UDP_SEGMENT, stride as libc::c_int);
    let train: Vec<u8> = (0..PACKETS).flat_map(packet).collect();
    sender.send(&train).expect("sent");
    let mut got = Vec::new();
    while got.len() < train.len() {
        got.extend(receive(&ends.listed));
    }
    assert!(got == train, "the application has what was sent");
    // With one packet for another application in it, a train that comes as one is the dispatcher's to sort out.
    let other = PACKETS / 2;
    let to = |number: usize| if number == other { &unlisted } else { &listed };
    let mixed: Vec<Vec<u8>> = (0..PACKETS).map(|number| datagram(to(number), &[number as u8; LEN])).collect();
    let trains = || hosts.counters().left_for(Left::Train);
    let before = trains();
    sender.send(&mixed.concat()).expect("sent");
    let whole = trains() > before;
    let mut dispatched = Vec::new();
    let mut direct = Vec::new();
    until("every packet is somewhere", || {
        dispatched.extend(waiting(&ends.dispatcher));
        direct.extend(waiting(&ends.listed));
        dispatched.len() + direct.len() == train.len()
    });
    if whole {
        assert!(dispatched == mixed.concat() && direct.is_empty(), "all of it went to the dispatcher");
    } else {
        assert!(dispatched == mixed[other], "the dispatcher has the other application's, and nothing else");
    }
    assert_nothing(&ends.unlisted);
    whole
}

/// What waits in a socket.
fn waiting(socket: &UdpSocket) -> Vec<u8> {
    socket.set_nonblocking(true).expect("no waiting");
    let mut room = vec![0; 1 << 16];
    let mut got = Vec::new();
    while let Ok(len) = socket.recv(&mut room) {
        got.extend(&room[..len]);
    }
    got
}

/// A socket that puts whole frames on the near host's line.
struct Line(Socket);

impl Line {
    fn new(hosts: &Hosts) -> Line {
        hosts.at_near(|| {
            let socket = Socket::new(Domain::PACKET, Type::RAW, None).expect("a packet socket (this test needs root)");
            let index = interfaces::list().expect("interfaces").into_iter().find(|known| known.name == LINE);
            // SAFETY: sockaddr_ll is plain data for which all zeros is valid.
            let mut name: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            name.sll_family = libc::AF_PACKET as u16;
            name.sll_ifindex = index.expect("the line").index.0 as libc::c_int;
            let write = |storage: *mut SockAddrStorage, len: *mut libc::socklen_t| {
                // SAFETY: the storage is larger than any socket's name, and `len` lives beside it.
                unsafe {
                    storage.cast::<libc::sockaddr_ll>().write(name);
                    *len = size_of_val(&name) as libc::socklen_t;
                }
                Ok(())
            };
            // SAFETY: what was written is a whole name of its family, and its length is told.
            let ((), name) = unsafe { SockAddr::try_init(write) }.expect("a name");
            socket.bind(&name).expect("it is there");
            Line(socket)
        })
    }

    /// Frames to everybody on the line, from the near host to the far host's dispatcher.
    fn outer(tags: &[u16]) -> Outer {
        let outer = Outer::new(&format!("{}:50000", NEAR[0]), &format!("{}:{ENDHOST_PORT}", FAR[0]));
        Outer { tags: tags.to_vec(), macs: [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1], ..outer }
    }

    fn send(&self, frame: &[u8]) {
        assert_eq!(self.0.send(frame).expect("sent"), frame.len());
    }
}

fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel reads `size` bytes of a value that outlives the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), size) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
