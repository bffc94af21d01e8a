//! What a key log tells opens what was sealed.

use super::*;
use crate::handshake::secrets::{KeyLogEntry, KeyLogError, SessionSecrets};

fn entry(protection: Protection, ciphers: &[Cipher]) -> (TransportKeys, KeyLogEntry) {
    let (local, _) = Pair::new(offer(protection, ciphers), both()).finish();
    let secrets = local.keys.secrets();
    (local.keys, KeyLogEntry { peer: "home".to_owned(), new: true, secrets })
}

#[test]
fn a_line_of_a_key_log_opens_what_was_sealed_under_its_keys() {
    for ciphers in [&[AES, CHACHA][..], &[CHACHA]] {
        let (keys, written) = entry(Protection::Encrypt, ciphers);
        let line = written.line();
        let read: KeyLogEntry = line.parse().expect("a line");
        assert_eq!(read, written);
        assert_eq!(read.secrets.sent.cipher(), ciphers[0]);
        let (path, number) = (PathId(3), PacketNumber(9));
        let open = OpenKey::new(&read.secrets.sent);
        assert_eq!(open.label(path), keys.send.label(path));
        let mut datagram = vec![0x40; DATA_HEADER_LEN + 5 + TAG_LEN];
        keys.send.seal(path, number, &mut datagram).expect("it has room");
        let frames = open.open(path, number, &mut datagram).expect("its key");
        assert_eq!(frames, [0x40; 5]);
    }
}

#[test]
fn a_line_has_room_from_the_start_so_that_no_copy_of_a_key_is_left_behind() {
    let (_, mut written) = entry(Protection::Authenticate, &[CHACHA]);
    written.peer = "p".repeat(64);
    written.new = false;
    let line = written.line();
    let capacity = 128 + 4 * (32 + 12 + 32) + 64;
    assert!(line.len() <= capacity && line.capacity() == capacity, "{} of {}", line.len(), line.capacity());
}

#[test]
fn secrets_are_not_shown_for_debugging() {
    let (_, written) = entry(Protection::Encrypt, &[AES]);
    let SessionSecrets { sent, .. } = &written.secrets;
    assert_eq!(format!("{sent:?}"), "KeySecrets { cipher: Aes128Gcm, protection: Encrypt, .. }");
}

#[test]
fn what_is_no_line_is_refused_by_its_fault() {
    let (_, written) = entry(Protection::Encrypt, &[AES]);
    let line = written.line();
    let key = line.split(' ').nth(6).expect("a key");
    let table = [
        (line.replace("hawser-keys-1", "hawser-keys-2"), KeyLogError::Magic),
        (line[..40].to_owned(), KeyLogError::Protection),
        (line[..line.len() - 66].to_owned(), KeyLogError::Short),
        (line.replace(" new ", " old "), KeyLogError::New),
        (line.replace("aes-128-gcm", "des"), KeyLogError::Cipher),
        (line.replace("encrypt", "hide"), KeyLogError::Protection),
        (line.replace("sent", "went"), KeyLogError::Direction("sent")),
        (line.replace(" received", ""), KeyLogError::Direction("received")),
        (line.replace("aes-128-gcm", "chacha20-poly1305"), KeyLogError::Key),
        (line.replace(key, &key.replace(|_: char| true, "g")), KeyLogError::Key),
        (line.replace(key, &format!("{key} 00")), KeyLogError::Iv),
        (format!("{} more", line.trim_end()), KeyLogError::Trailing),
        (format!("{}00", line.trim_end()), KeyLogError::LabelKey),
    ];
    for (line, error) in table {
        assert_eq!(line.parse::<KeyLogEntry>(), Err(error), "{line}");
    }
}

#[test]
fn a_log_has_comments_and_line_numbers() {
    let (_, written) = entry(Protection::Encrypt, &[AES]);
    let text = format!("# keys\n\n{}junk\n", &*written.line());
    let read: Vec<_> = KeyLogEntry::read_all(&text).collect();
    assert_eq!(read, [(3, Ok(written)), (4, Err(KeyLogError::Magic))]);
}
