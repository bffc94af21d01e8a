//! `hawser top`: what the running portal does, live in a terminal.
//!
//! 1. The terminal is taken over (`terminal`), and given back however the command ends: by a key, an error, a panic, a
//!    signal.
//! 2. One thread asks the portal (`asking`), one reads keys, one waits for signals; all of them speak by one channel.
//! 3. Each update changes the model (`model`), which knows no terminal and no clock.
//! 4. The model is drawn (`view`), from nothing but itself and the size of the terminal.

mod asking;
mod columns;
mod events;
#[cfg(test)]
mod fixture;
mod flows;
mod keys;
mod links;
mod model;
mod paths;
mod series;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod view;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hawser_config::DEFAULT_SOCKET;
use ratatui::crossterm::event;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use model::{Model, Next, Update};
use terminal::Screen;
use theme::Theme;

/// Show links, paths, the largest flows and events of the running portal, live
#[derive(Debug, Args)]
pub struct Top {
    /// Begin with this peer alone
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Seconds from one look to the next, 0.2 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    every: Duration,
    /// The portal's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// The portal looks at itself five times a second; who looks once a minute still sees a minute's mean.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.2..=60.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "not between 0.2 and 60 seconds".to_owned())
}

impl Top {
    /// Shows the portal until it is told to end.
    pub fn run(self) -> Result<(), Failure> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            let failure = Failure::wrong("show the portal live: standard input and output are no terminal");
            return Err(failure.hint("for a file or a pipe: hawser status --watch, or --json"));
        }
        let failed = |error: io::Error| Failure::failed(format!("show the portal live: {error}"));
        let (updates, heard) = channel();
        wait_for_signals(updates.clone()).map_err(failed)?;
        asking::start(&self.socket, self.every, updates.clone()).map_err(failed)?;
        let mut screen = Screen::take().map_err(failed)?;
        read_keys(updates).map_err(failed)?;
        let mut model = Model::new(self.peer);
        show(&mut model, &heard, &mut screen).map_err(failed)
    }
}

/// Steps 3 and 4, until the end.
fn show(model: &mut Model, heard: &Receiver<Update>, screen: &mut Screen) -> io::Result<()> {
    let (theme, start) = (Theme::of_environment(), Instant::now());
    loop {
        screen.draw(|frame| view::draw(frame, model, &theme))?;
        // Senders end by panics alone, whose message is on the terminal by then.
        let Ok(first) = heard.recv() else { return Err(io::Error::other("what it hears by has ended")) };
        // Whatever came meanwhile is drawn once.
        for update in std::iter::once(first).chain(heard.try_iter()) {
            if model.update(start.elapsed(), update) == Next::End {
                return Ok(());
            }
        }
    }
}

/// A terminal that is gone sends SIGHUP.
fn wait_for_signals(updates: Sender<Update>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        for _ in signals.forever() {
            let _ = updates.send(Update::End);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// Keys, and that the size has changed.
fn read_keys(updates: Sender<Update>) -> io::Result<()> {
    let read = move || {
        loop {
            let update = match event::read() {
                Ok(event) => keys::update(&event),
                // The terminal is gone.
                Err(_) => Some(Update::End),
            };
            let last = update == Some(Update::End);
            if update.is_some_and(|update| updates.send(update).is_err()) || last {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".into()).spawn(read).map(drop)
}
