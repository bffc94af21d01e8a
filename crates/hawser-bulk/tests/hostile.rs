//! Ends that break rules, and strangers.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_bulk::digest::Digest;
use hawser_bulk::layout::{BlockId, ChunkId, FileInfo, FileName, NameError};
use hawser_bulk::receiver::{Event, MOST_ANSWER, MOST_SESSIONS, Receiver, WINDOW};
use hawser_bulk::sender::{self, Call, Called, End, Law, SendPlan, Sender};
use hawser_bulk::trust::{Trust, offer};
use hawser_bulk::wire::{Ack, Frame, Have, Mark, Message, Reason, SEAL_LEN, Verdict};
use hawser_core::handshake::{Responder, TransportKeys, Verdict as Judged};
use hawser_core::units::{PacketNumber, PathId, Random, Time};
use hawser_core::wire::handshake::{HandshakeIndex, INITIATION_LEN};
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, TruncatedNumber};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

struct Chance(ChaCha8Rng);

impl Random for Chance {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

fn chance(seed: u64) -> Chance {
    Chance(ChaCha8Rng::seed_from_u64(seed))
}

fn at(ms: u64) -> Time {
    Time::from_nanos(1_000_000_000) + Duration::from_millis(ms)
}

fn host() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5))
}

fn trust() -> Trust {
    Trust::secret([7; 32])
}

/// All that a receiver has to say.
fn answers(receiver: &mut Receiver<u8>, now: Time) -> Vec<(u8, Vec<u8>)> {
    let mut out = [0; MOST_ANSWER];
    let one = || receiver.poll_transmit(now, &mut out).map(|(to, len)| (to, out[..len].to_vec()));
    std::iter::from_fn(one).collect()
}

/// A handshake with a receiver.
fn call(receiver: &mut Receiver<u8>, seed: u64) -> TransportKeys {
    let mut random = chance(seed);
    let mut call = Call::new(&trust(), offer(true), 1, at(0), &mut random).expect("a receiver");
    let (_, initiation) = call.poll_transmit(at(0), &mut random).expect("it is due");
    assert!(receiver.handle_datagram(at(0), 1, host(), &initiation, &mut random));
    let [(1, answer)] = &answers(receiver, at(0))[..] else { panic!("one answer") };
    assert!(answer.len() <= INITIATION_LEN, "nothing is amplified");
    let Some(Called { keys, path: 0, .. }) = call.handle_datagram(at(1), 0, answer) else { panic!("it is answered") };
    keys
}

fn sealed(keys: &TransportKeys, number: u64, frame: &[u8]) -> Vec<u8> {
    let header = DataHeader { label: keys.send.label(PathId(0)), number: TruncatedNumber(number as u32) };
    let mut datagram = [&header.encode()[..], frame, &[0; 16]].concat();
    keys.send.seal(PathId(0), PacketNumber(number), &mut datagram).expect("it fits");
    datagram
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = vec![0; 3000];
    let len = frame.encode(&mut out).expect("room");
    out.truncate(len);
    out
}

fn says(message: &Message) -> Vec<u8> {
    let mut piece = Vec::new();
    message.write(&mut piece);
    encoded(&Frame::Control { control: 0, offset: 0, piece: &piece })
}

fn the_offer() -> Message {
    let file = FileInfo { name: FileName::new(b"file").expect("a name"), size: 200 << 20, modified: 0 };
    Message::Offer { chunk: 1000, files: vec![Ok(file)] }
}

fn opened<'o>(keys: &TransportKeys, number: u64, datagram: &'o mut [u8]) -> Frame<'o> {
    let frame = keys.recv.open(PathId(0), PacketNumber(number), datagram).expect("it opens");
    Frame::decode(frame).expect("a frame")
}

#[test]
fn strangers_get_no_answer() {
    let mut receiver: Receiver<u8> = Receiver::new(trust(), true);
    let mut random = chance(1);
    for len in 0..300 {
        for first in [0x10, 0x20, 0x30, 0x40, 0xff] {
            let mut datagram = vec![0; len];
            random.fill(&mut datagram);
            datagram.iter_mut().take(1).for_each(|byte| *byte = first);
            assert!(!receiver.handle_datagram(at(0), 1, host(), &datagram, &mut random));
        }
    }
    let other = Trust::secret([8; 32]);
    let mut call = Call::new(&other, offer(true), 1, at(0), &mut random).expect("a receiver");
    let (_, initiation) = call.poll_transmit(at(0), &mut random).expect("it is due");
    assert!(!receiver.handle_datagram(at(0), 1, host(), &initiation, &mut random), "another secret");
    assert!(answers(&mut receiver, at(0)).is_empty() && receiver.poll_event().is_none());
}

#[test]
fn who_breaks_a_rule_is_told_to_go() {
    let chunk = |block, index| ChunkId { block: BlockId(block), index };
    let offer = says(&the_offer());
    let data = |block, index, len: usize| encoded(&Frame::Data(chunk(block, index), &vec![1; len]));
    let acked =
        Frame::Ack(Ack { mark: 0, received_at_us: 0, delay_us: 0, control: 0, limit: 0, first: 0, bitmap: &[1] });
    let mark = |control| encoded(&Frame::Mark(Mark { mark: 0, ack_bytes: 1, ack_delay_us: 1, control }));
    let table: [(&str, Vec<Vec<u8>>, bool); 10] = [
        ("a chunk before an offer", vec![data(0, 0, 1000)], false),
        ("an acknowledgement", vec![encoded(&acked)], false),
        ("no frame", vec![vec![99]], false),
        ("a digest before an offer", vec![says(&Message::Result(0, Verdict::Good))], false),
        ("words that were never said", vec![mark(5)], false),
        ("a chunk", vec![offer.clone(), data(0, 0, 1000)], true),
        ("a chunk twice", vec![offer.clone(), data(0, 0, 1000), data(0, 0, 1000)], true),
        ("a chunk of another length", vec![offer.clone(), data(0, 0, 999)], false),
        ("a chunk that there is not", vec![offer.clone(), data(0, 1049, 1)], false),
        ("a chunk beyond the limit", vec![offer.clone(), data(WINDOW, 0, 1000)], false),
    ];
    for (seed, (what, frames, good)) in (0..).zip(table) {
        let mut receiver: Receiver<u8> = Receiver::new(trust(), true);
        let keys = call(&mut receiver, seed);
        let mut replies = Vec::new();
        for (number, frame) in (0..).zip(frames) {
            let datagram = sealed(&keys, number, &frame);
            assert!(receiver.handle_datagram(at(2), 1, host(), &datagram, &mut chance(0)), "{what}: it opens");
            while let Some(event) = receiver.poll_event() {
                if let Event::Offer(session, _) = event {
                    receiver.answer(session, vec![(Verdict::Good, Have::default())]);
                }
            }
            replies.extend(answers(&mut receiver, at(20)));
        }
        let closed = (0..)
            .zip(&mut replies)
            .any(|(number, (_, datagram))| matches!(opened(&keys, number, datagram), Frame::Close(Reason::Protocol)));
        assert_eq!(closed, !good, "{what}");
    }
}

#[test]
fn the_second_file_of_a_name_is_refused_and_the_first_one_taken() {
    let file = |modified| Ok(FileInfo { name: FileName::new(b"file").expect("a name"), size: 1000, modified });
    let mut receiver: Receiver<u8> = Receiver::new(trust(), true);
    let keys = call(&mut receiver, 1);
    let offer = says(&Message::Offer { chunk: 1000, files: vec![file(1), file(2)] });
    assert!(receiver.handle_datagram(at(2), 1, host(), &sealed(&keys, 0, &offer), &mut chance(0)));
    let Some(Event::Offer(session, files)) = receiver.poll_event() else { panic!("it is offered") };
    assert_eq!(files, [file(1), Err((NameError::Twice, 1000))]);
    // Whoever opens files says nothing of a name that is none.
    receiver.answer(session, vec![(Verdict::Good, Have::default()); 2]);
    let (mut said, mut expected): (Vec<u8>, Vec<u8>) = Default::default();
    for (number, (_, mut datagram)) in (0..).zip(answers(&mut receiver, at(20))) {
        if let Frame::Control { piece, .. } = opened(&keys, number, &mut datagram) {
            said.extend(piece);
        }
    }
    for (file, verdict) in [(0, Verdict::Good), (1, Verdict::Name)] {
        Message::Answer(file, verdict, Have::default()).write(&mut expected);
    }
    assert_eq!(said, expected);
}

#[test]
fn a_copy_from_elsewhere_turns_nothing() {
    let mut receiver: Receiver<u8> = Receiver::new(trust(), true);
    let keys = call(&mut receiver, 1);
    let mark = encoded(&Frame::Mark(Mark { mark: 0, ack_bytes: 1, ack_delay_us: 1, control: 0 }));
    let first = sealed(&keys, 0, &mark);
    receiver.handle_datagram(at(2), 1, host(), &sealed(&keys, 1, &mark), &mut chance(0));
    assert_eq!(answers(&mut receiver, at(3)).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1]);
    receiver.handle_datagram(at(4), 9, host(), &first, &mut chance(0));
    assert_eq!(answers(&mut receiver, at(5)).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1], "an older one");
    let mut forged = sealed(&keys, 7, &mark);
    forged[DATA_HEADER_LEN] ^= 1;
    assert!(!receiver.handle_datagram(at(6), 9, host(), &forged, &mut chance(0)));
    assert!(answers(&mut receiver, at(7)).is_empty());
}

#[test]
fn the_oldest_half_open_handshake_goes_and_a_fifth_sender_waits() {
    let mut receiver: Receiver<u8> = Receiver::new(trust(), true);
    let mark = encoded(&Frame::Mark(Mark { mark: 0, ack_bytes: 1, ack_delay_us: 1, control: 0 }));
    // Fewer than are asked for a cookie.
    let all: Vec<TransportKeys> = (0..50).map(|seed| call(&mut receiver, seed)).collect();
    let mut opens = |keys: &TransportKeys, number| {
        receiver.handle_datagram(at(2), 1, host(), &sealed(keys, number, &mark), &mut chance(0))
    };
    for keys in &all[..MOST_SESSIONS] {
        assert!(opens(keys, 0));
    }
    assert!(!opens(&all[MOST_SESSIONS], 0), "four are served");
    assert!(opens(&all[0], 1) && opens(&all[0], 2));
    let close = sealed(&all[0], 3, &encoded(&Frame::Close(Reason::Done)));
    assert!(receiver.handle_datagram(at(2), 1, host(), &close, &mut chance(0)));
    receiver.handle_timeout(at(3));
    assert!(matches!(receiver.poll_event(), Some(Event::Gone(_, Some(Reason::Done)))));
    assert!(receiver.handle_datagram(at(4), 1, host(), &sealed(&all[MOST_SESSIONS], 1, &mark), &mut chance(0)));
    receiver.handle_timeout(at(11_000));
    assert!(!receiver.handle_datagram(at(11_000), 1, host(), &sealed(&all[40], 0, &mark), &mut chance(0)), "too late");
}

/// A sender, and the other end's keys.
fn sender() -> (Sender, TransportKeys) {
    let (mut random, trust) = (chance(3), trust());
    let mut call = Call::new(&trust, offer(true), 1, at(0), &mut random).expect("a receiver");
    let (_, initiation) = call.poll_transmit(at(0), &mut random).expect("it is due");
    let mut responder = Responder::new(trust.answers(), offer(true));
    let mut knows = |key: &_| trust.knows(key);
    let judged = responder.on_initiation(at(0), &initiation, host(), HandshakeIndex(1), &mut knows, &mut random);
    let Judged::Accept(accepted) = judged else { panic!("it is right") };
    let called = call.handle_datagram(at(10), 0, &accepted.response).expect("it is answered");
    let plan = SendPlan {
        files: vec![FileInfo { name: FileName::new(b"file").expect("a name"), size: 5000, modified: 0 }],
        payloads: vec![1392],
        answered: (0, called.round_trip),
        law: Law::Fill,
        ceiling: None,
        most_datagrams: u64::MAX,
        seed: 1,
    };
    (Sender::new(at(10), called.keys, &plan).expect("an offer"), accepted.established.keys)
}

/// Sends all that may go: says how many datagrams.
fn sent(sender: &mut Sender, ms: std::ops::Range<u64>) -> u64 {
    let mut datagrams = 0;
    for ms in ms {
        while let Some(packet) = sender.poll_transmit(at(ms), 0) {
            sender.seal(&packet, &mut vec![0; packet.len]).expect("it fits");
            datagrams += 1;
        }
    }
    datagrams
}

#[test]
fn a_sender_waits_when_all_that_it_read_and_said_has_arrived() {
    let (mut sender, keys) = sender();
    let hears = |sender: &mut Sender, number, frame: &[u8]| {
        sender.handle_datagram(at(50 * number), 0, &mut sealed(&keys, number, frame));
        sender.is_waiting()
    };
    let ack = |mark, control| {
        let ack = Ack { mark, received_at_us: 0, delay_us: 0, control, limit: 1, first: mark, bitmap: &[] };
        encoded(&Frame::Ack(ack))
    };
    // Bytes of the offer, and of the digest.
    let (offer, digest) = (30, 39);
    let mut out = sent(&mut sender, 20..21);
    assert!(!sender.is_waiting(), "the offer is under way");
    assert!(hears(&mut sender, 1, &ack(0, offer)), "the receiver looks for what is there");
    let good = says(&Message::Answer(0, Verdict::Good, Have::default()));
    assert!(!hears(&mut sender, 2, &good), "a block is to be read");
    sender.load(BlockId(0), vec![1; 5000]);
    assert!(!sender.is_waiting(), "and to be sent");
    out += sent(&mut sender, 100..150);
    assert!(hears(&mut sender, 3, &ack(out, offer)), "it has arrived, and the file is hashed");
    sender.tell_digest(0, Digest([7; 32]));
    assert!(!sender.is_waiting(), "the digest is under way");
    assert!(hears(&mut sender, 4, &ack(out, offer + digest)), "the receiver writes");
}

fn ended(sender: &mut Sender) -> Option<End> {
    let mut end = None;
    for _ in 0..10 {
        if let Some(packet) = sender.poll_transmit(at(20), 0) {
            sender.seal(&packet, &mut vec![0; packet.len]).expect("it fits");
        }
        while let Some(event) = sender.poll_event() {
            if let sender::Event::Ended(why) = event {
                end = Some(why);
            }
        }
    }
    end
}

#[test]
fn a_receiver_that_lies_ends_the_session() {
    let ack = |mark, first, bitmap, control| {
        encoded(&Frame::Ack(Ack { mark, received_at_us: 0, delay_us: 0, control, limit: 1, first, bitmap }))
    };
    let answer = |file, have| says(&Message::Answer(file, Verdict::Good, have));
    let table: [(&str, Vec<u8>, Option<End>); 9] = [
        ("nothing new", ack(0, 0, &[], 0), None),
        ("a number that was not sent", ack(0, 9000, &[1], 0), Some(End::Protocol)),
        ("a cumulative one", ack(9000, 9000, &[], 0), Some(End::Protocol)),
        ("words that were not said", ack(0, 0, &[], 60_000), Some(End::Protocol)),
        ("an answer", answer(0, Have::default()), None),
        ("an answer about no file", answer(1, Have::default()), Some(End::Protocol)),
        ("blocks that there are not", answer(0, Have(vec![(0, 2)])), Some(End::Protocol)),
        ("a result before an answer", says(&Message::Result(0, Verdict::Good)), Some(End::Protocol)),
        ("an offer", says(&the_offer()), Some(End::Protocol)),
    ];
    for (what, frame, end) in table {
        let (mut sender, keys) = sender();
        let mut datagram = sealed(&keys, 0, &frame);
        assert!(datagram.len() >= SEAL_LEN);
        assert_eq!(sender.handle_datagram(at(15), 0, &mut datagram), sender::Heard::Ours, "{what}");
        assert_eq!(ended(&mut sender), end, "{what}");
    }
    let (mut sender, keys) = sender();
    let mut forged = sealed(&keys, 0, &ack(0, 9000, &[1], 0));
    forged[DATA_HEADER_LEN] ^= 1;
    assert_eq!(sender.handle_datagram(at(15), 0, &mut forged), sender::Heard::Nothing);
    assert_eq!(ended(&mut sender), None);
}
