use super::*;

/// A millisecond to the disks, one for each key, one to tell each member of a transaction; nothing else takes time.
const COSTS: Costs = Costs {
    commit: ms(1),
    write: ms(1),
    answer: ms(1),
    event: Duration::ZERO,
    take_in: Duration::ZERO,
    route: Duration::ZERO,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// Six members, ten milliseconds away, two at each server; their loads change after all that is looked at.
fn etcd(costs: Costs) -> Etcd {
    Etcd::new(costs, vec![ms(10); 6], || at(600_000))
}

fn known(etcd: &mut Etcd) -> Vec<(u64, usize)> {
    etcd.advance(at(500_000));
    etcd.known.iter().map(|(at, count)| (at.since(Time::ZERO).as_millis() as u64, *count)).collect()
}

#[test]
fn an_epoch_goes_to_the_disks_and_to_all_members() {
    let mut etcd = etcd(COSTS);
    etcd.own(0, at(1_000), true);
    // Ten there, one for the disks and one for the key, two to tell two members, ten back.
    assert_eq!(known(&mut etcd), [(1_024, 1)]);
    assert_eq!((etcd.left, etcd.longest), (0, [ms(2), ms(2), ms(0)]));
    let figures = etcd.figures(at(1_000));
    assert_eq!(figures.busiest, Writes { keys: 1.0, transactions: 1.0 });
    assert_eq!((figures.at_rest, figures.known.all), (Writes::default(), Some(24)));
}

#[test]
fn what_comes_while_a_group_is_written_goes_with_the_next_and_waits_for_it() {
    let mut etcd = etcd(COSTS);
    for member in 0..3 {
        etcd.own(member, at(1_000 + u64::from(member.min(1))), true);
    }
    // The first group has one key, from 1,010 to 1,012; the second has two, to 1,015. One server tells two members of
    // each transaction: of the second and third one after the other.
    assert_eq!(known(&mut etcd), [(1_024, 1), (1_027, 1), (1_029, 1)]);
    assert_eq!(etcd.longest[0], ms(4));
}

#[test]
fn a_member_writes_forty_epochs_at_once_and_the_next_once_its_watch_told_them() {
    let mut etcd = etcd(Costs { write: Duration::ZERO, ..COSTS });
    // The first is written alone: the others come while it is.
    (0..50).for_each(|number| etcd.own(0, at(1_000 + number.min(1)), true));
    // Each takes 23 ms until all know it; the next begins no sooner than 50 after the last.
    assert_eq!(known(&mut etcd), [(1_023, 1), (1_073, 40), (1_123, 9)]);
    assert_eq!(etcd.again, 0);
}

#[test]
fn where_the_watch_is_late_the_same_is_written_again_and_again() {
    let mut etcd = etcd(Costs { write: Duration::ZERO, take_in: ms(200), ..COSTS });
    (0..2).for_each(|number| etcd.own(0, at(1_000 + number), true));
    // It is told after 223 ms: meanwhile, each 50, it writes what it wrote; and then the other one from 1,250 on.
    assert_eq!(known(&mut etcd), [(1_223, 1), (1_473, 1)]);
    assert_eq!(etcd.again, 4 + 4);
}

#[test]
fn whom_a_member_misses_is_told_to_all_that_live_but_waits_behind_its_epochs() {
    let mut etcd = etcd(COSTS);
    etcd.own(0, at(999), false);
    etcd.miss(0, 5, at(1_000));
    etcd.kill(5);
    assert!(etcd.advance(at(1_060)).is_empty(), "its epoch is written at 999, and then it pauses for 50 ms");
    let told = etcd.advance(at(2_000));
    let all: Vec<(u32, u32)> = told.iter().map(|told| (told.member, told.missed)).collect();
    assert_eq!(all, [(0, 5), (3, 5), (1, 5), (4, 5), (2, 5)], "server by server");
    assert_eq!(told[0].at, at(1_049 + 24));
}
