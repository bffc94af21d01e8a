//! The board that tasks hang on: who does which, and in which order they are taken down.
//!
//! ```text
//!          push              claim              finish            take_first
//!   task ---------> Waits -----------> Claimed -----------> Done ------------> task
//!     |                                   | the worker panicked      ^
//!     |                                   +-------> Lost             |
//!     +--------------------- nothing is to be done ------------------+
//! ```

use std::collections::VecDeque;

use super::task::Task;

/// Tasks on the board at most: a round of 512 KiB each way in parts of [`super::task::TASK_BYTES`], and some small
/// ones.
pub const TASKS_MAX: usize = 32;

/// A task on the board.
enum Slot {
    Waits(Task<'static>),
    Claimed,
    Done(Task<'static>),
    Lost,
}

/// What comes of asking for the first task.
#[expect(clippy::large_enum_variant, reason = "moved at once, and a box would be allocated for each 32 KiB")]
pub enum First {
    /// It is done.
    Done(Task<'static>),
    /// Somebody does it.
    Pending,
    /// Whoever did it panicked.
    Lost,
    /// There is none.
    Nothing,
}

/// The tasks of a round, in the order in which they came. Empty at first; whoever holds its lock may change it.
pub struct Board {
    slots: VecDeque<Slot>,
    /// Tasks taken down since the start: the number of the first slot.
    taken: u64,
    /// All slots before this number are claimed.
    next: u64,
    /// Workers that sleep until there is a task.
    pub asleep: usize,
    /// The packet thread sleeps until a task is done.
    pub awaited: bool,
    /// The workers are to end.
    pub ends: bool,
}

impl Board {
    pub fn new() -> Self {
        let slots = VecDeque::with_capacity(TASKS_MAX);
        Board { slots, taken: 0, next: 0, asleep: 0, awaited: false, ends: false }
    }

    pub fn is_full(&self) -> bool {
        self.slots.len() == TASKS_MAX
    }

    /// Hangs a task behind all others. Whether there is something to do.
    ///
    /// # Panics
    /// If it is full: memory would grow.
    pub fn push(&mut self, task: Task<'static>) -> bool {
        assert!(!self.is_full(), "the board of tasks is full");
        let done = task.is_done();
        self.slots.push_back(if done { Slot::Done(task) } else { Slot::Waits(task) });
        !done
    }

    /// The oldest task that waits, and its number.
    pub fn claim(&mut self) -> Option<(u64, Task<'static>)> {
        self.next = self.next.max(self.taken);
        while let Some(slot) = self.slots.get_mut((self.next - self.taken) as usize) {
            self.next += 1;
            match std::mem::replace(slot, Slot::Claimed) {
                Slot::Waits(task) => return Some((self.next - 1, task)),
                other => *slot = other,
            }
        }
        None
    }

    /// A task that was claimed is done; none: it is lost.
    pub fn finish(&mut self, number: u64, task: Option<Task<'static>>) {
        if let Some(slot) = self.slots.get_mut((number - self.taken) as usize) {
            *slot = task.map_or(Slot::Lost, Slot::Done);
        }
    }

    /// Takes the first task down, if it is done.
    pub fn take_first(&mut self) -> First {
        match self.slots.front() {
            None => return First::Nothing,
            Some(Slot::Waits(_) | Slot::Claimed) => return First::Pending,
            Some(Slot::Lost) => return First::Lost,
            Some(Slot::Done(_)) => {}
        }
        self.taken += 1;
        match self.slots.pop_front() {
            Some(Slot::Done(task)) => First::Done(task),
            _ => First::Nothing,
        }
    }

    /// Forgets all tasks that nobody does. Whether that are all.
    pub fn clear(&mut self) -> bool {
        self.slots.iter_mut().filter(|slot| !matches!(slot, Slot::Claimed)).for_each(|slot| *slot = Slot::Lost);
        let clear = self.slots.iter().all(|slot| matches!(slot, Slot::Lost));
        if clear {
            self.taken += self.slots.len() as u64;
            self.slots.clear();
        }
        clear
    }
}
