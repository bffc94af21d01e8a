//! What a file says of one way of a link: some of its figures. Profiles, links, cases and events lay them over each
//! other.

use std::time::Duration;

use hawser_config::keyword;
use hawser_wire::{Codel, Direction, Jitter, Loss, Probability, QueueDepth, Rate, Reorder, Spread, Trace};

/// A link whose file says nothing of its queue has so much time in it: a long round trip's worth, as routers' buffers
/// have. Source: Villamizar and Song, High Performance TCP in ANSNET, 1994.
pub(crate) const DEFAULT_QUEUE: QueueDepth = QueueDepth::Time(Duration::from_millis(100));
/// How long packets are held back, where the file says how many, but not for how long.
const DEFAULT_REORDER_BY: Duration = Duration::from_millis(10);

/// What is said of one way, in order: what is said last counts.
pub type Figures = Vec<Figure>;

/// A figure of one way. Plain data.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Takes the place of a trace.
    Rate(Rate),
    /// Takes the place of a rate.
    Trace(Trace),
    /// A rate, as a part of what the other way carries on average.
    ShareOfOther(f64),
    /// Bytes each packet takes beside its IP bytes.
    Overhead(u32),
    /// Before the rate.
    Queue(QueueDepth),
    /// What happens to a queue that is full, or stays.
    Discipline(Discipline),
    /// One way.
    Delay(Duration),
    /// How much the delay varies.
    Jitter(Duration),
    /// How its values are drawn.
    JitterDistribution(Spread),
    /// Whether packets overtake.
    JitterReorders(bool),
    /// After the queue.
    Loss(Loss),
    /// The share of packets held back.
    Reorder(Probability),
    /// For how long.
    ReorderBy(Duration),
    /// The share that arrives twice.
    Duplicate(Probability),
    /// The share that is damaged.
    Corrupt(Probability),
}

keyword! {
    /// What a queue does. Plain data.
    Discipline {
        /// A full one loses what comes.
        DropTail = "drop-tail",
        /// A full one loses any of its packets.
        RandomDrop = "random-drop",
        /// RFC 8289.
        Codel = "codel",
    }
}

/// Lays figures over what a way has. A share of the other way is none's before that one is known.
pub(crate) fn lay(figures: &[Figure], way: &mut Direction) {
    for figure in figures {
        match figure {
            Figure::Rate(rate) => (way.rate, way.trace) = (Some(*rate), None),
            Figure::Trace(trace) => (way.rate, way.trace) = (None, Some(trace.clone())),
            Figure::ShareOfOther(_) => (way.rate, way.trace) = (None, None),
            Figure::Overhead(bytes) => way.overhead = *bytes,
            Figure::Queue(depth) => way.queue = *depth,
            Figure::Discipline(discipline) => {
                way.random_drop = *discipline == Discipline::RandomDrop;
                way.codel = (*discipline == Discipline::Codel).then(Codel::default);
            }
            Figure::Delay(delay) => way.delay = *delay,
            Figure::Jitter(amplitude) => jitter(way).amplitude = *amplitude,
            Figure::JitterDistribution(spread) => jitter(way).spread = *spread,
            Figure::JitterReorders(reorder) => jitter(way).reorder = *reorder,
            Figure::Loss(loss) => way.loss = *loss,
            Figure::Reorder(share) => reorder(way).share = *share,
            Figure::ReorderBy(by) => reorder(way).by = *by,
            Figure::Duplicate(share) => way.duplicate = *share,
            Figure::Corrupt(share) => way.corrupt = *share,
        }
    }
}

fn jitter(way: &mut Direction) -> &mut Jitter {
    way.jitter.get_or_insert(Jitter { amplitude: Duration::ZERO, spread: Spread::Normal, reorder: false })
}

fn reorder(way: &mut Direction) -> &mut Reorder {
    way.reorder.get_or_insert(Reorder { share: Probability::NEVER, by: DEFAULT_REORDER_BY })
}

/// Which part of what the other way carries is this one's rate, where that was said last of it.
pub(super) fn share_of_other(figures: &[Figure]) -> Option<f64> {
    let of_rate = figures.iter().rev().find_map(|figure| match figure {
        Figure::Rate(_) | Figure::Trace(_) => Some(None),
        Figure::ShareOfOther(share) => Some(Some(*share)),
        _ => None,
    });
    of_rate.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_last_counts_and_what_is_not_said_stays() {
        let mut way = Direction { queue: DEFAULT_QUEUE, ..Direction::default() };
        let trace = Trace::parse("0\n10\n").expect("a trace");
        let share = Probability::percent(1.0).expect("a share");
        let (rate, ms) = (Figure::Rate(Rate::mbit(5.0)), Duration::from_millis);
        let first = [rate.clone(), Figure::Delay(ms(7)), Figure::Jitter(ms(2)), Figure::Trace(trace.clone())];
        lay(&first, &mut way);
        lay(&[Figure::JitterReorders(true), Figure::Discipline(Discipline::Codel), Figure::Reorder(share)], &mut way);
        assert_eq!((way.rate, way.trace.as_ref()), (None, Some(&trace)), "a trace takes a rate's place");
        assert_eq!((way.delay, way.queue), (ms(7), DEFAULT_QUEUE));
        assert_eq!(way.jitter, Some(Jitter { amplitude: ms(2), spread: Spread::Normal, reorder: true }));
        assert_eq!(way.reorder, Some(Reorder { share, by: DEFAULT_REORDER_BY }));
        assert!(way.codel.is_some() && !way.random_drop);
        lay(&[rate, Figure::Discipline(Discipline::RandomDrop), Figure::ReorderBy(ms(3))], &mut way);
        assert!(way.rate.is_some() && way.trace.is_none(), "and a rate a trace's");
        assert!(way.codel.is_none() && way.random_drop);
        assert_eq!(way.reorder, Some(Reorder { share, by: ms(3) }));
    }
}
