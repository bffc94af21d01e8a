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

/// Some figures of one way. Starts with none; plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Takes the place of a trace.
    pub rate: Option<Rate>,
    /// Takes the place of a rate.
    pub trace: Option<Trace>,
    /// A rate, as a part of what the other way carries on average.
    pub share_of_other: Option<f64>,
    /// Bytes each packet takes beside its IP bytes.
    pub overhead: Option<u32>,
    /// Before the rate.
    pub queue: Option<QueueDepth>,
    /// What happens to a queue that is full, or stays.
    pub discipline: Option<Discipline>,
    /// One way.
    pub delay: Option<Duration>,
    /// How much the delay varies.
    pub jitter: Option<Duration>,
    /// How its values are drawn.
    pub jitter_distribution: Option<Spread>,
    /// Whether packets overtake.
    pub jitter_reorders: Option<bool>,
    /// After the queue.
    pub loss: Option<Loss>,
    /// The share of packets held back.
    pub reorder: Option<Probability>,
    /// For how long.
    pub reorder_by: Option<Duration>,
    /// The share that arrives twice.
    pub duplicate: Option<Probability>,
    /// The share that is damaged.
    pub corrupt: Option<Probability>,
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

impl Figures {
    /// Whether they say how fast it is.
    pub(crate) const fn has_pace(&self) -> bool {
        self.rate.is_some() || self.trace.is_some() || self.share_of_other.is_some()
    }

    /// Lays these over what a way has. A share of the other way is none's before that one is known.
    pub fn apply(&self, way: &mut Direction) {
        if self.has_pace() {
            (way.rate, way.trace) = (self.rate, self.trace.clone());
        }
        put(&mut way.overhead, self.overhead);
        put(&mut way.queue, self.queue);
        if let Some(discipline) = self.discipline {
            way.random_drop = discipline == Discipline::RandomDrop;
            way.codel = (discipline == Discipline::Codel).then(Codel::default);
        }
        put(&mut way.delay, self.delay);
        if self.jitter.is_some() || self.jitter_distribution.is_some() || self.jitter_reorders.is_some() {
            let still = Jitter { amplitude: Duration::ZERO, spread: Spread::Normal, reorder: false };
            let jitter = way.jitter.get_or_insert(still);
            put(&mut jitter.amplitude, self.jitter);
            put(&mut jitter.spread, self.jitter_distribution);
            put(&mut jitter.reorder, self.jitter_reorders);
        }
        put(&mut way.loss, self.loss);
        if self.reorder.is_some() || self.reorder_by.is_some() {
            let none = Reorder { share: Probability::NEVER, by: DEFAULT_REORDER_BY };
            let reorder = way.reorder.get_or_insert(none);
            put(&mut reorder.share, self.reorder);
            put(&mut reorder.by, self.reorder_by);
        }
        put(&mut way.duplicate, self.duplicate);
        put(&mut way.corrupt, self.corrupt);
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_last_counts_and_what_is_not_said_stays() {
        let mut way = Direction { queue: DEFAULT_QUEUE, ..Direction::default() };
        let trace = Trace::parse("0\n10\n").expect("a trace");
        let ms = Duration::from_millis;
        let layers = [
            Figures { rate: Some(Rate::mbit(5.0)), delay: Some(ms(7)), jitter: Some(ms(2)), ..Figures::default() },
            Figures { trace: Some(trace.clone()), jitter_reorders: Some(true), ..Figures::default() },
            Figures { discipline: Some(Discipline::Codel), reorder: Probability::percent(1.0), ..Figures::default() },
        ];
        for layer in &layers {
            layer.apply(&mut way);
        }
        assert_eq!((way.rate, way.trace.as_ref()), (None, Some(&trace)), "a trace takes a rate's place");
        assert_eq!((way.delay, way.queue), (ms(7), DEFAULT_QUEUE));
        assert_eq!(way.jitter, Some(Jitter { amplitude: ms(2), spread: Spread::Normal, reorder: true }));
        assert_eq!(way.reorder.map(|reorder| reorder.by), Some(DEFAULT_REORDER_BY));
        assert!(way.codel.is_some() && !way.random_drop);
        let last = Figures {
            rate: Some(Rate::mbit(1.0)),
            discipline: Some(Discipline::RandomDrop),
            reorder_by: Some(ms(3)),
            ..Figures::default()
        };
        last.apply(&mut way);
        assert!(way.rate.is_some() && way.trace.is_none(), "and a rate a trace's");
        assert!(way.codel.is_none() && way.random_drop);
        assert_eq!(way.reorder, Probability::percent(1.0).map(|share| Reorder { share, by: ms(3) }));
    }
}
