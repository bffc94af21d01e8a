use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use hawser_bulk::layout::FileName;

use super::*;

fn folder(path: &Path) -> OwnedFd {
    File::open(path).expect("a folder").into()
}

fn begun(path: &Path, info: &FileInfo, force: bool) -> Result<Part, PartError> {
    Part::open(&folder(path), info, force, &AtomicBool::new(false))
}

fn info(size: u64, modified: i64) -> FileInfo {
    FileInfo { name: FileName::new(b"file").expect("a name"), size, modified }
}

/// Two blocks and some bytes.
fn bytes() -> Vec<u8> {
    (0..2 * BLOCK_LEN + 1000).map(|at| (at * 7 % 251) as u8).collect()
}

fn write(part: &mut Part, numbers: &[usize]) {
    for number in numbers {
        let block = bytes().chunks(BLOCK_LEN).nth(*number).expect("a block").to_vec();
        part.write(*number, &block).expect("it is written");
    }
}

fn digest() -> Digest {
    Digest::of_file(&bytes().chunks(BLOCK_LEN).map(Digest::of_block).collect::<Vec<_>>())
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_gets_its_name_when_it_is_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let size = bytes().len() as u64;
    let mut part = begun(dir.path(), &info(size, 1), false).expect("it is taken");
    assert_eq!((part.have(), part.is_whole()), (Have::default(), false));
    write(&mut part, &[2, 0, 1]);
    assert_eq!(names(dir.path()), ["file.part", "file.part.map"]);
    assert!(part.is_whole());
    part.finish(&folder(dir.path()), &digest()).expect("it is right");
    assert_eq!(names(dir.path()), ["file"]);
    assert!(fs::read(dir.path().join("file")).expect("it is there") == bytes());
}

#[test]
fn what_was_written_is_there_the_next_time_unless_it_changed() {
    let dir = tempfile::tempdir().expect("a folder");
    let size = bytes().len() as u64;
    write(&mut begun(dir.path(), &info(size, 1), false).expect("it is taken"), &[0, 2]);
    let again = || begun(dir.path(), &info(size, 1), false).expect("it is taken");
    assert_eq!(again().have(), Have(vec![(0, 1), (2, 1)]));
    // What a disk lost, or somebody changed.
    let data = File::options().write(true).open(dir.path().join("file.part")).expect("it is there");
    data.write_all_at(b"x", 5).expect("it is written");
    assert_eq!(again().have(), Have(vec![(2, 1)]));
    let other = begun(dir.path(), &info(size, 2), false).expect("it is taken");
    assert_eq!(other.have(), Have::default(), "another version begins anew");
}

#[test]
fn nobody_looks_for_what_is_there_when_the_transfer_has_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let info = info(bytes().len() as u64, 1);
    write(&mut begun(dir.path(), &info, false).expect("it is taken"), &[0, 2]);
    let stopped = Part::open(&folder(dir.path()), &info, false, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(PartError::Stopped)), "{stopped:?}");
    let again = begun(dir.path(), &info, false).expect("it is taken");
    assert_eq!(again.have(), Have(vec![(0, 1), (2, 1)]), "nothing is lost by that");
}

#[test]
fn a_map_that_is_none_begins_anew() {
    let dir = tempfile::tempdir().expect("a folder");
    for junk in [&b""[..], b"hawser-part-1\n", &[0xff; 128]] {
        fs::write(dir.path().join("file.part.map"), junk).expect("it is written");
        let part = begun(dir.path(), &info(bytes().len() as u64, 1), false).expect("it is taken");
        assert_eq!(part.have(), Have::default());
    }
}

#[test]
fn nothing_is_overwritten_and_nobody_writes_beside_another() {
    let dir = tempfile::tempdir().expect("a folder");
    let size = bytes().len() as u64;
    let take = |force| begun(dir.path(), &info(size, 1), force);
    let mut part = take(false).expect("it is taken");
    assert!(matches!(take(false), Err(PartError::Busy)));
    write(&mut part, &[0, 1, 2]);
    fs::write(dir.path().join("file"), "another").expect("it is written");
    assert!(matches!(part.finish(&folder(dir.path()), &digest()), Err(PartError::Exists)));
    assert_eq!(fs::read(dir.path().join("file")).expect("it is there"), b"another");
    assert!(matches!(take(false), Err(PartError::Exists)));
    let part = take(true).expect("by force");
    assert!(part.is_whole(), "all of it is there yet");
    part.finish(&folder(dir.path()), &digest()).expect("by force");
    assert!(fs::read(dir.path().join("file")).expect("it is there") == bytes());
}

#[test]
fn a_wrong_digest_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut part = begun(dir.path(), &info(bytes().len() as u64, 1), false).expect("it is taken");
    write(&mut part, &[0, 1, 2]);
    assert!(matches!(part.finish(&folder(dir.path()), &Digest([1; 32])), Err(PartError::Digest)));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn no_symbolic_link_is_followed() {
    let outside = tempfile::tempdir().expect("a folder");
    let victim = outside.path().join("victim");
    fs::write(&victim, "mine").expect("it is written");
    for name in ["file.part", "file.part.map", "file"] {
        let dir = tempfile::tempdir().expect("a folder");
        symlink(&victim, dir.path().join(name)).expect("a link");
        let taken = begun(dir.path(), &info(bytes().len() as u64, 1), name == "file");
        if name == "file" {
            // By force the link itself is replaced.
            let mut part = taken.expect("by force");
            write(&mut part, &[0, 1, 2]);
            part.finish(&folder(dir.path()), &digest()).expect("by force");
        } else {
            assert!(matches!(taken, Err(PartError::System { .. })), "{name}: {taken:?}");
        }
        assert_eq!(fs::read(&victim).expect("it is there"), b"mine", "{name}");
    }
}

#[test]
fn a_file_larger_than_the_disk_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let taken = begun(dir.path(), &info(1 << 48, 1), false);
    let verdict = taken.map(|_| ()).map_err(|error| error.verdict());
    assert_eq!((verdict, names(dir.path())), (Err(Verdict::Space), vec![]), "256 TiB");
}
