use super::*;

/// One message as the kernel writes it.
fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    let mut writer = Writer::new(&mut bytes);
    writer.put(level, kind, data);
    let len = writer.len();
    bytes.truncate(len);
    bytes
}

#[test]
fn messages_have_the_layout_of_the_c_library() {
    assert_eq!(HEADER_BYTES, mem::size_of::<libc::cmsghdr>());
    for data in [1, 2, 4, 8, 12, 20] {
        // SAFETY: CMSG_SPACE only computes.
        let space = unsafe { libc::CMSG_SPACE(data) } as usize;
        assert_eq!(message(0, 0, &vec![0; data as usize]).len(), space);
    }
    assert_eq!(PKTINFO4_BYTES, mem::size_of::<libc::in_pktinfo>());
    assert_eq!(PKTINFO6_BYTES, mem::size_of::<libc::in6_pktinfo>());
    assert_eq!(EXTENDED_ERROR_BYTES, mem::size_of::<libc::sock_extended_err>());
}

#[test]
fn everything_a_datagram_is_sent_with_fits() {
    for source in ["192.0.2.1", "2001:db8::1"] {
        let source: IpAddr = source.parse().expect("an address");
        let mut control = Control::<SEND_CONTROL_BYTES>::EMPTY;
        let mut writer = Writer::new(&mut control.0);
        writer.ecn(Ecn::Ce, source.is_ipv6());
        writer.source(source, 7);
        writer.segment_size(1452);
        let len = writer.len();
        let received = Received::parse(&control.0[..len]);
        assert_eq!((received.ecn, received.local), (Ecn::Ce, Some(source)), "{source}");
    }
}

#[test]
fn every_message_of_a_received_datagram_is_understood() {
    let local: IpAddr = "192.0.2.9".parse().expect("an address");
    let said = |received: Received| received;
    let none = Received::default();
    for (name, bytes, expected) in [
        ("nothing", vec![], none),
        ("marks", message(libc::IPPROTO_IP, libc::IP_TOS, &[2]), said(Received { ecn: Ecn::Ect0, ..none })),
        (
            "destination",
            message(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1, 0, 0, 0, 192, 0, 2, 9, 9, 9, 9, 9]),
            said(Received { local: Some(local), ..none }),
        ),
        (
            "merged",
            message(libc::SOL_UDP, libc::UDP_GRO, &1400_i32.to_ne_bytes()),
            said(Received { segment_size: Some(1400), ..none }),
        ),
        (
            "drops",
            message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &9_u32.to_ne_bytes()),
            said(Received { drops: Some(9), ..none }),
        ),
        ("unknown", message(77, 88, &[1; 9]), none),
    ] {
        assert_eq!(Received::parse(&bytes), expected, "{name}");
    }
}

#[test]
fn an_error_tells_who_said_what() {
    let mut data = vec![0; 32];
    data[..4].copy_from_slice(&libc::EMSGSIZE.to_ne_bytes());
    data[8..12].copy_from_slice(&1400_u32.to_ne_bytes());
    data[16..18].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    data[20..24].copy_from_slice(&[198, 51, 100, 7]);
    let bytes = message(libc::IPPROTO_IP, libc::IP_RECVERR, &data);
    let expected =
        ExtendedError { errno: libc::EMSGSIZE, info: 1400, from: Some("198.51.100.7".parse().expect("an address")) };
    assert_eq!(ExtendedError::parse(&bytes), Some(expected));
    assert_eq!(ExtendedError::parse(&[]), None);
}

#[test]
fn cut_and_lying_messages_end_the_reading() {
    let whole = message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &[7; 20]);
    for len in 0..whole.len() {
        let _ = Received::parse(&whole[..len]);
        let _ = ExtendedError::parse(&whole[..len]);
    }
    for length in [0, 1, 15, usize::MAX, usize::MAX - 7] {
        let mut lie = whole.clone();
        lie[..ALIGN].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(Received::parse(&lie), Received::default(), "{length}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(0_u8.., 0..256), length in 0_usize..64) {
        let mut bytes = bytes;
        if let Some(first) = bytes.get_mut(..ALIGN) {
            first.copy_from_slice(&length.to_ne_bytes());
        }
        let _ = Received::parse(&bytes);
        let _ = ExtendedError::parse(&bytes);
        let longest = bytes.len() / HEADER_BYTES;
        assert!(messages(&bytes).count() <= longest);
    }
}
