use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::Receiver as Told;
use std::time::{Duration, Instant};

use hawser_bulk::layout::FileName;

use super::*;
use crate::bulk::ended::Ended;

/// How long an end may take on a busy machine.
const SOON: Duration = Duration::from_secs(10);
/// How long who waits is watched.
const A_WHILE: Duration = Duration::from_millis(50);

fn folder(path: &Path, force: bool) -> Arc<Folder> {
    Arc::new(Folder::new(File::open(path).expect("a folder").into(), force))
}

fn info(size: u64, modified: i64) -> FileInfo {
    FileInfo { name: FileName::new(b"file").expect("a name"), size, modified }
}

fn named(name: &str) -> FileInfo {
    FileInfo { name: FileName::new(name.as_bytes()).expect("a name"), ..info(5, 1) }
}

fn digest_of(bytes: &[u8]) -> Digest {
    Digest::of_file(&[Digest::of_block(bytes)])
}

/// A session's writer for one file, and what it did.
fn start(folder: &Arc<Folder>, file: FileInfo, before: Vec<Arc<Writer>>) -> (Writer, Told<(SessionId, Wrote)>) {
    let (wrote, told) = channel();
    let teller = Teller { wrote, wake: Wake::new().expect("an eventfd") };
    let writer = Writer::start(SessionId(0), Arc::clone(folder), vec![Ok(file)], before, teller);
    (writer.expect("it starts"), told)
}

fn opened(told: &Told<(SessionId, Wrote)>) -> Result<Have, Verdict> {
    match told.recv_timeout(SOON).expect("it opens").1 {
        Wrote::Opened(mut opened) => opened.remove(0).map_err(|error| error.verdict()),
        other => panic!("{other:?}"),
    }
}

fn result(told: &Told<(SessionId, Wrote)>) -> Verdict {
    loop {
        match told.recv_timeout(SOON).expect("it is done").1 {
            Wrote::Block(..) => {}
            Wrote::File(0, result) => return verdict(&result),
            other => panic!("{other:?}"),
        }
    }
}

/// Of a session that ends as soon as all has come: nobody hears that the file gets its name.
fn finished(folder: &Arc<Folder>) -> Arc<Writer> {
    let (mut writer, told) = start(folder, info(5, 1), Vec::new());
    assert_eq!(opened(&told), Ok(Have::default()));
    writer.block(BlockId(0), b"bytes".to_vec());
    writer.digest(0, digest_of(b"bytes"));
    writer.end();
    Arc::new(writer)
}

#[test]
fn a_file_whose_result_was_lost_is_there_in_the_next_session() {
    for force in [false, true] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = folder(dir.path(), force);
        let (writer, told) = start(&folder, info(5, 1), vec![finished(&folder)]);
        assert_eq!(opened(&told), Ok(Have(vec![(0, 1)])), "by force: {force}");
        writer.digest(0, digest_of(b"bytes"));
        assert_eq!(result(&told), Verdict::Good);
        assert_eq!(fs::read(dir.path().join("file")).expect("it is there"), b"bytes");
    }
}

#[test]
fn another_file_is_none_whose_result_was_lost() {
    let replaced = |path: &Path| {
        let other = path.with_file_name("other");
        fs::write(&other, "other").expect("it is written");
        fs::rename(other, path).expect("it is renamed");
    };
    let away = |path: &Path| fs::remove_file(path).expect("it is there");
    type Row<'a> = (&'a str, FileInfo, &'a dyn Fn(&Path), Result<Have, Verdict>);
    let table: [Row<'_>; 4] = [
        ("another size", info(4, 1), &|_| (), Err(Verdict::Exists)),
        ("another time", info(5, 2), &|_| (), Err(Verdict::Exists)),
        ("somebody replaced it", info(5, 1), &replaced, Err(Verdict::Exists)),
        ("somebody took it away", info(5, 1), &away, Ok(Have::default())),
    ];
    for (what, info, change, expected) in table {
        for (force, expected) in [(false, expected), (true, Ok(Have::default()))] {
            let dir = tempfile::tempdir().expect("a folder");
            let folder = folder(dir.path(), force);
            drop(finished(&folder));
            change(&dir.path().join("file"));
            let (_writer, told) = start(&folder, info.clone(), Vec::new());
            assert_eq!(opened(&told), expected, "{what}, by force: {force}");
        }
    }
    let there = Ok(Have(vec![(0, 1)]));
    for (force, verdict, next) in [(false, Verdict::Exists, there), (true, Verdict::Busy, Ok(Have::default()))] {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = folder(dir.path(), force);
        let (writer, told) = start(&folder, info(5, 1), vec![finished(&folder)]);
        assert!(opened(&told).is_ok());
        writer.digest(0, digest_of(b"other"));
        assert_eq!(result(&told), verdict, "another digest");
        let (_writer, told) = start(&folder, info(5, 1), Vec::new());
        assert_eq!(opened(&told), next, "offered once more, by force: {force}");
    }
}

/// One that is at work until what comes with it is dropped.
fn at_work() -> (Writer, Sender<()>) {
    let (until, dropped) = channel::<()>();
    let thread = thread::spawn(move || {
        let _ = dropped.recv();
    });
    (Writer { orders: None, stop: Arc::default(), thread: Mutex::new(Some(thread)) }, until)
}

#[test]
fn who_writes_the_same_files_is_waited_for_and_nobody_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = folder(dir.path(), false);
    let (mut ended, mut all) = (Ended::default(), Vec::new());
    let (writer, until) = at_work();
    ended.add(vec![Ok(named("a")), Ok(named("b"))], writer);
    for name in ["a", "b", "c"] {
        all.push(start(&folder, named(name), ended.before(&[Ok(named(name))])));
    }
    assert_eq!(opened(&all[2].1), Ok(Have::default()));
    for (_, told) in &all[..2] {
        assert!(told.recv_timeout(A_WHILE).is_err(), "each of its files is still its own");
    }
    drop(until);
    for (_, told) in &all[..2] {
        assert_eq!(opened(told), Ok(Have::default()));
    }
}

#[test]
fn one_that_ends_looks_through_no_more_gigabytes() {
    /// Takes 20 s at 3 GB/s.
    const BLOCKS: u64 = 60_000;
    let dir = tempfile::tempdir().expect("a folder");
    let (folder, size) = (folder(dir.path(), false), BLOCKS * BLOCK_LEN as u64);
    let stop = AtomicBool::new(false);
    drop(Part::open(&folder.fd, &info(5, 1), false, &stop).expect("it is taken"));
    let mut map = fs::read(dir.path().join("file.part.map")).expect("it is there");
    map.truncate(32);
    map[16..24].copy_from_slice(&size.to_be_bytes());
    map.extend(Digest::of_block(&vec![0; BLOCK_LEN]).0.repeat(BLOCKS as usize));
    fs::write(dir.path().join("file.part.map"), map).expect("it is written");
    let part = File::options().write(true).open(dir.path().join("file.part")).expect("it is there");
    part.set_len(size).expect("a file of holes");
    let (writer, _told) = start(&folder, info(size, 1), Vec::new());
    std::thread::sleep(Duration::from_millis(50));
    let ends = Instant::now();
    drop(writer);
    assert!(ends.elapsed() < SOON, "{:?}", ends.elapsed());
}
