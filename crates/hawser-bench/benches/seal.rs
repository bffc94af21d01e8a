//! What sealing and opening a packet of 1400 bytes costs, in place and out of place.
//!
//! On two shared x86-64 cores with VAES, AES-128-GCM: in place 271 ns, with a copy before 309 ns, and 262 ns to open.
//! ChaCha20-Poly1305: 756, 815 and 751 ns. To authenticate only, AES-128-GCM takes 828 ns (1,290 to open), for ring
//! hashes associated data a block at a time; ChaCha20-Poly1305 577 ns (610).
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hawser_core::handshake::{Identity, Initiator, Psk, Responder, TransportKeys, Verdict};
use hawser_core::units::{PacketNumber, PathId, Random, Time};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{Cipher, CipherSet, DATA_FRAME_LEN, DATA_HEADER_LEN, InstanceId, Offer, Protection, TAG_LEN};

/// Bytes of the inner packet.
const PACKET_LEN: usize = 1400;
/// Bytes before it.
const HEAD_LEN: usize = DATA_HEADER_LEN + DATA_FRAME_LEN;
/// The path of every packet.
const PATH: PathId = PathId(1);

/// Not random: what is measured does not depend on the keys.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 += 1;
        bytes.fill(self.0);
    }
}

/// The keys of both ends.
fn keys(cipher: Cipher, protection: Protection) -> (TransportKeys, TransportKeys) {
    let offer = Offer { protection, ciphers: CipherSet::of(&[cipher]), instance: InstanceId(1) };
    let (local, remote) = (Identity::new([1; 32]), Identity::new([2; 32]));
    let peer = remote.public();
    let mut rng = Counting(0);
    let index = HandshakeIndex(1);
    let (mut initiator, message) =
        Initiator::start(&local, &peer, Psk::default(), offer, index, None, &mut rng).expect("a message");
    let from = ([192, 0, 2, 1], 4920).into();
    let verdict = Responder::new(remote, offer).on_initiation(
        Time::ZERO,
        &message,
        from,
        index,
        &mut |_| Some(Psk::default().into()),
        &mut rng,
    );
    let Verdict::Accept(accepted) = verdict else { panic!("not accepted: {verdict:?}") };
    let established = initiator.on_response(&accepted.response).expect("the right response");
    (established.keys, accepted.established.keys)
}

fn bench(criterion: &mut Criterion) {
    for (name, cipher, protection) in [
        ("aes-128-gcm", Cipher::Aes128Gcm, Protection::Encrypt),
        ("chacha20-poly1305", Cipher::ChaCha20Poly1305, Protection::Encrypt),
        ("aes-128-gcm, authenticate", Cipher::Aes128Gcm, Protection::Authenticate),
        ("chacha20-poly1305, authenticate", Cipher::ChaCha20Poly1305, Protection::Authenticate),
        ("blake2s, authenticate", Cipher::Blake2s, Protection::Authenticate),
    ] {
        let (local, remote) = keys(cipher, protection);
        let body = [7; PACKET_LEN];
        let mut datagram = [0; HEAD_LEN + PACKET_LEN + TAG_LEN];
        let mut numbers = (0..).map(PacketNumber);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(PACKET_LEN as u64));
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
        group.bench_function("seal in place", |bencher| {
            bencher.iter(|| {
                let number = numbers.next().expect("endless");
                local.send.seal(PATH, number, black_box(&mut datagram)).expect("room");
            });
        });
        group.bench_function("seal out of place", |bencher| {
            bencher.iter(|| {
                let number = numbers.next().expect("endless");
                let sealed = local.send.seal_from(PATH, number, &mut datagram, HEAD_LEN, black_box(&body));
                sealed.expect("room");
            });
        });

        let number = PacketNumber(1);
        local.send.seal(PATH, number, &mut datagram).expect("room");
        let mut out = [0; HEAD_LEN + PACKET_LEN];
        group.bench_function("open out of place", |bencher| {
            bencher.iter(|| {
                let opened = remote.recv.open_into(PATH, number, black_box(&datagram), &mut out);
                opened.expect("authentic");
            });
        });
        group.bench_function("open in place, with a copy", |bencher| {
            let mut copy = datagram;
            bencher.iter(|| {
                copy.copy_from_slice(black_box(&datagram));
                black_box(remote.recv.open(PATH, number, &mut copy).expect("authentic"));
            });
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
