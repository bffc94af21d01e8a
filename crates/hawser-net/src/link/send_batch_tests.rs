use super::*;

fn route(port: u16, ecn: Ecn) -> Route {
    Route { remote: SocketAddr::from(([192, 0, 2, 1], port)), source: None, ecn }
}

/// (length, segment size) of each piece.
fn pieces(batch: &SendBatch, trains: bool) -> Vec<(usize, Option<u16>)> {
    let pieces = batch.pieces(trains);
    pieces.map(|p| (p.bytes.len(), p.segment_size)).collect()
}

fn push(batch: &mut SendBatch, route: Route, len: usize) {
    let byte = len as u8;
    let seal = |room: &mut [u8]| {
        room[..len].fill(byte);
        len
    };
    batch.push(route, 1500, seal).expect("room");
}

#[test]
fn equal_datagrams_for_one_address_become_one_train() {
    let (a, b) = (route(1, Ecn::Ect0), route(2, Ecn::Ect0));
    let marked = route(1, Ecn::NotEct);
    let one = |len| (len, None);
    let train = |len, size| (len, Some(size));
    type Case = (&'static str, Vec<(Route, usize)>, Vec<(usize, Option<u16>)>);
    let cases: Vec<Case> = vec![
        ("single", vec![(a, 1400)], vec![one(1400)]),
        ("equal", vec![(a, 1400), (a, 1400)], vec![train(2800, 1400)]),
        ("a shorter one closes the train", vec![(a, 1400), (a, 300), (a, 1400)], vec![train(1700, 1400), one(1400)]),
        ("a longer one starts anew", vec![(a, 300), (a, 1400)], vec![one(300), one(1400)]),
        ("another address", vec![(a, 1400), (b, 1400), (a, 1400)], vec![one(1400), one(1400), one(1400)]),
        ("other marks", vec![(a, 1400), (marked, 1400)], vec![one(1400), one(1400)]),
    ];
    for (name, pushed, expected) in cases {
        let mut batch = SendBatch::new();
        for (route, len) in pushed {
            push(&mut batch, route, len);
        }
        assert_eq!(pieces(&batch, true), expected, "{name}");
    }
}

#[test]
fn what_goes_apart_goes_one_by_one_and_joins_no_train() {
    let (mut batch, to) = (SendBatch::new(), route(1, Ecn::Ect0));
    push(&mut batch, to, 1000);
    assert_eq!(batch.push_apart(to, 1000, 2500, |room| room.len()), Ok(2500));
    push(&mut batch, to, 500);
    assert_eq!(pieces(&batch, true), [(1000, None), (1000, None), (1000, None), (500, None), (500, None)]);
}

#[test]
fn trains_keep_the_kernels_limits() {
    for (size, count) in [(1452, 150), (100, 200), (9000, 20)] {
        let mut batch = SendBatch::new();
        for _ in 0..count {
            batch.push(route(1, Ecn::Ect0), size, |room| room.len()).expect("room");
        }
        let trains = pieces(&batch, true);
        let total: usize = trains.iter().map(|&(len, _)| len).sum();
        assert_eq!(total, size * count);
        for &(len, _) in &trains {
            assert!(len <= MAX_RUN_BYTES && len.div_ceil(size) <= MAX_RUN_SEGMENTS);
        }
        assert_eq!(pieces(&batch, false), vec![(size, None); count]);
    }
}

#[test]
fn a_long_run_is_split_and_a_tail_may_be_short() {
    let mut batch = SendBatch::new();
    let len = 1000 * 70 + 5;
    let added = batch.push_run(route(1, Ecn::Ect0), 1000, len, |room| room.len());
    assert_eq!(added, Ok(len));
    assert_eq!(pieces(&batch, true), [(64_000, Some(1000)), (6_005, Some(1000))]);
}

#[test]
fn a_full_batch_says_so_and_empties_by_being_sent() {
    let mut batch = SendBatch::new();
    let to = route(1, Ecn::Ect0);
    let mut pushed = 0;
    while batch.push(to, 60_000, |room| room.len()).is_ok() {
        pushed += 1;
    }
    assert_eq!(pushed, SEND_BATCH_BYTES / 60_000);
    assert!(batch.room() < 60_000);
    batch.consume(60_000);
    assert_eq!(batch.pending_bytes(), (pushed - 1) * 60_000);
    batch.consume(batch.pending_bytes());
    assert!(batch.is_empty());
    assert_eq!(batch.room(), SEND_BATCH_BYTES);
}

#[test]
fn entries_are_bounded_too() {
    let mut batch = SendBatch::new();
    for n in 0..SEND_BATCH_ENTRIES {
        let to = route(n as u16, Ecn::Ect0);
        batch.push(to, 10, |room| room.len()).expect("room");
    }
    assert_eq!(batch.room(), 0);
    assert_eq!(batch.push(route(1, Ecn::Ect0), 10, |_| 10), Err(Full));
}

#[test]
fn a_cut_train_keeps_its_datagrams_whole() {
    let mut batch = SendBatch::new();
    for _ in 0..3 {
        push(&mut batch, route(1, Ecn::Ect0), 1000);
    }
    batch.consume(1000);
    assert_eq!(pieces(&batch, true), [(2000, Some(1000))]);
    batch.consume(1000);
    assert_eq!(pieces(&batch, true), [(1000, None)]);
}

#[test]
fn what_is_refused_leaves_and_is_told() {
    let mut batch = SendBatch::new();
    push(&mut batch, route(1, Ecn::Ect0), 1000);
    push(&mut batch, route(2, Ecn::Ect0), 500);
    batch.refuse_first(Refusal::TooBig);
    let told = SendFailure { route: route(1, Ecn::Ect0), segment_size: 1000, bytes: 1000, reason: Refusal::TooBig };
    assert_eq!(batch.failures(), [told]);
    assert_eq!(pieces(&batch, true), [(500, None)]);
    batch.start();
    assert_eq!(batch.failures(), []);
}

#[test]
fn sealing_nothing_adds_nothing() {
    let mut batch = SendBatch::new();
    batch.push(route(1, Ecn::Ect0), 1500, |_| 0).expect("room");
    assert!(batch.is_empty());
}

proptest::proptest! {
    #[test]
    fn every_datagram_goes_once_in_order_whole_and_to_its_address(
        pushed in proptest::collection::vec((0_u16..3, 1_usize..4, 1_usize..2000), 0..150),
        taken in 0_usize..40,
    ) {
        let mut batch = SendBatch::new();
        let mut expected = Vec::new();
        for (n, &(port, repeat, len)) in pushed.iter().enumerate() {
            for _ in 0..repeat {
                let to = route(port, Ecn::Ect0);
                let fill = |room: &mut [u8]| {
                    room.fill(n as u8);
                    room.len()
                };
                if batch.push(to, len, fill).is_ok() {
                    expected.push((to, vec![n as u8; len]));
                }
            }
        }
        // Some go one by one, as when trains are refused in the middle; the rest in trains.
        let mut got = Vec::new();
        for _ in 0..taken {
            let first = batch.pieces(false).next().map(|p| (*p.route, p.bytes.to_vec()));
            let Some((to, bytes)) = first else { break };
            batch.consume(bytes.len());
            got.push((to, bytes));
        }
        for piece in batch.pieces(true) {
            let size = piece.segment_size.map_or(piece.bytes.len(), usize::from);
            assert!(piece.bytes.len() <= MAX_RUN_BYTES);
            assert!(piece.bytes.len().div_ceil(size) <= MAX_RUN_SEGMENTS);
            got.extend(piece.bytes.chunks(size).map(|bytes| (*piece.route, bytes.to_vec())));
        }
        assert_eq!(got, expected);
    }
}

#[test]
fn what_was_written_to_spare_room_is_added_in_place() {
    let mut batch = SendBatch::new();
    for byte in 1..=4_u8 {
        let spare = batch.spare().expect("room for four full trains");
        assert!(spare.len() >= SPARE_BYTES);
        spare[..2500].fill(byte);
        let added = batch.push_run(route(u16::from(byte), Ecn::Ect0), 1000, 2500, |_| 2500);
        assert_eq!(added, Ok(2500));
        if batch.room() < SPARE_BYTES {
            break;
        }
    }
    let first = batch.pieces(true).next().map(|p| (p.bytes.to_vec(), p.segment_size));
    assert_eq!(first, Some((vec![1; 2500], Some(1000))));
    while batch.room() >= SPARE_BYTES {
        batch.push_run(route(9, Ecn::Ect0), 1000, 60_000, |_| 60_000).expect("room");
    }
    assert!(batch.spare().is_none());
}

#[test]
fn a_run_is_wrapped_once_and_goes_where_that_says() {
    let (hop, alias, lost) = (route(9, Ecn::Ect0).remote, route(1, Ecn::Ect0), route(2, Ecn::Ect0));
    let mut batch = SendBatch::new();
    let wrap = |batch: &mut SendBatch| {
        let mut wrapped = 0;
        batch.wrap(|route, run, size| {
            wrapped += 1;
            run.chunks_mut(size).for_each(|datagram| datagram[..4].fill(7));
            (route.remote == alias.remote).then_some(hop)
        });
        wrapped
    };
    for (route, len) in [(alias, 100), (alias, 100), (lost, 100), (alias, 60)] {
        push(&mut batch, route, len);
    }
    assert_eq!(wrap(&mut batch), 3);
    push(&mut batch, alias, 60);
    assert_eq!(wrap(&mut batch), 1, "what is wrapped stays, and nothing joins it");
    let seen: Vec<_> = batch.pieces(true).map(|piece| (*piece.to, piece.bytes.len(), piece.bytes[0])).collect();
    assert_eq!(seen, [(hop, 200, 7), (hop, 60, 7), (hop, 60, 7)]);
    assert_eq!(batch.pieces(true).next().map(|piece| piece.bytes[100]), Some(7), "each datagram of the train");
    batch.start();
    let failed: Vec<_> = batch.failures().iter().map(|f| (f.route, f.bytes, f.reason)).collect();
    assert_eq!(failed, [(lost, 100, Refusal::Unreachable)]);
    batch.consume(320);
    push(&mut batch, lost, 100);
    wrap(&mut batch);
    assert!(batch.is_empty() && batch.room() == SEND_BATCH_BYTES);
}

#[test]
fn a_run_that_was_given_away_is_written_while_others_are_added() {
    let (a, b) = (route(1, Ecn::Ect0), route(2, Ecn::Ect0));
    let mut batch = SendBatch::new();
    let mut filling = batch.filling();
    let one = filling.add(a, 1000, 2000, false).expect("room");
    let two = filling.add(a, 1000, 1500, false).expect("room");
    let three = filling.add(b, 700, 1400, true).expect("room");
    assert!(filling.has_room() && filling.add(b, 700, SEND_BATCH_BYTES, true).is_err());
    three.fill(3);
    one.fill(1);
    two.fill(2);
    assert_eq!(pieces(&batch, true), [(3500, Some(1000)), (700, None), (700, None)]);
    let bytes: Vec<u8> = batch.pieces(true).map(|piece| piece.bytes[piece.bytes.len() - 1]).collect();
    assert_eq!(bytes, [2, 3, 3]);
}
