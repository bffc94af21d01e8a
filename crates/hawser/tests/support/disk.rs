//! A disk of its own for a server, that hangs when it is told to: what is written there waits then, and gets no error.
//! Or it is full.
//!
//! 1. [`make`] makes an image with ext4. 2. [`mounted`] is said before a program: it has the disk mounted, in a mount
//!    namespace of its own, which ends with it. 3. [`Hung::begin`] freezes the file system, until that drops.
//!    4. [`fill`] takes what room there is; [`empty`] gives it back, once the program has ended.

use std::fs::{File, create_dir_all};
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

/// etcd allocates two segments of its log beforehand, of 64 MB each. The image has holes where nothing is written.
const BYTES: u64 = 256 << 20;
/// `$0` is where the disk is mounted, with its image beside; the rest is the program.
const MOUNTED: &str = r#"mount -o loop "$0.img" "$0" && exec "$@""#;
/// It goes on with the end of standard input: also where the test ends, in whatever way.
const HANGS: &str = "fsfreeze -f . && echo hangs && read -r _; fsfreeze -u .";

/// The file that takes all room.
const FILLING: &str = "filling";
const BLOCK: usize = 4096;
/// How long the kernel may take to have a disk no more that a program had which has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// Step 1, for this mount point; an image that is there is kept.
pub fn make(folder: &Path) {
    let image = folder.with_extension("img");
    if image.exists() {
        return wait_until_unused(&image);
    }
    create_dir_all(folder).expect("a folder");
    File::create(&image).and_then(|file| file.set_len(BYTES)).expect("an image");
    let output = Command::new("mkfs.ext4").arg("-q").arg(&image).output();
    let output = output.expect("run mkfs.ext4 (e2fsprogs; `make tools` installs it)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Step 2.
pub fn mounted(folder: &Path) -> [String; 6] {
    ["unshare", "--mount", "sh", "-c", MOUNTED, &folder.display().to_string()].map(str::to_owned)
}

/// Step 4, where a process has it mounted.
pub fn fill(process: u32, folder: &Path) {
    let mut file = File::create(place(process, folder).join(FILLING)).expect("a file");
    let room = fstatvfs(&file).expect("its file system");
    // What this leaves, as it needs some for itself, is written.
    let _ = fallocate(&file, FallocateFlags::empty(), 0, room.f_bfree * room.f_frsize);
    file.seek(SeekFrom::End(0)).expect("its end");
    while file.write_all(&[0; BLOCK]).is_ok() {}
}

/// The same undone, where nobody has it mounted.
pub fn empty(folder: &Path) {
    wait_until_unused(&folder.with_extension("img"));
    let words = mounted(folder);
    let output = Command::new(&words[0]).args(&words[1..]).arg("rm").arg(folder.join(FILLING)).output();
    let output = output.expect("run unshare (util-linux)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Where a mount point is that a process has in its own mount namespace.
fn place(process: u32, folder: &Path) -> PathBuf {
    format!("/proc/{process}/root{}", folder.display()).into()
}

fn wait_until_unused(image: &Path) {
    let end = Instant::now() + PATIENCE;
    let used = || {
        let output = Command::new("losetup").arg("--associated").arg(image).output();
        !output.expect("run losetup (mount)").stdout.is_empty()
    };
    while used() {
        assert!(Instant::now() < end, "{} is mounted still", image.display());
        sleep(Duration::from_millis(10));
    }
}

/// A disk that hangs; it goes on when this drops. One owner.
pub struct Hung(Child);

impl Hung {
    /// Step 3, where a process has it mounted. A process that ends cannot be waited for before it goes on.
    pub fn begin(process: u32, folder: &Path) -> Self {
        let mut command = Command::new("sh");
        let place = place(process, folder);
        // Inside, so that the mount outlives the process; and in a process group of its own, so that what ends the
        // test's leaves it to let the disk go on.
        command.args(["-c", HANGS]).current_dir(place).process_group(0);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut hung = Self(child.expect("run sh where the disk is mounted"));
        let mut said = BufReader::new(hung.0.stdout.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        assert_eq!(line, "hangs\n", "fsfreeze (util-linux) failed");
        hung
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        // Its standard input is closed first.
        let _ = self.0.wait();
    }
}
