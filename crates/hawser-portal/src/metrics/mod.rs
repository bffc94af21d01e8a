//! What Prometheus scrapes: `[metrics] listen`, `GET /metrics`.
//!
//! 1. [`Server::bind`] opens the address, once the TUN device has its own. 2. [`Server::serve`] answers with the status
//!    of the moment, which is there anyway: the packet thread does not notice a scrape.
//! 3. [`exposition`] writes it as OpenMetrics where that is asked for, else as Prometheus' text.

mod exposition;
mod families;
mod process;
mod server;

pub use exposition::{Exposition, exposition};
pub use server::{Server, Source};
