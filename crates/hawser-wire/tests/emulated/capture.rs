//! What passes an interface is captured, both ways and nothing else. Needs root.

use std::net::UdpSocket;

use hawser_wire::{Capture, End, Namespace, veth};

/// Bytes of a pcap file's header, and of each packet's.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

#[test]
fn a_capture_has_each_frame_of_ethernet_once_both_ways() {
    let make = || Namespace::new("cap").expect("makes a namespace (this test needs root)");
    let (here, there) = (make(), make());
    veth(&End::new(&here, "a", &["192.0.2.1/24"]), &End::new(&there, "b", &["192.0.2.2/24"]), 1500).expect("a pair");
    let capture = Capture::start(&here).expect("it starts (this test needs root)");
    let bind = |namespace: &Namespace, address: &'static str| {
        namespace.run(move || UdpSocket::bind(address).expect("a socket")).expect("it can be entered")
    };
    let (near, far) = (bind(&here, "192.0.2.1:1000"), bind(&there, "192.0.2.2:1000"));
    let lo = bind(&here, "127.0.0.1:1000");
    lo.send_to(b"hawser over loopback", "127.0.0.1:1000").expect("it goes");
    let mut buffer = [0; 64];
    near.send_to(b"hawser there", "192.0.2.2:1000").expect("it goes");
    far.recv_from(&mut buffer).expect("it comes");
    far.send_to(b"hawser back", "192.0.2.1:1000").expect("it goes");
    near.recv_from(&mut buffer).expect("it comes");
    let file = capture.finish().expect("nothing was dropped");
    let mut rest = &file[FILE_HEADER..];
    let mut frames = Vec::new();
    while let Some((header, tail)) = rest.split_first_chunk::<PACKET_HEADER>() {
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        frames.push(&tail[..len]);
        rest = &tail[len..];
    }
    let with = |text: &[u8]| frames.iter().filter(|frame| frame.ends_with(text)).count();
    assert_eq!((with(b"hawser there"), with(b"hawser back"), with(b"hawser over loopback")), (1, 1, 0));
}
