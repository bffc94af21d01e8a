//! The thread that asks for paths, so that packets wait for nobody.
//!
//! 1. [`Finder::ask`]: an AS is wanted. The service is asked, which may take seconds, and the answer told.
//! 2. From then on every change is told, put in order here, until the AS is forgotten.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;

use hawser_scion::IsdAs;
use hawser_scion::conn::{DeadPart, Paths};
use hawser_scion::service::PathService;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::handle::{Orders, Told};
use crate::engine::{EngineOpts, Found, ranked};

/// What the thread is told.
#[derive(Debug)]
enum Wish {
    Ask(IsdAs),
    Forget(IsdAs),
}

/// Asks for paths. Asks for none at first; its thread ends with it. The packet thread owns it.
#[derive(Debug)]
pub(super) struct Finder {
    wishes: UnboundedSender<Wish>,
    service: Arc<PathService>,
}

impl Finder {
    pub fn start(service: Arc<PathService>, opts: EngineOpts, orders: Orders) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let (wishes, wished) = unbounded_channel();
        let asked = Arc::clone(&service);
        let run = move || {
            runtime.block_on(serve(asked, opts, orders, wished));
            // A question that is not answered yet is of no more interest.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("shim-paths".to_owned()).spawn(run)?;
        Ok(Self { wishes, service })
    }

    /// Step 1.
    pub fn ask(&self, isd_as: IsdAs) {
        // It ends with this alone.
        let _ = self.wishes.send(Wish::Ask(isd_as));
    }

    /// A router says that a part of paths is dead: the service has others looked for. Waits for nothing.
    pub fn report(&self, part: DeadPart) {
        self.service.report_down(part);
    }

    pub fn forget(&self, isd_as: IsdAs) {
        let _ = self.wishes.send(Wish::Forget(isd_as));
    }
}

async fn serve(service: Arc<PathService>, opts: EngineOpts, orders: Orders, mut wished: UnboundedReceiver<Wish>) {
    let mut tasks: BTreeMap<IsdAs, JoinHandle<()>> = BTreeMap::new();
    while let Some(wish) = wished.recv().await {
        let (Wish::Ask(isd_as) | Wish::Forget(isd_as)) = wish;
        tasks.remove(&isd_as).into_iter().for_each(|task| task.abort());
        if matches!(wish, Wish::Ask(_)) {
            let task = tokio::spawn(watch(Arc::clone(&service), opts, orders.clone(), isd_as));
            tasks.insert(isd_as, task);
        }
    }
    tasks.into_values().for_each(|task| task.abort());
}

/// Steps 1 and 2 for one AS.
async fn watch(service: Arc<PathService>, opts: EngineOpts, orders: Orders, isd_as: IsdAs) {
    let tell = |found: Found| orders.0.send([Told::Paths(isd_as, found)]).is_ok();
    let order = |paths: &[hawser_scion::Path]| Found::Paths(ranked(paths, opts.select, opts.egress.into()));
    let asked = Arc::clone(&service);
    let first = tokio::task::spawn_blocking(move || asked.paths(isd_as)).await;
    let found = match first {
        Ok(Ok(paths)) => order(&paths),
        Ok(Err(error)) => {
            tracing::warn!(%isd_as, error = &error as &dyn std::error::Error, "no paths found");
            Found::Failed
        }
        Err(_) => Found::Failed,
    };
    if !tell(found) {
        return;
    }
    let Some(mut changes) = service.subscribe(isd_as) else { return };
    while changes.next().await.is_some() {
        if !tell(order(changes.paths())) {
            return;
        }
    }
}
