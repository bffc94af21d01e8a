//! What the contender's programs cost, and the machine meanwhile: processor time, context switches, memory, between two
//! looks.
//!
//! 1. Before the workload: memory while idle. 2. As its costs begin to count, and 3. at its end: processor time.
//!
//! The kernel's share of forwarding (softirqs, the hosts' TCP) shows in the machine's time alone. What processes that
//! take no part do meanwhile is taken off, and told.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use hawser_wire::Moment;
use hawser_wire::traffic::ProcessUsage;

use super::links::PERCENT;
use super::processors::{busy, others};
use crate::contender::Program;
use crate::experiment::Findings;

/// Bytes in a gigabyte, and in a mebibyte.
const GIGA: f64 = 1e9;
const MEBI: f64 = 1024.0 * 1024.0;
/// By how much a process's times in ticks may differ from what its threads ran: two counts between two looks, 10 ms
/// each.
const TICKS: Duration = Duration::from_millis(40);

/// Programs, with the bytes of their executable files, and the looks at them so far. Starts with the first look; one
/// owner.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    programs: Vec<(Program, Option<u64>)>,
    looks: Vec<Look>,
}

/// Programs and the machine at a moment. Plain data.
#[derive(Clone, Debug)]
struct Look {
    at: Moment,
    /// Of each program; none of one that is gone.
    usages: Vec<Option<ProcessUsage>>,
    /// Processor time so far: of the whole machine, and of processes that take no part.
    machine: Option<[Duration; 2]>,
}

impl Meter {
    /// Step 1.
    pub fn of(programs: &[Program]) -> Self {
        let programs = programs.iter().map(|program| (program.clone(), bytes(program))).collect();
        let mut meter = Self { programs, looks: Vec::new() };
        meter.look();
        meter
    }

    /// Step 2, where it is not done.
    pub fn begin(&mut self) {
        if self.looks.len() == 1 {
            self.look();
        }
    }

    /// Step 3.
    pub fn finish(mut self) -> Self {
        self.begin();
        self.look();
        self
    }

    fn look(&mut self) {
        let ids: Vec<u32> = self.programs.iter().map(|(program, _)| id(program)).collect();
        let usages = ids.iter().map(|&id| ProcessUsage::of(id).ok()).collect();
        let machine = busy().and_then(|busy| Some([busy, others(&ids)?]));
        self.looks.push(Look { at: Moment::now(), usages, machine });
    }

    /// Figures once it is finished, where the application got this many bytes meanwhile. A program that has ended is
    /// left out: what it cost can no longer be told.
    pub fn findings(&self, application_bytes: Option<f64>) -> Findings {
        let [idle, before, after] = self.looks.as_slice() else { return Findings::default() };
        let (gigabytes, time) = (application_bytes.map(|bytes| bytes / GIGA), (after.at - before.at).as_secs_f64());
        let mut metrics: BTreeMap<String, f64> = BTreeMap::new();
        let mut memory: [Option<u64>; 4] = [None; 4];
        for (place, (Program { role, .. }, bytes)) in self.programs.iter().enumerate() {
            let looks = [idle, before, after].map(|look| look.usages[place]);
            let [Some(idle), Some(before), Some(after)] = looks else { continue };
            let mut add = |name: &str, value: f64| *metrics.entry(name.to_owned()).or_default() += value;
            let (spent, share) = (spent(&before, &after), user_share(&before, &after));
            if let Some(gigabytes) = gigabytes {
                add(&format!("cpu_{role}_s_per_gb"), spent / gigabytes);
                add("cpu_s_per_gb", spent / gigabytes);
            }
            if time > 0.0 {
                add(&format!("cpu_{role}_percent"), spent / time * PERCENT);
            }
            add("cpu_user_s", spent * share);
            add("cpu_system_s", spent * (1.0 - share));
            add("context_switches", after.switches.saturating_sub(before.switches) as f64);
            let own = [Some(idle.resident), Some(after.resident), Some(after.resident_most), *bytes];
            memory = std::array::from_fn(|of| memory[of].max(own[of]));
        }
        let of = |name: &str| metrics.get(name).copied().unwrap_or_default();
        let (user, all) = (of("cpu_user_s"), of("cpu_user_s") + of("cpu_system_s"));
        let [own, others] = machine(before, after).map_or([None; 2], |both| both.map(Some));
        let names = ["memory_idle_mib", "memory_mib", "memory_most_mib", "program_mib"];
        let memory = memory.map(|bytes| bytes.map(|bytes| bytes as f64 / MEBI));
        let figures = names.into_iter().zip(memory).chain([
            ("cpu_user_percent", (all > 0.0).then(|| user / all * PERCENT)),
            ("machine_s_per_gb", own.zip(gigabytes).map(|(own, gigabytes)| own / gigabytes)),
            ("others_processors", others.filter(|_| time > 0.0).map(|others| others / time)),
        ]);
        metrics.extend(figures.filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Findings { metrics, ..Findings::default() }
    }
}

/// Seconds of processor time: to the nanosecond, unless threads that ended meanwhile took theirs along.
fn spent(before: &ProcessUsage, after: &ProcessUsage) -> f64 {
    let ticks = after.cpu.saturating_sub(before.cpu);
    let ran = after.ran.checked_sub(before.ran).filter(|ran| ran.abs_diff(ticks) <= TICKS);
    ran.unwrap_or(ticks).as_secs_f64()
}

/// The part of it in user space.
fn user_share(before: &ProcessUsage, after: &ProcessUsage) -> f64 {
    let (user, all) = (after.user.saturating_sub(before.user), after.cpu.saturating_sub(before.cpu));
    if all.is_zero() { 0.0 } else { user.as_secs_f64() / all.as_secs_f64() }
}

/// Seconds of the machine but for others, and of others.
fn machine(before: &Look, after: &Look) -> Option<[f64; 2]> {
    let (before, after) = before.machine.zip(after.machine)?;
    let [all, others] = [0, 1].map(|of| after[of].saturating_sub(before[of]));
    Some([all.saturating_sub(others), others].map(|time| time.as_secs_f64()))
}

fn id(program: &Program) -> u32 {
    program.pid.as_raw_pid().cast_unsigned()
}

fn bytes(program: &Program) -> Option<u64> {
    fs::metadata(format!("/proc/{}/exe", id(program))).ok().map(|file| file.len())
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, getpid};

    use super::*;

    #[test]
    fn programs_of_a_role_are_added_up_and_gone_ones_left_out() {
        let program = |role, pid| Program { role, pid };
        let gone = Pid::from_raw(i32::MAX).expect("a number that no process has");
        let own = [program("local", getpid()), program("remote", getpid()), program("remote", gone)];
        let mut meter = Meter::of(&own);
        meter.begin();
        burn(&own[0], 3 * TICKS);
        let mut meter = meter.finish();
        meter.looks[2].at = meter.looks[1].at + Duration::from_secs(2);
        let metrics = meter.findings(Some(2.0 * GIGA)).metrics;
        let all = metrics["cpu_user_s"] + metrics["cpu_system_s"];
        assert!(all > 0.0, "{metrics:?}");
        let by_role = metrics["cpu_local_s_per_gb"] + metrics["cpu_remote_s_per_gb"];
        assert!((2.0 * by_role - all).abs() < 0.05, "{metrics:?}");
        let percent = metrics["cpu_local_percent"] + metrics["cpu_remote_percent"];
        assert!((percent - by_role * PERCENT).abs() < 1e-6, "two seconds, and two gigabytes: {metrics:?}");
        assert!((metrics["cpu_user_percent"] - metrics["cpu_user_s"] / all * PERCENT).abs() < 1e-6, "{metrics:?}");
        assert!(metrics.contains_key("context_switches"));
        assert!((metrics["cpu_s_per_gb"] - by_role).abs() < 1e-9, "{metrics:?}");
        assert!(metrics["memory_most_mib"] >= metrics["memory_idle_mib"], "{metrics:?}");
        assert!(metrics["program_mib"] > 0.1, "{metrics:?}");
        // The kernel counts the machine's time in ticks, and others' exactly: beside others nothing may be left in so
        // short a time.
        assert!(metrics.contains_key("machine_s_per_gb"), "{metrics:?}");
        assert!(!meter.findings(None).metrics.contains_key("cpu_local_s_per_gb"), "nothing was got");
        assert!(Meter::default().findings(Some(1.0)).metrics.is_empty());
    }

    /// Spins until the program has cost so much: on a busy machine that takes longer than the time itself.
    fn burn(program: &Program, cost: Duration) {
        let spent = || ProcessUsage::of(id(program)).expect("it runs").cpu;
        let enough = spent() + cost;
        while spent() < enough {}
    }

    #[test]
    fn time_is_told_to_the_nanosecond_unless_threads_took_theirs_along() {
        let own = ProcessUsage::of(std::process::id()).expect("it runs");
        let ms = Duration::from_millis;
        let of = |cpu, ran| ProcessUsage { cpu, ran, ..own };
        let before = of(ms(100), ms(105));
        let table =
            [(ms(190), ms(201), 0.096), (ms(300), ms(201), 0.2), (ms(100), ms(105), 0.0), (ms(120), ms(90), 0.02)];
        for (ticks, ran, expected) in table {
            let seconds = spent(&before, &of(ticks, ran));
            assert!((seconds - expected).abs() < 1e-9, "{ticks:?} {ran:?}: {seconds}");
        }
    }
}
