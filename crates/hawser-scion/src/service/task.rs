//! The one task of the service.
//!
//! 1. Orders are taken: whoever asks is answered at once if what is known is fresh, or waits for the daemon.
//! 2. What is due is asked for, each AS at a time of its own.
//! 3. Answers are put in order, told to those who wait, and to subscribers if they changed.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant as Wake;

use super::book::{Book, Known, Now};
use super::{Answer, Order, ServiceOpts};
use crate::addr::IsdAs;
use crate::conn::{DeadPart, DeadParts, FIRST_DEATH};
use crate::daemon::{DaemonClient, DaemonError, Lookup, Refresh};
use crate::path::Path;
use crate::select::{Health, HealthTable, choose};

/// The longest sleep: subscribers are looked after now and then.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// What the daemon said, of which AS.
type Heard = (IsdAs, Result<Lookup, DaemonError>);

struct Keeper {
    client: DaemonClient,
    opts: ServiceOpts,
    book: Book,
    dead: DeadParts,
    /// What the daemon was told that it died, and when.
    reported: BTreeMap<DeadPart, Instant>,
    /// Why the daemon did not answer last, by AS.
    faults: BTreeMap<IsdAs, Arc<DaemonError>>,
    waiting: BTreeMap<IsdAs, Vec<mpsc::Sender<Answer>>>,
    told: BTreeMap<IsdAs, watch::Sender<Arc<[Path]>>>,
    asked: JoinSet<Heard>,
}

/// Runs until nobody can order anything.
pub(super) async fn run(client: DaemonClient, opts: ServiceOpts, mut orders: UnboundedReceiver<Order>) {
    let mut keeper = Keeper {
        client,
        opts,
        book: Book::default(),
        dead: DeadParts::default(),
        reported: BTreeMap::new(),
        faults: BTreeMap::new(),
        waiting: BTreeMap::new(),
        told: BTreeMap::new(),
        asked: JoinSet::new(),
    };
    loop {
        keeper.ask();
        let sleep = keeper.book.next_due().map(|due| due.saturating_duration_since(Now::read().mono));
        let wake = Wake::now() + sleep.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => keeper.take(order),
                None => return,
            },
            Some(Ok((destination, lookup))) = keeper.asked.join_next() => keeper.hear(destination, lookup),
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}

impl Keeper {
    /// Step 1.
    fn take(&mut self, order: Order) {
        let now = Now::read();
        match order {
            Order::Ask(destination, answer) => {
                let known = match self.book.look_up(destination, now) {
                    Known::Fresh(paths) | Known::Old(paths) => paths,
                    Known::Asked => return self.waiting.entry(destination).or_default().push(answer),
                };
                // Whoever asked may be gone, here and below.
                let _ = answer.send(self.answer(destination, &known, now));
            }
            Order::Subscribe(destination, answer) => {
                self.book.look_up(destination, now);
                let paths = self.ordered(&self.book.known(destination, now), now);
                let told = self.told.entry(destination).or_insert_with(|| watch::Sender::new(paths.into()));
                let _ = answer.send(told.subscribe());
            }
            Order::Down(part) => self.down(part, now),
        }
    }

    fn down(&mut self, part: DeadPart, now: Now) {
        self.dead.mark(part, now.mono);
        self.book.down(&part, now);
        let destinations: Vec<IsdAs> = self.told.keys().copied().collect();
        destinations.into_iter().for_each(|destination| self.tell(destination, now));
        // The daemon leaves out paths across it, for others on this host too. If it cannot be told, paths come last
        // here.
        self.reported.retain(|_, at| now.mono < *at + FIRST_DEATH);
        if let DeadPart::External(interface) = part
            && self.reported.insert(part, now.mono).is_none()
        {
            let client = self.client.clone();
            tokio::spawn(async move { client.report_down(interface).await });
        }
    }

    /// Step 2.
    fn ask(&mut self) {
        let now = Now::read();
        self.told.retain(|_, told| told.receiver_count() > 0);
        for &destination in self.told.keys() {
            self.book.keep(destination, now);
        }
        self.faults.retain(|&destination, _| self.book.has(destination));
        for (destination, refresh) in self.book.due(now) {
            let client = self.client.clone();
            self.asked.spawn(async move { (destination, ask(&client, destination, refresh).await) });
        }
    }

    /// Step 3.
    fn hear(&mut self, destination: IsdAs, lookup: Result<Lookup, DaemonError>) {
        let now = Now::read();
        match lookup {
            Ok(lookup) => {
                let admitted = lookup.paths.into_iter().filter(|path| self.opts.policy.admits(path)).collect();
                self.book.answered(destination, admitted, now);
                self.faults.remove(&destination);
            }
            Err(error) => {
                self.book.failed(destination, now);
                self.faults.insert(destination, Arc::new(error));
            }
        }
        let answer = self.answer(destination, &self.book.known(destination, now), now);
        for waits in self.waiting.remove(&destination).unwrap_or_default() {
            let _ = waits.send(answer.clone());
        }
        self.tell(destination, now);
    }

    fn tell(&self, destination: IsdAs, now: Now) {
        let Some(told) = self.told.get(&destination) else { return };
        let paths = self.ordered(&self.book.known(destination, now), now);
        told.send_if_modified(|known| {
            let differs = known[..] != paths[..];
            if differs {
                *known = paths.into();
            }
            differs
        });
    }

    /// What is known is better than an error.
    fn answer(&self, destination: IsdAs, known: &[Path], now: Now) -> Answer {
        match self.faults.get(&destination) {
            Some(error) if known.is_empty() => Err(Arc::clone(error)),
            _ => Ok(self.ordered(known, now)),
        }
    }

    /// The best first, the dead last.
    fn ordered(&self, paths: &[Path], now: Now) -> Vec<Path> {
        let is_dead = |path: &&Path| self.dead.until(&path.interfaces, now.mono).is_some();
        let died = Health { since_failure: Some(Duration::ZERO), ..Health::default() };
        let health: HealthTable = paths.iter().filter(is_dead).map(|path| (path.interfaces.clone(), died)).collect();
        let order = choose(paths, self.opts.select, paths.len(), &health);
        order.into_iter().map(|index| paths[index].clone()).collect()
    }
}

/// Asks; a daemon that cannot ask anew says at least what it knows.
async fn ask(client: &DaemonClient, destination: IsdAs, refresh: Refresh) -> Result<Lookup, DaemonError> {
    match client.paths(destination, refresh).await {
        Err(_) if refresh == Refresh::Yes => client.paths(destination, Refresh::No).await,
        answer => answer,
    }
}
