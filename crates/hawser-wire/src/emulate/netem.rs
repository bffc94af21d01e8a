//! A link by the kernel's own means: a veth pair, with netem and tbf at either end.
//!
//! 1. `stages`: what a way's settings are in the kernel's terms, one queueing discipline below the other: netem delays,
//!    loses, duplicates and corrupts; tbf has the rate and its queue, in bytes; pfifo or codel a queue of its own. What
//!    netem cannot do is refused by name, and a discipline that is not needed is not set.
//! 2. `commands`: the words for `tc`.
//! 3. [`Kernel`] runs them, and reads counters back. A kernel without a discipline is told apart here, and only here.

use std::fmt::Write as _;
use std::fs;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde::Deserialize;

use super::counters::Counters;
use super::jitter::Spread;
use super::loss::Loss;
use super::spec::{Direction, Probability, QueueDepth, Rate, Way};
use crate::error::WireError;
use crate::namespace::Namespace;
use crate::netlink::{End, veth};

/// The disciplines that are used, and the modules they are in. Source: linux/net/sched/Kconfig.
const MODULES: [(&str, &str); 4] =
    [("netem", "sch_netem"), ("tbf", "sch_tbf"), ("codel", "sch_codel"), ("pfifo", "built in")];
/// How `tc` says that the kernel lacks a discipline. Source: linux/net/sched/sch_api.c.
const UNKNOWN: &str = "kind is unknown";

/// The interfaces of the calling thread's namespace.
const INTERFACES: &str = "/proc/thread-self/net/dev";
/// Bytes of Ethernet that the kernel counts with each packet.
const ETHERNET: i64 = 14;
/// A full packet with them.
const FULL: u64 = 1500 + ETHERNET.unsigned_abs();
/// What tbf sends at once at most: two packets, or so much time of its rate. Source: tc-tbf(8), for a timer of 1000 Hz.
const BURST: Duration = Duration::from_millis(1);
const BURST_PACKETS: u64 = 2;
/// What tbf holds where its packets are counted by another.
const ENOUGH_BYTES: u64 = 1 << 30;
/// The smallest packets whose flight netem shall hold, and how many it holds in any case.
const SMALL: u64 = 64;
const FLIGHT_PACKETS: u64 = 100_000;
/// A jitter lies within this many amplitudes: netem's table of the normal distribution ends there. Source: iproute2,
/// netem/normal.c.
const SIGMAS: u32 = 4;

/// A queueing discipline with its settings. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stage {
    discipline: &'static str,
    /// Before its name: how packets' sizes are counted.
    sizes: String,
    arguments: String,
}

impl Stage {
    fn new(discipline: &'static str, arguments: String) -> Self {
        Self { discipline, sizes: String::new(), arguments }
    }

    /// What a change does not undo: the discipline, and what netem keeps unless it is told anew (sch_netem.c,
    /// `netem_change`).
    fn kept(&self) -> (&'static str, [bool; 2]) {
        (self.discipline, ["distribution", "corrupt"].map(|word| self.arguments.contains(word)))
    }
}

/// Step 1; what cannot be had is said.
fn stages(way: &Direction, black_hole: bool) -> Result<Vec<Stage>, &'static str> {
    let refused = [
        (way.trace.is_some(), "netem replays no trace"),
        (way.medium.is_some(), "netem knows no shared medium"),
        (way.random_drop, "tbf drops the packet that comes, not any"),
        (way.reorder.is_some(), "netem holds no packets back: it sends some at once"),
        (way.jitter.is_some_and(|jitter| !jitter.reorder), "netem's jitter reorders"),
        (way.longest.is_some(), "netem lets packets of any length pass"),
        (way.codel.is_some() && way.rate.is_none(), "codel needs a rate to wait for"),
    ];
    if let Some((_, reason)) = refused.into_iter().find(|(is_so, _)| *is_so) {
        return Err(reason);
    }
    let mut stages: Vec<Stage> = netem(way, black_hole).into_iter().collect();
    if let Some(rate) = way.rate {
        stages.extend(queue(way, rate));
    }
    Ok(stages)
}

/// What netem is told; None where it has nothing to do.
fn netem(way: &Direction, black_hole: bool) -> Option<Stage> {
    let mut words = String::new();
    let mut say = |text: std::fmt::Arguments<'_>| words.write_fmt(text).expect("a string takes all");
    if !way.delay.is_zero() || way.jitter.is_some() {
        say(format_args!(" delay {}us", way.delay.as_micros()));
    }
    if let Some(jitter) = way.jitter {
        say(format_args!(" {}us", jitter.amplitude.as_micros()));
        if jitter.spread == Spread::Normal {
            say(format_args!(" distribution normal"));
        }
    }
    match (black_hole, way.loss) {
        (true, _) => say(format_args!(" loss random 100%")),
        (false, Loss::None) => {}
        (false, Loss::Random(share)) => say(format_args!(" loss random {}", percent(share))),
        (false, Loss::Bursts(model)) => say(format_args!(
            " loss gemodel {} {} {} {}",
            percent(model.to_bad),
            percent(model.to_good),
            percent(model.lost_in_bad),
            percent(model.lost_in_good)
        )),
    }
    if way.duplicate > Probability::NEVER {
        say(format_args!(" duplicate {}", percent(way.duplicate)));
    }
    if way.corrupt > Probability::NEVER {
        say(format_args!(" corrupt {}", percent(way.corrupt)));
    }
    let most = way.delay + way.jitter.map_or(Duration::ZERO, |jitter| jitter.amplitude * SIGMAS);
    let flight = way.rate.map_or(0, |rate| rate.bytes_in(most) / SMALL) + FLIGHT_PACKETS;
    (!words.is_empty()).then(|| Stage::new("netem", format!("limit {flight}{words}")))
}

/// The rate, and what waits for it.
fn queue(way: &Direction, rate: Rate) -> Vec<Stage> {
    let burst = rate.bytes_in(BURST).max(BURST_PACKETS * FULL);
    let tbf = |limit| {
        let overhead = i64::from(way.overhead) - ETHERNET;
        let sizes = if overhead == 0 { String::new() } else { format!("stab overhead {overhead} ") };
        let arguments = format!("rate {}bit burst {burst} limit {limit}", rate.bits_per_second());
        Stage { sizes, ..Stage::new("tbf", arguments) }
    };
    let bytes = match way.queue {
        QueueDepth::Bytes(bytes) => Ok(bytes.max(FULL)),
        QueueDepth::Time(time) => Ok(rate.bytes_in(time).max(FULL)),
        QueueDepth::Packets(packets) => Err(u64::from(packets.max(1))),
    };
    match (bytes, way.codel) {
        (Ok(bytes), None) => vec![tbf(bytes)],
        (Err(packets), None) => vec![tbf(ENOUGH_BYTES), Stage::new("pfifo", format!("limit {packets}"))],
        (bytes, Some(codel)) => {
            let packets = bytes.map_or_else(|packets| packets, |bytes| bytes.div_ceil(FULL));
            let [target, interval] = [codel.target, codel.interval].map(|time| time.as_micros());
            let arguments = format!("limit {packets} target {target}us interval {interval}us noecn");
            vec![tbf(ENOUGH_BYTES), Stage::new("codel", arguments)]
        }
    }
}

fn percent(share: Probability) -> String {
    format!("{:.5}%", share.get() * 100.0)
}

/// Step 2: a line for each discipline, from the outermost inwards.
fn commands(interface: &str, verb: &str, stages: &[Stage]) -> Vec<String> {
    let line = |(number, stage): (usize, &Stage)| {
        let place = if number == 0 { "root".to_owned() } else { format!("parent {number}:1") };
        let Stage { discipline, sizes, arguments } = stage;
        format!("qdisc {verb} dev {interface} {place} handle {}: {sizes}{discipline} {arguments}", number + 1)
    };
    stages.iter().enumerate().map(line).collect()
}

/// Step 3: whether this kernel has a discipline, tried out in a namespace of its own.
pub(crate) fn available(discipline: &'static str, arguments: &str) -> Result<(), WireError> {
    let namespace = Namespace::new("feature")?;
    tc(&namespace, &format!("qdisc add dev lo root {discipline} {arguments}"), discipline)
}

/// Runs `tc` in a namespace.
fn tc(namespace: &Namespace, words: &str, discipline: &'static str) -> Result<(), WireError> {
    let output = namespace.command("tc").args(words.split_whitespace()).output();
    let output = output.map_err(|error| WireError::system("start tc (package iproute2)", error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.contains(UNKNOWN) {
        let module = MODULES.iter().find(|(known, _)| *known == discipline).map_or("unknown", |(_, module)| module);
        return Err(WireError::NoDiscipline { discipline, module, said });
    }
    Err(WireError::Tc { command: format!("tc {words}"), said })
}

/// The kernel's disciplines on both ends of a veth pair. They start as told, and vanish with the pair on drop.
/// May be used from any thread.
#[derive(Debug)]
pub(crate) struct Kernel {
    ends: [End; 2],
    set: Mutex<[Set; 2]>,
}

/// What is set at one end. Starts with nothing. Plain data.
#[derive(Clone, Debug, Default)]
struct Set {
    stages: Vec<Stage>,
    black_hole: bool,
}

impl Kernel {
    /// A veth pair with every packet its own, and each way's disciplines.
    pub(crate) fn new(name: &str, ends: [End; 2], mtu: u32, settings: &[Direction; 2]) -> Result<Self, WireError> {
        for way in settings {
            stages(way, false).map_err(|reason| WireError::Unfit { link: name.to_owned(), reason })?;
        }
        veth(&ends[0], &ends[1], mtu)?;
        let kernel = Self { ends, set: Mutex::default() };
        for (way, settings) in Way::BOTH.into_iter().zip(settings) {
            let end = &kernel.ends[way.index()];
            end.namespace.set_plain_packets(&end.interface)?;
            kernel.set(name, way, settings)?;
        }
        Ok(kernel)
    }

    /// Changes one way. Where other disciplines are needed than before, what waits is lost.
    pub(crate) fn set(&self, name: &str, way: Way, settings: &Direction) -> Result<(), WireError> {
        let set = &mut self.lock()[way.index()];
        let wanted =
            stages(settings, set.black_hole).map_err(|reason| WireError::Unfit { link: name.to_owned(), reason })?;
        self.carry_out(way, set, wanted)
    }

    /// Lets one way's packets vanish, or no longer.
    pub(crate) fn black_hole(&self, way: Way, settings: &Direction, on: bool) -> Result<(), WireError> {
        let set = &mut self.lock()[way.index()];
        if set.black_hole == on {
            return Ok(());
        }
        // Settings that once fitted still do.
        let wanted = stages(settings, on).unwrap_or_default();
        self.carry_out(way, set, wanted)?;
        set.black_hole = on;
        Ok(())
    }

    fn carry_out(&self, way: Way, set: &mut Set, wanted: Vec<Stage>) -> Result<(), WireError> {
        let End { namespace, interface, .. } = &self.ends[way.index()];
        let same = set.stages.iter().map(Stage::kept).eq(wanted.iter().map(Stage::kept));
        if !same && !set.stages.is_empty() {
            tc(namespace, &format!("qdisc del dev {interface} root"), set.stages[0].discipline)?;
            set.stages.clear();
        }
        let verb = if same { "change" } else { "add" };
        for (words, stage) in commands(interface, verb, &wanted).iter().zip(&wanted) {
            tc(namespace, words, stage.discipline)?;
        }
        set.stages = wanted;
        Ok(())
    }

    /// What one way has counted: its disciplines, or without any the interface.
    pub(crate) fn counters(&self, way: Way) -> Counters {
        let end = &self.ends[way.index()];
        if self.lock()[way.index()].stages.is_empty() {
            return end.sent();
        }
        let output = end.namespace.command("tc").args(["-s", "-j", "qdisc", "show", "dev", &end.interface]).output();
        output.ok().and_then(|output| counters(&output.stdout)).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, [Set; 2]> {
        self.set.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // The namespace may be gone, and the pair with it.
        let _ = self.ends[0].namespace.delete_interface(&self.ends[0].interface);
    }
}

impl End {
    /// What its interface has sent, which the other end of a veth has received: packets and their IP bytes alone.
    /// Nothing where the interface is gone.
    #[must_use]
    pub fn sent(&self) -> Counters {
        let shown = self.namespace.run(|| fs::read_to_string(INTERFACES));
        shown.ok().and_then(Result::ok).and_then(|text| of_interface(&text, &self.interface)).unwrap_or_default()
    }
}

/// What an interface has sent, by its line of `/proc/net/dev`: bytes and packets are its ninth and tenth number.
/// Source: proc(5).
fn of_interface(text: &str, interface: &str) -> Option<Counters> {
    const SENT: usize = 8;
    let named = |line: &str| Some(line.trim_start().strip_prefix(interface)?.strip_prefix(':')?.to_owned());
    let line = text.lines().find_map(named)?;
    let mut numbers = line.split_whitespace().skip(SENT).map_while(|word| word.parse::<u64>().ok());
    let (bytes, packets) = (numbers.next()?, numbers.next()?);
    let bytes = bytes.saturating_sub(packets * ETHERNET.unsigned_abs());
    Some(Counters {
        packets_in: packets,
        bytes_in: bytes,
        packets_out: packets,
        bytes_out: bytes,
        ..Counters::default()
    })
}

/// A line of `tc -s -j qdisc show`. Plain data.
#[derive(Deserialize)]
struct Shown {
    kind: String,
    bytes: u64,
    packets: u64,
    drops: u64,
    backlog: u64,
    qlen: u64,
}

/// Counters in what `tc` shows: the first discipline is the outermost; what those below it drop counts there too. Bytes
/// are those of IP.
fn counters(json: &[u8]) -> Option<Counters> {
    let shown: Vec<Shown> = serde_json::from_slice(json).ok()?;
    let first = shown.first()?;
    let dropped = |kind: &str| shown.iter().find(|shown| shown.kind == kind).map_or(0, |shown| shown.drops);
    let dropped_by_codel = dropped("codel");
    let by_queue = dropped("tbf").max(dropped("pfifo")).max(dropped_by_codel) - dropped_by_codel;
    let queue = shown.last().filter(|last| last.kind != "netem");
    let (queue_packets, queued) = queue.map_or((0, 0), |queue| (queue.qlen, queue.backlog));
    let ethernet = |packets: u64| packets * ETHERNET.unsigned_abs();
    Some(Counters {
        packets_in: first.packets + first.drops + first.qlen,
        packets_out: first.packets,
        bytes_out: first.bytes.saturating_sub(ethernet(first.packets)),
        dropped_by_queue: by_queue,
        dropped_by_codel,
        lost: dropped("netem").saturating_sub(by_queue + dropped_by_codel),
        queue_packets,
        queue_bytes: queued.saturating_sub(ethernet(queue_packets)),
        ..Counters::default()
    })
}

#[cfg(test)]
mod tests;
