//! Workers: threads that seal and open beside the packet thread, which alone has the core.
//!
//! 1. The packet thread begins a round ([`Workers::round`]), and hangs tasks on the board ([`Round::push`]): runs of
//!    datagrams and a key for them.
//! 2. Who is free does the oldest that waits: a worker, or the packet thread when it has nothing else to do.
//! 3. It takes them down in the order in which it hung them up ([`Round::next`]), done. What order packets have is
//!    never a worker's.
//! 4. A round ends when no worker has anything of it, whatever happens: bytes are lent for no longer.
//!
//! A task is a train and not a packet, so a lock guards the board, held while a task changes hands. wireguard-go keeps
//! order likewise: a packet is in a queue of all workers and in one of its peer, which takes it when it is done
//! (device/send.go).

mod board;
mod task;

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use board::TASKS_MAX;
use board::{Board, First};
pub use task::{Opened, TASK_BYTES, TASK_DATAGRAMS, Task, open, seal};

/// For this long a thread waits for the board to change before it sleeps: four tasks (`TASK_BYTES`).
const SPIN: Duration = Duration::from_micros(20);

/// Threads that work beside the one that owns this. They run from the start, and end when it is dropped.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    accounts: Vec<Option<File>>,
}

/// What all threads share.
struct Shared {
    board: Mutex<Board>,
    /// Grows, under the lock, when a task is hung up or done: for those that wait without it.
    changes: AtomicU64,
    /// There is a task.
    work: Condvar,
    /// The first task is done.
    done: Condvar,
}

/// Tasks that are under way. Lives for a call of [`Workers::round`].
#[derive(Debug)]
pub struct Round<'w, 'a> {
    shared: &'w Shared,
    /// Tasks on the board.
    pending: usize,
    /// What it lends must stay for as long, and for no shorter time.
    lent: PhantomData<fn(&'a ()) -> &'a ()>,
}

impl Workers {
    /// Starts this many threads.
    ///
    /// # Errors
    /// The system's, where a thread cannot be started; those that were end.
    pub fn start(count: usize) -> io::Result<Workers> {
        let shared = Arc::new(Shared {
            board: Mutex::new(Board::new()),
            changes: AtomicU64::new(0),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let mut workers = Workers { shared, threads: Vec::new(), accounts: Vec::new() };
        for number in 1..=count {
            let (shared, (tell, told)) = (Arc::clone(&workers.shared), mpsc::channel());
            let builder = thread::Builder::new().name(format!("hawser-worker-{number}"));
            workers.threads.push(builder.spawn(move || {
                let _ = tell.send(File::open("/proc/thread-self/schedstat").ok());
                shared.work_until_the_end();
            })?);
            workers.accounts.push(told.recv().ok().flatten());
        }
        Ok(workers)
    }

    /// What the kernel keeps of each worker's time, where it does (Documentation/scheduler/sched-stats.rst).
    pub fn accounts(&self) -> &[Option<File>] {
        &self.accounts
    }

    /// One round: `body` hangs tasks up and takes them down. When this returns, all tasks are done, and gone.
    ///
    /// # Panics
    /// As `body` does, and if a worker panicked.
    pub fn round<'a, R>(&mut self, body: impl FnOnce(&mut Round<'_, 'a>) -> R) -> R {
        let mut round = Round { shared: &self.shared, pending: 0, lent: PhantomData };
        let result = body(&mut round);
        while round.next().is_some() {}
        result
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut board = self.shared.lock();
        board.ends = true;
        self.shared.changes.fetch_add(1, Relaxed);
        drop(board);
        self.shared.work.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl<'a> Round<'_, 'a> {
    /// Whether a task must be taken down before there is room for another one.
    pub fn is_full(&self) -> bool {
        self.pending == TASKS_MAX
    }

    /// Step 1.
    ///
    /// # Panics
    /// If the board is full.
    pub fn push(&mut self, task: Task<'a>) {
        // SAFETY: only the lifetime changes. The task leaves the board before `'a` ends: by `next`, which gives it its
        // lifetime back, or by this round's drop, which waits until no worker has one. The round is lent to a closure
        // within `Workers::round` and cannot be forgotten there; `'a` is invariant, and longer than that call.
        let task = unsafe { std::mem::transmute::<Task<'a>, Task<'static>>(task) };
        let mut board = self.shared.lock();
        let wakes = board.push(task) && board.asleep > 0;
        self.shared.changes.fetch_add(1, Relaxed);
        drop(board);
        self.pending += 1;
        if wakes {
            self.shared.work.notify_one();
        }
    }

    /// Step 3: the next task in their order; `None` when there is none. The caller works meanwhile.
    ///
    /// # Panics
    /// If a worker panicked.
    #[expect(clippy::should_implement_trait, reason = "tasks are hung up between two calls")]
    pub fn next(&mut self) -> Option<Task<'a>> {
        loop {
            let seen = self.shared.changes.load(Relaxed);
            let mut board = self.shared.lock();
            match board.take_first() {
                First::Done(task) => {
                    self.pending -= 1;
                    return Some(task);
                }
                First::Nothing => return None,
                First::Lost => {
                    drop(board);
                    panic!("a worker panicked");
                }
                First::Pending => {}
            }
            match board.claim() {
                Some((number, task)) => self.shared.work_on(board, number, task),
                None => self.shared.wait_for_done(board, seen),
            }
        }
    }
}

impl Drop for Round<'_, '_> {
    fn drop(&mut self) {
        let mut board = self.shared.lock();
        while !board.clear() {
            board.awaited = true;
            board = self.shared.done.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    /// No panic leaves the board amid a change: a worker's is caught, and nothing that holds the lock panics but
    /// `push`, first of all.
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Step 2: a worker's life.
    fn work_until_the_end(&self) {
        let mut board = self.lock();
        while !board.ends {
            let seen = self.changes.load(Relaxed);
            if let Some((number, task)) = board.claim() {
                self.work_on(board, number, task);
                board = self.lock();
                continue;
            }
            drop(board);
            let changed = self.spin(seen);
            board = self.lock();
            if !changed && self.changes.load(Relaxed) == seen && !board.ends {
                board.asleep += 1;
                board = self.work.wait(board).unwrap_or_else(PoisonError::into_inner);
                board.asleep -= 1;
            }
        }
    }

    /// Does a claimed task without the lock.
    fn work_on(&self, board: MutexGuard<'_, Board>, number: u64, mut task: Task<'static>) {
        drop(board);
        let done = catch_unwind(AssertUnwindSafe(|| task.work())).is_ok();
        let mut board = self.lock();
        board.finish(number, done.then_some(task));
        let wakes = std::mem::take(&mut board.awaited);
        self.changes.fetch_add(1, Relaxed);
        drop(board);
        if wakes {
            self.done.notify_one();
        }
    }

    /// All tasks are done or somebody's: nothing is to be done here until one of those is.
    fn wait_for_done(&self, board: MutexGuard<'_, Board>, seen: u64) {
        drop(board);
        if self.spin(seen) {
            return;
        }
        let mut board = self.lock();
        if self.changes.load(Relaxed) == seen {
            board.awaited = true;
            drop(self.done.wait(board));
        }
    }

    /// Whether the board changes soon.
    fn spin(&self, seen: u64) -> bool {
        let start = Instant::now();
        while self.changes.load(Relaxed) == seen {
            if start.elapsed() >= SPIN {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
