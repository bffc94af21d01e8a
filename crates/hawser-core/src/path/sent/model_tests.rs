//! A naive model: every packet is acked, handed out or outstanding, and each change happens once.

use super::tests::{BYTES, Sent, at, bare, packet, ranges, rtt};
use super::{Arrival, ByteCount, PacketNumber};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What the model knows of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Fate {
    Outstanding,
    Acked,
    HandedOut,
    AckedAfter,
}

#[derive(Clone, Debug)]
enum Step {
    Send {
        skip: bool,
        eliciting: bool,
    },
    /// Ranges as (distance of the end from the newest number, length).
    Ack(Vec<(u64, u64)>),
    Wait(u64),
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let send = (prop::bool::weighted(0.05), prop::bool::weighted(0.8));
    let range = (0u64..40, 0u64..20);
    let step = prop_oneof![
        12 => send.prop_map(|(skip, eliciting)| Step::Send { skip, eliciting }),
        4 => prop::collection::vec(range, 1..5).prop_map(Step::Ack),
        2 => (0u64..60).prop_map(Step::Wait),
        1 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 0..300)
}

/// The naive side: every number in a map, every frame walked number by number.
#[derive(Default)]
struct Model {
    packets: BTreeMap<u64, (Fate, bool)>,
    next: u64,
}

impl Model {
    fn set(&mut self, pn: PacketNumber, from: Fate, to: Fate) {
        let fate = &mut self.packets.get_mut(&pn.0).expect("it was sent").0;
        assert_eq!(*fate, from, "packet {} becomes {to:?}", pn.0);
        *fate = to;
    }

    fn acked(&mut self, pn: PacketNumber, how: Arrival) {
        match how {
            Arrival::Outstanding => self.set(pn, Fate::Outstanding, Fate::Acked),
            Arrival::AfterLoss => self.set(pn, Fate::HandedOut, Fate::AckedAfter),
        }
    }

    fn outstanding(&self) -> u64 {
        let waiting = self.packets.values();
        waiting.filter(|&&(fate, eliciting)| fate == Fate::Outstanding && eliciting).count() as u64
    }
}

fn run(steps: Vec<Step>) {
    let rtt = rtt(20);
    let mut sent = Sent::new();
    let mut model = Model::default();
    let mut now = 0;
    for step in steps {
        match step {
            Step::Send { skip, eliciting } => {
                model.next += u64::from(skip);
                let packet = if eliciting { packet(now, 0) } else { bare(now) };
                sent.on_sent(PacketNumber(model.next), packet);
                model.packets.insert(model.next, (Fate::Outstanding, eliciting));
                model.next += 1;
            }
            Step::Ack(list) => {
                let list: Vec<(u64, u64)> = list
                    .iter()
                    .filter_map(|&(behind, length)| {
                        let end = model.next.checked_sub(1 + behind)?;
                        Some((end.saturating_sub(length), end))
                    })
                    .collect();
                let numbers = || list.iter().flat_map(|&(start, end)| start..=end);
                let before: Vec<u64> = numbers().filter(|pn| sent.base <= *pn).collect();
                let honest = before.iter().all(|pn| model.packets.contains_key(pn));
                let result = sent.on_ack(at(now), ranges(&list), |pn, _, how| model.acked(pn, how));
                assert_eq!(result.is_ok(), honest);
                if honest {
                    for pn in before {
                        let fate = model.packets[&pn].0;
                        assert!(matches!(fate, Fate::Acked | Fate::AckedAfter), "{pn} {fate:?}");
                    }
                }
            }
            Step::Wait(ms) => now += ms,
            Step::Drain => sent.drain(at(now), |pn, _| {
                model.set(pn, Fate::Outstanding, Fate::HandedOut);
            }),
        }
        sent.detect_losses(at(now), &rtt, |pn, _| {
            model.set(pn, Fate::Outstanding, Fate::HandedOut);
        });
        let outstanding = model.outstanding();
        assert_eq!(sent.bytes_in_flight(), ByteCount(outstanding * u64::from(BYTES)));
        assert_eq!(sent.outstanding().count() as u64, outstanding);
        assert_eq!(sent.oldest_unacked_sent_at().is_some(), outstanding > 0);
    }
}

proptest! {
    #[test]
    fn every_packet_is_once_acked_lost_or_outstanding(steps in steps()) {
        run(steps);
    }
}
