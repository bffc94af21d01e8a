use super::*;
use crate::link::{Datagrams, Ecn};

/// A run of `count` one-byte datagrams that nobody is to open: it keeps its place in the order.
fn passed(bytes: &mut [u8]) -> Task<'_> {
    let remote = ([192, 0, 2, 1], 1).into();
    let run = Datagrams { remote, local: None, ecn: Ecn::NotEct, segment_size: 1, bytes, header: 0 };
    open(run, None).next().expect("a run has a byte")
}

fn number(task: Task<'_>) -> u8 {
    match task {
        Task::Seal(bytes, _) => bytes[0],
        Task::Open(opened) => opened.run.bytes[0],
    }
}

#[test]
fn the_board_is_bounded_and_gives_back_in_order() {
    let mut workers = Workers::start(2).expect("threads start");
    let mut bytes: Vec<[u8; 1]> = (0..200).map(|number| [number]).collect();
    let mut seen = Vec::new();
    workers.round(|round| {
        for byte in &mut bytes {
            if round.is_full() {
                seen.extend(round.next().map(number));
            }
            round.push(passed(byte));
        }
        seen.extend(std::iter::from_fn(|| round.next()).map(number));
    });
    assert_eq!(seen, (0..200).collect::<Vec<u8>>());
}

#[test]
#[should_panic(expected = "the board of tasks is full")]
fn a_round_that_takes_nothing_down_does_not_grow() {
    let mut bytes = [[0u8]; TASKS_MAX + 1];
    let mut workers = Workers::start(1).expect("threads start");
    workers.round(|round| bytes.iter_mut().for_each(|byte| round.push(passed(byte))));
}
