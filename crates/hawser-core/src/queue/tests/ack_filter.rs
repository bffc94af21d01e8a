//! Acknowledgements in the queue: newer ones take the place of older.

use super::*;

#[test]
fn of_acknowledgements_that_wait_the_newest_is_sent_in_the_place_of_the_first() {
    let mut bench = Bench::new(QueueParams::default());
    let mut gone = Vec::new();
    let mut ids = Vec::new();
    for (port, ack, payload) in [(1, 10, 0), (2, 10, 0), (1, 20, 0), (1, 30, 0), (1, 30, 0), (1, 40, 5), (1, 50, 0)] {
        let (packet, offload) = Sample { ports: (port, 1), ack, payload, ..Sample::default() }.partial();
        let id = admit(&mut bench.store, &packet, offload);
        ids.push(id);
        bench.queue.enqueue(bench.now, id, &mut bench.store, &mut |dropped| {
            gone.push((dropped.segment.train, dropped.reason));
        });
    }
    // 10 and 20 gave way to 30; the repeated one, the data and what follows it stay, and so does the other flow's.
    let filtered = |id| (id, DropReason::AckFiltered);
    assert_eq!(gone, [filtered(ids[0]), filtered(ids[2])]);
    assert_eq!(bench.queue.len(), 5);
    let mut sent = Vec::new();
    while let Some(pulled) = bench.queue.pull(bench.now, &mut bench.store, &mut |_| ALL, &mut |_| {}) {
        bench.store.release_all(pulled.train);
        sent.push(pulled.train);
    }
    let of_first_flow: Vec<_> = sent.iter().filter(|&&id| id != ids[1]).copied().collect();
    assert_eq!((of_first_flow, sent.len()), (vec![ids[3], ids[4], ids[5], ids[6]], 5));
    assert_eq!((bench.queue.bytes(), bench.store.bytes_held()), (ByteCount::ZERO, 0));
}
