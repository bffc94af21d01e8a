//! What takes time in a hub of many members and is not itself simulated.

use std::time::Duration;

/// What etcd's servers and a member's machine take for each thing. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Costs {
    /// A group of transactions, to the disks of a quorum.
    pub commit: Duration,
    /// Each key that is written, beside.
    pub write: Duration,
    /// A server tells a member of a transaction.
    pub answer: Duration,
    /// Each key in that, beside.
    pub event: Duration,
    /// A member takes in an answer that has epochs.
    pub take_in: Duration,
    /// A member's control thread gives a peer's route another metric.
    pub route: Duration,
}

impl Costs {
    /// Published, or estimated where this says so: none is measured on our machines yet. The example `measure` of
    /// hawser-etcd measures all but the last, the example `routes` of hawser-net that one.
    pub const ASSUMED: Costs = Costs {
        // A request takes less than a millisecond under light load, and more than 30,000 a second pass under heavy load
        // (etcd.io/docs/v3.4/op-guide/performance: three servers of four processors each).
        commit: Duration::from_millis(1),
        write: Duration::from_micros(33),
        // Estimated: a frame of HTTP/2, encrypted, and a system call.
        answer: Duration::from_micros(20),
        // etcd's proxy serves a million events a second (CoreOS, "etcd 3.2 now with massive watch scaling", 2017).
        event: Duration::from_micros(1),
        // Estimated: the view that the driver told last shares all epochs, so that the first one that changes copies a
        // million of them (hawser-etcd, `state.rs`), some 84 MB in nodes of a B-tree.
        take_in: Duration::from_millis(100),
        // Estimated: four questions and orders to the kernel, two lines of the journal, and for each a search among the
        // 10,000 that it has.
        route: Duration::from_micros(500),
    };

    /// Each by its name, as the command line has it.
    pub fn named(&mut self) -> [(&'static str, &mut Duration); 6] {
        let Costs { commit, write, answer, event, take_in, route } = self;
        [
            ("commit", commit),
            ("write", write),
            ("answer", answer),
            ("event", event),
            ("take-in", take_in),
            ("route", route),
        ]
    }
}
