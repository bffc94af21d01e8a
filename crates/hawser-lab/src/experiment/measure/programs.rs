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

/// Programs, and what was seen of them so far. Starts with a look at their memory; one owner.
#[derive(Clone, Debug)]
pub struct Meter {
    programs: Vec<(Program, ProcessUsage)>,
    begun: Option<Begun>,
}

/// The first look that counts. Plain data.
#[derive(Clone, Debug)]
struct Begun {
    at: Moment,
    usages: Vec<Option<ProcessUsage>>,
    machine: Option<[Duration; 2]>,
}

/// What programs and the machine cost. None by default; plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    time: Duration,
    programs: Vec<Cost>,
    /// Of the machine but for others, and of others.
    machine: Option<[Duration; 2]>,
}

/// What a program cost. Plain data.
#[derive(Clone, Debug, PartialEq)]
struct Cost {
    role: &'static str,
    idle: ProcessUsage,
    before: ProcessUsage,
    after: ProcessUsage,
    /// Of its executable file.
    bytes: Option<u64>,
}

impl Meter {
    /// Step 1; programs that are gone are left out.
    pub fn of(programs: &[Program]) -> Self {
        let look = |program: &Program| Some((program.clone(), usage(program)?));
        Self { programs: programs.iter().filter_map(look).collect(), begun: None }
    }

    /// Step 2, where it is not done.
    pub fn begin(&mut self) {
        if self.begun.is_none() {
            let usages = self.programs.iter().map(|(program, _)| usage(program)).collect();
            self.begun = Some(Begun { at: Moment::now(), usages, machine: self.spent() });
        }
    }

    /// Step 3. A program that has ended meanwhile is left out: what it cost can no longer be told.
    pub fn finish(mut self) -> Costs {
        self.begin();
        let machine = self.spent();
        let Some(Begun { at, usages, machine: before }) = self.begun else { return Costs::default() };
        let cost = |((program, idle), before): ((Program, ProcessUsage), Option<ProcessUsage>)| {
            let (before, after, bytes) = (before?, usage(&program)?, bytes(&program));
            Some(Cost { role: program.role, idle, before, after, bytes })
        };
        let machine = before.zip(machine).map(|(before, after)| {
            let [all, others] = [0, 1].map(|of| after[of].saturating_sub(before[of]));
            [all.saturating_sub(others), others]
        });
        let programs = self.programs.into_iter().zip(usages).filter_map(cost).collect();
        Costs { time: Moment::now() - at, programs, machine }
    }

    /// Processor time so far: of the whole machine, and of processes that take no part.
    fn spent(&self) -> Option<[Duration; 2]> {
        let ids: Vec<u32> = self.programs.iter().map(|(program, _)| id(program)).collect();
        Some([busy()?, others(&ids)?])
    }
}

impl Costs {
    /// Figures, where the application got this many bytes meanwhile.
    pub fn findings(&self, application_bytes: Option<f64>) -> Findings {
        let (gigabytes, time) = (application_bytes.map(|bytes| bytes / GIGA), self.time.as_secs_f64());
        let mut metrics: BTreeMap<String, f64> = BTreeMap::new();
        for cost in &self.programs {
            let mut add = |name: &str, value: f64| *metrics.entry(name.to_owned()).or_default() += value;
            let (spent, share) = (cost.spent(), cost.share());
            if let Some(gigabytes) = gigabytes {
                add(&format!("cpu_{}_s_per_gb", cost.role), spent / gigabytes);
                add("cpu_s_per_gb", spent / gigabytes);
            }
            if time > 0.0 {
                add(&format!("cpu_{}_percent", cost.role), spent / time * PERCENT);
            }
            add("cpu_user_s", spent * share);
            add("cpu_system_s", spent * (1.0 - share));
            add("context_switches", cost.after.switches.saturating_sub(cost.before.switches) as f64);
        }
        let of = |name: &str| metrics.get(name).copied().unwrap_or_default();
        let (user, all) = (of("cpu_user_s"), of("cpu_user_s") + of("cpu_system_s"));
        let [own, others] = self.machine.map_or([None; 2], |both| both.map(|time| Some(time.as_secs_f64())));
        let figures = [
            ("cpu_user_percent", (all > 0.0).then(|| user / all * PERCENT)),
            ("memory_idle_mib", self.most(|cost| Some(cost.idle.resident))),
            ("memory_mib", self.most(|cost| Some(cost.after.resident))),
            ("memory_most_mib", self.most(|cost| Some(cost.after.resident_most))),
            ("program_mib", self.most(|cost| cost.bytes)),
            ("machine_s_per_gb", own.zip(gigabytes).map(|(own, gigabytes)| own / gigabytes)),
            ("others_processors", others.filter(|_| time > 0.0).map(|others| others / time)),
        ];
        metrics.extend(figures.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Findings { metrics, ..Findings::default() }
    }

    /// Mebibytes of the larger program.
    fn most(&self, of: fn(&Cost) -> Option<u64>) -> Option<f64> {
        Some(self.programs.iter().filter_map(of).max()? as f64 / MEBI)
    }
}

impl Cost {
    /// Seconds of processor time: to the nanosecond, unless threads that ended meanwhile took theirs along.
    fn spent(&self) -> f64 {
        let ticks = self.after.cpu.saturating_sub(self.before.cpu);
        let ran = self.after.ran.checked_sub(self.before.ran).filter(|ran| ran.abs_diff(ticks) <= TICKS);
        ran.unwrap_or(ticks).as_secs_f64()
    }

    /// The part of it in user space.
    fn share(&self) -> f64 {
        let (user, all) =
            (self.after.user.saturating_sub(self.before.user), self.after.cpu.saturating_sub(self.before.cpu));
        if all.is_zero() { 0.0 } else { user.as_secs_f64() / all.as_secs_f64() }
    }
}

fn id(program: &Program) -> u32 {
    program.pid.as_raw_pid().cast_unsigned()
}

fn usage(program: &Program) -> Option<ProcessUsage> {
    ProcessUsage::of(id(program)).ok()
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
        let costs = Costs { time: Duration::from_secs(2), ..meter.finish() };
        let metrics = costs.findings(Some(2.0 * GIGA)).metrics;
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
        assert!(!costs.findings(None).metrics.contains_key("cpu_local_s_per_gb"), "nothing was got");
        assert!(Costs::default().findings(Some(1.0)).metrics.is_empty());
    }

    /// Spins until the program has cost so much: on a busy machine that takes longer than the time itself.
    fn burn(program: &Program, cost: Duration) {
        let spent = || usage(program).expect("it runs").cpu;
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
            let cost = Cost { role: "local", idle: own, before, after: of(ticks, ran), bytes: None };
            let seconds = cost.spent();
            assert!((seconds - expected).abs() < 1e-9, "{ticks:?} {ran:?}: {seconds}");
        }
    }
}
