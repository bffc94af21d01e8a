//! What is shown, and how: changed by updates alone. Time comes with each of them.
//!
//! ```text
//!            status          no answer
//!   waiting --------> live <-----------> away (what was known stays)
//!                      |  ^
//!                 Space|  |Space
//!                      v  |
//!                     paused (all goes on unseen)
//! ```

use std::time::Duration;

use hawser_portal::api::{Events, Flows, PeerStatus, Status};

use super::series::Series;

/// What happened. Plain data.
#[derive(Debug, PartialEq)]
pub enum Update {
    /// The portal's status, or why there is none.
    Status(Box<Result<Status, String>>),
    /// Its largest flows.
    Flows(Flows),
    /// What happened, and the present time in milliseconds since 1970, by which ages are told.
    Events(Events, u64),
    /// A key.
    Deed(Deed),
    /// The terminal has another size.
    Resized,
    /// The command is to end.
    End,
}

/// What a key asks for. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The help comes, or goes.
    Help,
    /// The help goes.
    Back,
    /// What is shown stays as it is, or goes on.
    Pause,
    /// Keys work on the next table.
    NextTable,
    /// Its rows are sorted by a column this many further on.
    Sort(isize),
    /// Their order is the other one.
    Reverse,
    /// The peer this many further on is shown alone.
    Peer(isize),
    /// Its rows move by this many.
    Scroll(isize),
}

/// Whether the command goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    GoOn,
    /// It ends.
    End,
}

/// The tables that keys work on, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Paths.
    Paths,
    /// The largest flows.
    Flows,
}

impl Table {
    const ALL: [Self; 2] = [Self::Paths, Self::Flows];

    fn next(self) -> Self {
        let place = Self::ALL.iter().position(|table| *table == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }
}

/// How a table's rows are ordered, and which are shown. As they come by default; plain value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// By which of the table's sort keys.
    pub by: usize,
    /// The other way round.
    pub reversed: bool,
    /// Rows that are left out above.
    pub above: usize,
}

/// What the portal said. Nothing at first; plain data.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Its last status.
    pub status: Option<Status>,
    /// Its last flows; none before the first.
    pub flows: Option<Flows>,
    /// What happened, and the present in milliseconds since 1970; none before the first answer.
    pub events: Option<(Events, u64)>,
    /// Rates.
    pub series: Series,
    /// Since when it does not answer, and why; none: it does.
    pub away: Option<(Duration, String)>,
    /// When the last of this came.
    pub at: Duration,
}

/// Everything that is shown. Nothing is known at first; the command owns it.
#[derive(Debug)]
pub struct Model {
    live: Data,
    /// What was known when it was paused.
    frozen: Option<Data>,
    /// The peer that is shown alone; none: all.
    pub peer: Option<String>,
    /// The table that keys work on.
    pub focus: Table,
    /// The paths' order.
    pub paths: Order,
    /// The flows' order.
    pub flows: Order,
    /// The help is shown.
    pub help: bool,
}

impl Model {
    /// Nothing is known yet.
    pub fn new(peer: Option<String>) -> Self {
        let (paths, flows) = (Order::default(), Order::default());
        Self { live: Data::default(), frozen: None, peer, focus: Table::Flows, paths, flows, help: false }
    }

    /// What is shown of the portal.
    pub fn shown(&self) -> &Data {
        self.frozen.as_ref().unwrap_or(&self.live)
    }

    /// Whether it stands still.
    pub fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// The peers that are shown. One that is gone is waited for.
    pub fn peers(&self) -> impl Iterator<Item = &PeerStatus> {
        let peers = self.shown().status.iter().flat_map(|status| &status.peers);
        peers.filter(|peer| self.peer.as_ref().is_none_or(|chosen| *chosen == peer.name))
    }

    /// Takes in what happened at `now`.
    pub fn update(&mut self, now: Duration, update: Update) -> Next {
        match update {
            Update::Status(answer) => self.on_status(now, *answer),
            Update::Flows(flows) => self.live.flows = Some(flows),
            Update::Events(events, now_unix_ms) => self.live.events = Some((events, now_unix_ms)),
            Update::Deed(deed) => self.on_deed(deed),
            Update::Resized => {}
            Update::End => return Next::End,
        }
        Next::GoOn
    }

    fn on_status(&mut self, now: Duration, answer: Result<Status, String>) {
        let live = &mut self.live;
        live.at = now;
        match answer {
            Ok(status) => {
                live.series.see(&status);
                (live.status, live.away) = (Some(status), None);
            }
            Err(why) => {
                let since = live.away.as_ref().map_or(now, |(since, _)| *since);
                live.away = Some((since, why));
            }
        }
    }

    fn on_deed(&mut self, deed: Deed) {
        let order = match self.focus {
            Table::Paths => &mut self.paths,
            Table::Flows => &mut self.flows,
        };
        match deed {
            Deed::Help => self.help = !self.help,
            Deed::Back => self.help = false,
            Deed::Pause => self.frozen = if self.is_paused() { None } else { Some(self.live.clone()) },
            Deed::NextTable => self.focus = self.focus.next(),
            Deed::Sort(step) => *order = Order { by: stepped(order.by, step, self.focus.keys()), ..Order::default() },
            Deed::Reverse => order.reversed = !order.reversed,
            Deed::Peer(step) => self.choose_peer(step),
            Deed::Scroll(lines) => order.above = order.above.saturating_add_signed(lines),
        }
    }

    /// All of them come before the first.
    fn choose_peer(&mut self, step: isize) {
        let peers: Vec<&str> = self.shown().status.iter().flat_map(|s| &s.peers).map(|p| p.name.as_str()).collect();
        let chosen = self.peer.as_ref().and_then(|name| peers.iter().position(|peer| peer == name));
        let place = stepped(chosen.map_or(0, |place| place + 1), step, peers.len() + 1);
        self.peer = place.checked_sub(1).map(|place| peers[place].to_owned());
    }

    /// Rows that are not there cannot be scrolled to: `rows` of them there are, and `shown` are shown.
    pub fn first(order: Order, rows: usize, shown: usize) -> usize {
        order.above.min(rows.saturating_sub(shown))
    }
}

/// A place this many further on, round and round.
fn stepped(place: usize, step: isize, places: usize) -> usize {
    let places = places.max(1).cast_signed();
    (place.cast_signed() + step).rem_euclid(places).cast_unsigned()
}
