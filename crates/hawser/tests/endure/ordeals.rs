//! One thing that goes wrong for long, or again and again, under traffic: portals that are stopped, frozen, killed; a
//! link that flaps; clocks that jump.
//!
//! 1. [`Ordeal::begin`] has two portals with flows both ways, and knows how hosts and processes looked before.
//! 2. [`Ordeal::suffer`] does what the case does; then every flow must be back in its time, at nine tenths of its rate.
//! 3. [`Ordeal::end`] ends the portals, looks what they left behind, and gives the figures.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_portal::api::PathState;
use hawser_wire::Moment;
use serde_json::{Value, json};

use crate::census::Process;
use crate::faults::{Field, NAMES};
use crate::flows::{Flows, Tcp, Udp, lock};
use crate::lab::{LOCAL, REMOTE, ms, parse, states};

/// Each stream's rate, in Mbit/s, and the share of it that must flow again.
const STREAM_MBPS: u64 = 20;
const GOODPUT: f64 = 0.9;
/// How soon every flow must be back, and when it is given up.
const BACK: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(40);
/// Traffic before, and how long its rate is looked at after.
const PEACE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(3);
/// What a process may have more of memory than before, KiB: buffers grow once, and stay.
const GROWN_KIB: u64 = 8 << 10;
/// How often processes are looked at for one figure.
const LOOKS: usize = 10;

pub struct Ordeal {
    pub field: Field,
    pub flows: Flows,
    case: String,
    /// How long a portal is not there at a time: a stream's sender, which doubles its timeout meanwhile (RFC 6298
    /// section 5.5), may sleep for as long again.
    pub gone: Duration,
    processes: [Option<Process>; 2],
    begun: Moment,
    pub misses: Vec<String>,
    found: Value,
}

impl Ordeal {
    /// Step 1; `by` are programs that become the portals.
    pub fn begin(case: &str, by: [&[&str]; 2]) -> Self {
        let field = Field::by("ordeal", "", by);
        field.portals[0].wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
        let flows = Flows::start(&field.lab, STREAM_MBPS);
        std::thread::sleep(PEACE);
        let processes = settled(&field);
        let (case, begun) = (case.to_owned(), Moment::now());
        let gone = Duration::ZERO;
        Self { field, flows, case, gone, processes, begun, misses: Vec::new(), found: json!({}) }
    }

    /// Step 2: `act` gives the moment from which on nothing was wrong any more.
    pub fn suffer(&mut self, act: impl FnOnce(&mut Self) -> Moment) {
        self.begun = Moment::now();
        let mended = act(self);
        let back = self.flows.back_after(mended, PATIENCE);
        std::thread::sleep(ms(1_000));
        let bytes = || [0, 1].map(|way| lock(&self.flows.tcp[way].heard).bytes);
        let (from, before) = (Moment::now(), bytes());
        std::thread::sleep(AFTER);
        let (span, after) = ((Moment::now() - from).as_secs_f64(), bytes());
        let share = [0, 1].map(|way| (after[way] - before[way]) as f64 * 8e-6 / span / STREAM_MBPS as f64);
        let gaps = self.flows.heard().map(|heard| heard.longest(self.begun, Moment::now()).as_millis() as u64);
        for (number, (name, back)) in Flows::NAMES.iter().zip(back).enumerate() {
            let limit = if number < 2 { BACK } else { BACK + self.gone };
            if back.is_none_or(|back| back > limit) {
                self.misses.push(format!("{}: {name} back after {back:?}", self.case));
            }
        }
        if share.iter().any(|share| *share < GOODPUT) {
            self.misses.push(format!("{}: streams have {share:?} of their rate", self.case));
        }
        let took = mended - self.begun;
        self.found["took_ms"] = json!(took.as_millis() as u64);
        self.found["flows"] = json!(Flows::NAMES);
        self.found["back_ms"] = json!(back.map(|back| back.map(|back| back.as_millis() as u64)));
        self.found["longest_gap_ms"] = json!(gaps);
        self.found["goodput_share_after"] = json!(share);
    }

    /// What the case itself has to say.
    pub fn note(&mut self, name: &str, value: impl serde::Serialize) {
        self.found[name] = json!(value);
    }

    pub fn miss(&mut self, said: String) {
        self.misses.push(format!("{}: {said}", self.case));
    }

    /// Step 3.
    pub fn end(mut self, misses: &mut Vec<String>) -> Value {
        let now = settled(&self.field);
        for (number, (before, now)) in self.processes.iter().zip(&now).enumerate() {
            let (Some(before), Some(now)) = (before, now) else { continue };
            let same = before.threads == now.threads && before.descriptors == now.descriptors;
            if !same || now.rss_kib > before.rss_kib + GROWN_KIB {
                self.misses.push(format!("{}: {} was {before:?}, is {now:?}", self.case, NAMES[number]));
            }
        }
        let udp = [0, 1].map(|way| self.flows.udp[way].lost(self.begun, Moment::now() - ms(1_000)));
        let wrong: Vec<String> = self.flows.heard().iter().filter_map(|heard| heard.wrong.clone()).collect();
        self.misses.extend(wrong.iter().map(|wrong| format!("{}: {wrong}", self.case)));
        let (field, processes) = (self.field, self.processes);
        drop(self.flows);
        let left = field.end();
        self.misses.extend(left.iter().map(|left| format!("{}: left behind: {left}", self.case)));
        let mut found = self.found;
        found["case"] = json!(self.case);
        found["udp"] = json!(udp);
        found["processes"] = json!({ "before": processes, "after": now });
        found["left_behind"] = json!(left);
        found["misses"] = json!(self.misses);
        self.misses.iter().for_each(|miss| eprintln!("{miss}"));
        misses.extend(self.misses);
        found
    }
}

/// Both processes, with the fewest descriptors of some looks: libfaketime opens its file each time that a clock is read,
/// and what is left behind is there at every look.
fn settled(field: &Field) -> [Option<Process>; 2] {
    let mut found = field.processes();
    for _ in 1..LOOKS {
        std::thread::sleep(ms(50));
        for (found, now) in found.iter_mut().zip(field.processes()) {
            let fewest = found.map(|found| found.descriptors);
            *found = now.map(|now| Process {
                descriptors: fewest.map_or(now.descriptors, |it| it.min(now.descriptors)),
                ..now
            });
        }
    }
    found
}

impl Flows {
    /// Numbered datagrams and a stream each way.
    pub fn start(lab: &crate::lab::Lab, mbps: u64) -> Self {
        let ways = [(&lab.local, &lab.remote, REMOTE), (&lab.remote, &lab.local, LOCAL)];
        let at = |address: &str, port| SocketAddr::new(parse(address), port);
        let udp = ways.map(|(from, to, address)| Udp::start(from, to, at(address, 6_001)));
        let tcp = ways.map(|(from, to, address)| Tcp::start(from, to, at(address, 6_002), mbps));
        Self { udp, tcp }
    }
}
