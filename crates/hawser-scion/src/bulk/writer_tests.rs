use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::Receiver as Told;
use std::time::{Duration, Instant};

use hawser_bulk::layout::FileName;

use super::*;

/// How long an end may take on a busy machine.
const SOON: Duration = Duration::from_secs(10);

fn folder(path: &Path) -> Arc<Folder> {
    Arc::new(Folder::new(File::open(path).expect("a folder").into(), false))
}

fn info(size: u64, modified: i64) -> FileInfo {
    FileInfo { name: FileName::new(b"file").expect("a name"), size, modified }
}

fn digest() -> Digest {
    Digest::of_file(&[Digest::of_block(b"bytes")])
}

/// A session's writer for one file, and what it did.
fn start(folder: &Arc<Folder>, file: FileInfo, before: Vec<Writer>) -> (Writer, Told<(SessionId, Wrote)>) {
    let (wrote, told) = channel();
    let teller = Teller { wrote, wake: Wake::new().expect("an eventfd") };
    let writer = Writer::start(SessionId(0), Arc::clone(folder), vec![Ok(file)], before, teller);
    (writer.expect("it starts"), told)
}

fn opened(told: &Told<(SessionId, Wrote)>) -> Result<Have, Verdict> {
    match told.recv().expect("it opens").1 {
        Wrote::Opened(mut opened) => opened.remove(0).map_err(|error| error.verdict()),
        other => panic!("{other:?}"),
    }
}

fn result(told: &Told<(SessionId, Wrote)>) -> Verdict {
    match told.recv().expect("it is done").1 {
        Wrote::File(0, result) => verdict(&result),
        other => panic!("{other:?}"),
    }
}

/// Of a session that ends as soon as all has come: nobody hears that the file gets its name.
fn finished(folder: &Arc<Folder>) -> Writer {
    let (mut writer, told) = start(folder, info(5, 1), Vec::new());
    assert_eq!(opened(&told), Ok(Have::default()));
    writer.block(BlockId(0), b"bytes".to_vec());
    writer.digest(0, digest());
    writer.end();
    writer
}

#[test]
fn a_file_whose_result_was_lost_is_there_in_the_next_session() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = folder(dir.path());
    let (writer, told) = start(&folder, info(5, 1), vec![finished(&folder)]);
    assert_eq!(opened(&told), Ok(Have(vec![(0, 1)])));
    writer.digest(0, digest());
    assert_eq!(result(&told), Verdict::Good);
    assert_eq!(fs::read(dir.path().join("file")).expect("it is there"), b"bytes");
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
        let dir = tempfile::tempdir().expect("a folder");
        let folder = folder(dir.path());
        drop(finished(&folder));
        change(&dir.path().join("file"));
        let (_writer, told) = start(&folder, info, Vec::new());
        assert_eq!(opened(&told), expected, "{what}");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let folder = folder(dir.path());
    let (writer, told) = start(&folder, info(5, 1), vec![finished(&folder)]);
    assert!(opened(&told).is_ok());
    writer.digest(0, Digest([1; 32]));
    assert_eq!(result(&told), Verdict::Exists, "another digest");
}

#[test]
fn one_that_ends_looks_through_no_more_gigabytes() {
    /// Takes 20 s at 3 GB/s.
    const BLOCKS: u64 = 60_000;
    let dir = tempfile::tempdir().expect("a folder");
    let (folder, size) = (folder(dir.path()), BLOCKS * BLOCK_LEN as u64);
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
