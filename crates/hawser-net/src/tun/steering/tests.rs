//! The kernel runs the program on packets with marks, without a device (linux/bpf.h, `BPF_PROG_TEST_RUN`). Needs root.

use super::*;
use crate::netcfg::Mark;

const BPF_PROG_TEST_RUN: libc::c_int = 10;
/// The shortest packet that the kernel takes for it: a header of Ethernet (`ETH_HLEN`).
const PACKET: [u8; 14] = [0; 14];

/// Marks with their masks, or with their queues.
type Pairs = &'static [(u32, u32)];

/// The argument of bpf(2) that runs a program once. Plain data.
#[repr(C)]
#[derive(Default)]
struct RunArgument {
    program: u32,
    result: u32,
    packet_size: u32,
    packet_room: u32,
    packet: u64,
    packet_out: u64,
    repeat: u32,
    nanoseconds: u32,
    argument_size: u32,
    argument_room: u32,
    argument: u64,
    argument_out: u64,
}

fn queue_of(steering: &Steering, mark: u32) -> u32 {
    // The first three words of `struct __sk_buff`: length, type, mark.
    let packet = [0, 0, mark];
    let mut argument = RunArgument {
        program: steering.0.as_raw_fd().cast_unsigned(),
        packet_size: PACKET.len() as u32,
        packet: PACKET.as_ptr().addr() as u64,
        argument_size: mem::size_of_val(&packet) as u32,
        argument: packet.as_ptr().addr() as u64,
        ..RunArgument::default()
    };
    let size = mem::size_of::<RunArgument>();
    // SAFETY: the kernel reads and writes `size` bytes of the argument, and reads both arrays in their lengths.
    let done = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut argument, size) };
    assert_eq!(done, 0, "run a program: {}", io::Error::last_os_error());
    argument.result
}

fn load(matches: &[(u32, u32)]) -> Steering {
    let matches = matches.iter().map(|&(mark, mask)| MarkMatch { mark: Mark(mark), mask });
    Steering::load(&matches.collect::<Vec<_>>()).expect("the kernel takes the program (this test needs root)")
}

#[test]
fn the_first_match_that_fits_has_the_packet() {
    const ALL: u32 = u32::MAX;
    let table: [(Pairs, Pairs); 6] = [
        (&[], &[(0, 0), (7, 0)]),
        (&[(7, ALL)], &[(7, 1), (0, 0), (8, 0), (0x107, 0)]),
        (&[(7, ALL), (8, ALL)], &[(7, 1), (8, 2), (0, 0), (15, 0)]),
        (&[(0x10, 0xff)], &[(0x10, 1), (0xabcd_0010, 1), (0x11, 0), (0x1000, 0)]),
        // The highest bit is no sign.
        (&[(0x8000_0000, 0x8000_0000), (ALL, ALL)], &[(0x8000_0001, 1), (ALL, 1), (0x7fff_ffff, 0)]),
        (&[(0x11, 0xff), (0x10, 0xf0), (0x01, 0x0f), (0, ALL)], &[(0x11, 1), (0x15, 2), (0x21, 3), (0, 4), (0x22, 0)]),
    ];
    for (matches, packets) in table {
        let steering = load(matches);
        for &(mark, queue) in packets {
            assert_eq!(queue_of(&steering, mark), queue, "mark {mark:#x} by {matches:x?}");
        }
    }
}

#[test]
fn a_program_for_as_many_marks_as_there_are_queues_is_loaded() {
    let matches: Vec<(u32, u32)> = (1..256).map(|mark| (mark << 8, u32::MAX)).collect();
    let steering = load(&matches);
    assert_eq!(queue_of(&steering, 255 << 8), 255);
    assert_eq!(queue_of(&steering, 256 << 8), 0);
}

#[test]
fn a_thread_without_capabilities_is_told_which_one_it_lacks() {
    let loaded = std::thread::spawn(|| {
        caps::clear(None, caps::CapSet::Effective).expect("they can be given up");
        Steering::load(&[])
    });
    // A kernel may let everybody load programs of this kind (`kernel.unprivileged_bpf_disabled = 0`).
    let open =
        std::fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled").is_ok_and(|text| text.trim() == "0");
    match loaded.join().expect("no panic") {
        Ok(_) => assert!(open, "the kernel takes it of nobody without CAP_BPF"),
        Err(error) => {
            assert!(!open && matches!(error, SteeringError::NotPermitted(_)), "{error}");
            assert!(error.to_string().contains("CAP_BPF"), "{error}");
        }
    }
}

#[test]
fn each_errno_of_loading_says_what_is_missing() {
    let said = |errno: Errno| SteeringError::load(errno.into());
    assert!(matches!(said(Errno::PERM), SteeringError::NotPermitted(_)));
    assert!(matches!(said(Errno::NOSYS), SteeringError::NoBpf { .. }));
    assert!(said(Errno::NOSYS).to_string().contains(&kernel_release()));
    assert!(matches!(said(Errno::INVAL), SteeringError::Load { .. }));
}

#[test]
fn what_is_no_tun_device_takes_no_program() {
    let file = OwnedFd::from(std::fs::File::open("/dev/null").expect("it is there"));
    let error = load(&[]).attach(&file).expect_err("no tun device");
    assert!(matches!(error, SteeringError::Attach { .. }), "{error}");
}
