//! A machine of its own, which can be put to sleep: Linux in QEMU, with two interfaces that end in a namespace of this
//! host.
//!
//! 1. [`Guest::start`] packs busybox, a few modules of Debian's kernel, and given files into an initramfs, and boots
//!    that.
//! 2. [`Guest::run`] has its shell do something, by the serial line; what it prints comes back.
//! 3. [`Guest::sleep`] suspends it to memory (ACPI S3), and wakes it after a while.
//!
//! `make endure` unpacks kernel and busybox, and names their folder in HAWSER_GUEST. All is emulated: nothing here
//! needs KVM.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hawser_wire::{Moment, Namespace};
use tempfile::TempDir;

use crate::lab::{LINKS, ms};

/// Names the folder with Debian's kernel and static busybox, unpacked.
const KERNEL: &str = "HAWSER_GUEST";
/// Modules that virtio's interfaces and TUN need, in the order in which they are loaded.
const MODULES: [&str; 9] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "tun",
];
/// What an emulated machine may take to start, and for anything that it is told.
const PATIENCE: Duration = Duration::from_secs(90);
/// The first program: it loads the modules, names the interfaces as the links are called, and becomes a shell.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/net /run /tmp
for module in $(cat /lib/order); do insmod /lib/$module.ko; done
ip link set lo up; ip link set eth0 name one; ip link set eth1 name two
stty -echo; echo READY; sh 2>&1 | dd bs=4k
";
/// What it says when the shell is there. A shell whose output is no terminal has no prompt and no line editing.
const READY: &str = "READY";

/// The machine. Ended when it drops.
pub struct Guest {
    qemu: Child,
    shell: ChildStdin,
    /// Lines of the serial line, with when they came.
    lines: Receiver<(Moment, String)>,
    monitor: BufReader<UnixStream>,
    commands: usize,
    _folder: TempDir,
}

/// When a machine fell asleep, was woken, and had its programs run again.
pub struct Slept {
    pub asleep: Moment,
    pub woken: Moment,
    pub awake: Moment,
}

impl Guest {
    /// Step 1: `files` keep their paths, programs among them their libraries. Its interfaces `one` and `two` end in two
    /// of the same names in the namespace, which have no addresses yet.
    pub fn start(namespace: &Namespace, files: &[PathBuf]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel = std::env::var(KERNEL).unwrap_or_else(|_| panic!("{KERNEL} names no kernel: run make endure"));
        let (image, initramfs) = (found(Path::new(&kernel), "vmlinuz-"), folder.path().join("initramfs"));
        pack(Path::new(&kernel), files, &folder.path().join("root"), &initramfs);
        let socket = folder.path().join("monitor");
        let mut command = namespace.command("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-cpu", "max", "-m", "768", "-display", "none", "-no-reboot", "-nodefaults"]);
        command.args(["-serial", "stdio", "-append", "console=ttyS0 quiet panic=1"]);
        command.arg("-kernel").arg(image).arg("-initrd").arg(initramfs);
        command.arg("-qmp").arg(format!("unix:{},server=on,wait=off", socket.display()));
        for (number, link) in LINKS.iter().enumerate() {
            command.arg("-netdev").arg(format!("tap,id=n{number},ifname={link},script=no,downscript=no"));
            command.arg("-device").arg(format!("virtio-net-pci,netdev=n{number},mac=52:54:00:00:00:0{number}"));
        }
        let mut qemu = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run qemu-system-x86_64");
        let (shell, output) = (qemu.stdin.take().expect("piped"), qemu.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if sender.send((Moment::now(), line)).is_err() {
                    break;
                }
            }
        });
        let monitor = BufReader::new(connected(&socket));
        let mut guest = Self { qemu, shell, lines, monitor, commands: 0, _folder: folder };
        guest.ask("qmp_capabilities", "return");
        guest.until(READY);
        guest
    }

    /// Step 2: all that a command prints, once it has ended.
    pub fn run(&mut self, command: &str) -> String {
        let mark = self.begin(command);
        let (_, said) = self.until(&mark);
        said
    }

    /// Step 3.
    pub fn sleep(&mut self, length: Duration) -> Slept {
        let mark = self.begin("echo mem > /sys/power/state");
        self.event("SUSPEND");
        let asleep = Moment::now();
        std::thread::sleep(length);
        let woken = Moment::now();
        self.ask("system_wakeup", "return");
        let (awake, _) = self.until(&mark);
        Slept { asleep, woken, awake }
    }

    /// Has the shell begin something; gives what it says at its end.
    fn begin(&mut self, command: &str) -> String {
        self.commands += 1;
        let mark = format!("ended {}", self.commands);
        writeln!(self.shell, "{command}\necho\necho {mark}").expect("the serial line");
        mark
    }

    fn until(&mut self, mark: &str) -> (Moment, String) {
        let (end, mut said) = (Instant::now() + PATIENCE, String::new());
        loop {
            let line = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()));
            let (at, line) = line.unwrap_or_else(|_| panic!("waited for {mark:?} in vain: {said}"));
            if line == mark {
                return (at, said);
            }
            said += &line;
            said.push('\n');
        }
    }

    /// Sends a command of QEMU's machine protocol, and waits for a word in what comes.
    fn ask(&mut self, command: &str, word: &str) {
        writeln!(self.monitor.get_mut(), "{{\"execute\":\"{command}\"}}").expect("the monitor");
        self.event(word);
    }

    fn event(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(&format!("\"{word}\"")) {
            line.clear();
            let length = self.monitor.read_line(&mut line).unwrap_or_else(|error| panic!("wait for {word}: {error}"));
            assert!(length > 0, "qemu ended before {word}");
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.qemu.kill().expect("it can be ended");
        self.qemu.wait().expect("it ends");
    }
}

/// The monitor, once QEMU listens.
fn connected(socket: &Path) -> UnixStream {
    let end = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(socket) {
            Ok(monitor) => {
                monitor.set_read_timeout(Some(PATIENCE)).expect("an option");
                return monitor;
            }
            Err(error) => assert!(Instant::now() < end, "qemu's monitor: {error}"),
        }
        std::thread::sleep(ms(20));
    }
}

/// The initramfs of all that the machine has.
fn pack(kernel: &Path, files: &[PathBuf], root: &Path, to: &Path) {
    let copy = |from: &Path, at: &Path| {
        let at = root.join(at.strip_prefix("/").unwrap_or(at));
        fs::create_dir_all(at.parent().expect("it is in a folder")).expect("a folder");
        crate::copied::program(from, &at);
    };
    copy(&kernel.join("bin/busybox"), Path::new("bin/busybox"));
    for module in MODULES {
        copy(&found(kernel, &format!("{module}.ko")), &Path::new("lib").join(format!("{module}.ko")));
    }
    files.iter().for_each(|file| copy(file, file));
    for folder in ["proc", "sys", "dev"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    fs::write(root.join("lib/order"), MODULES.join("\n")).expect("a file");
    fs::write(root.join("init"), INIT).expect("a file");
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).expect("its mode");
    let mut packing = Command::new("sh");
    packing.current_dir(root).arg("-c").arg("find . | bin/busybox cpio -o -H newc > \"$0\"").arg(to);
    let packed = packing.stderr(Stdio::null()).status().expect("run sh");
    assert!(packed.success(), "cpio: {packed}");
}

/// The first file below a folder whose name begins so.
fn found(folder: &Path, begin: &str) -> PathBuf {
    look_for(folder, begin).unwrap_or_else(|| panic!("no {begin}… below {}", folder.display()))
}

fn look_for(folder: &Path, begin: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries.flatten().map(|entry| entry.path()).partition(|at| at.is_dir());
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin)));
    files.pop().or_else(|| folders.iter().find_map(|inner| look_for(inner, begin)))
}
