//! The wall clock of one process, which may jump while it runs. libfaketime changes what the C library says, and Go's
//! programs, as etcd, ask the vDSO (vdso(7)) themselves.
//!
//! 1. The vDSO's `clock_gettime` is made to jump to a few instructions of ours, in what the vDSO's last page has free:
//!    the process has pages of its own from then on. 2. They ask the kernel, and add to the seconds of CLOCK_REALTIME
//!    what stands beside them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// For x86-64: `clock_gettime(2)` by its number; where `edi`, the clock, is CLOCK_REALTIME (0), the seconds behind all
/// this are added to `timespec.tv_sec`, to which `rsi` points.
#[rustfmt::skip]
const OURS: [u8; 24] = [
    0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228
    0x0f, 0x05, // syscall
    0x85, 0xff, // test edi, edi
    0x75, 0x0a, // jne to the ret
    0x48, 0x8b, 0x0d, 0x06, 0x00, 0x00, 0x00, // mov rcx, [rip + 6]
    0x48, 0x01, 0x0e, // add [rsi], rcx
    0xc3, // ret
    0x90, 0x90, // the seconds are aligned
];
/// `jmp`, to what is that far behind its end.
const JMP: u8 = 0xe9;
const JMP_BYTES: u64 = 5;

/// Says what time it is for each line that it gets: what tries this file.
const PROGRAM: &str = "import sys, time\nfor _ in sys.stdin: print(time.time(), flush=True)";

/// A process's wall clock. One owner.
pub struct WallClock {
    memory: File,
    /// Where its seconds stand.
    seconds: u64,
}

impl WallClock {
    /// Step 1, for a child of this process that runs: its clock says what it said.
    pub fn of(process: u32) -> Self {
        assert_eq!(std::env::consts::ARCH, "x86_64", "this machine's instructions are others");
        let memory = File::options().read(true).write(true).open(format!("/proc/{process}/mem")).expect("its memory");
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).expect("its maps");
        let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("it has a vDSO");
        let (begin, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [begin, end] = [begin, end].map(|address| u64::from_str_radix(address, 16).expect("an address"));
        let (clock, seconds) = (begin + clock_gettime(&memory, begin, end), end - size_of::<i64>() as u64);
        let ours = seconds - OURS.len() as u64;
        let distance = i32::try_from(ours - (clock + JMP_BYTES)).expect("it is within two pages");
        let jump = [&[JMP][..], &distance.to_le_bytes()].concat();
        // None of its threads is in what changes, but by a chance of one in thousands.
        let pid = Pid::from_raw(process.cast_signed()).expect("a process");
        kill_process(pid, Signal::STOP).expect("it can be stopped");
        waitpid(Some(pid), WaitOptions::UNTRACED).expect("it stops");
        for (bytes, at) in [(&OURS[..], ours), (&jump[..], clock)] {
            memory.write_all_at(bytes, at).expect("write to its vDSO (proc_mem.force_override=always)");
        }
        kill_process(pid, Signal::CONT).expect("it can go on");
        Self { memory, seconds }
    }

    /// Step 2: it is ahead of this machine's by that from now on.
    pub fn set(&self, ahead_s: i64) {
        self.memory.write_all_at(&ahead_s.to_le_bytes(), self.seconds).expect("write to its vDSO");
    }
}

/// How far into the vDSO the function is; what is to be written at its end is free.
fn clock_gettime(memory: &File, begin: u64, end: u64) -> u64 {
    let mut vdso = vec![0; (end - begin) as usize];
    memory.read_exact_at(&mut vdso, begin).expect("its vDSO");
    let free = vdso.len() - OURS.len() - size_of::<i64>();
    assert!(vdso[free..].iter().all(|byte| *byte == 0), "the vDSO's last page is full");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("vdso.so"), &vdso).expect("a file");
    let output = Command::new("readelf").args(["--wide", "--dyn-syms", "vdso.so"]).current_dir(folder.path()).output();
    let symbols = String::from_utf8(output.expect("run readelf (binutils)").stdout).expect("text");
    let line = symbols.lines().find(|line| line.contains(" __vdso_clock_gettime@")).expect("the vDSO has it");
    let offset = line.split_whitespace().nth(1).and_then(|offset| u64::from_str_radix(offset, 16).ok());
    offset.expect("its second column is where")
}

#[test]
fn a_programs_clock_jumps_and_comes_back() {
    let mut command = Command::new("python3");
    let child = command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("run python3");
    let (mut asked, said) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let mut said = BufReader::new(said).lines();
    let mut ahead = || {
        writeln!(asked).expect("it listens");
        let there: f64 = said.next().expect("a line").expect("text").parse().expect("a time");
        let here = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        there - here.as_secs_f64()
    };
    // It has begun, and has its own program's vDSO.
    assert!(ahead().abs() < 5.0);
    let clock = WallClock::of(child.id());
    for seconds in [0, 400 * 86_400, -400 * 86_400, 0] {
        clock.set(seconds);
        let ahead = ahead();
        assert!((ahead - seconds as f64).abs() < 5.0, "{ahead} s in the place of {seconds}");
    }
    drop(asked);
    child.wait().expect("it ends with its input");
}
