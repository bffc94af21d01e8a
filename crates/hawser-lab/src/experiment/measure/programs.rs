//! What the contender's programs cost: processor time and context switches, between two looks.

use std::time::Duration;

use hawser_wire::traffic::ProcessUsage;

use crate::contender::Program;
use crate::experiment::Findings;

/// Bytes in a gigabyte.
const GIGA: f64 = 1e9;
/// By how much a process's times in ticks may differ from what its threads ran: two counts between two looks, 10 ms each.
const TICKS: Duration = Duration::from_millis(40);
/// Of a whole.
const PERCENT: f64 = 100.0;

/// Programs and what each had cost at first. Starts with a look; plain data.
#[derive(Clone, Debug)]
pub struct Meter(Vec<(Program, ProcessUsage)>);

impl Meter {
    /// The first look; programs that are gone are left out.
    pub fn start(programs: &[Program]) -> Self {
        let look = |program: &Program| Some((program.clone(), usage(program)?));
        Self(programs.iter().filter_map(look).collect())
    }

    /// The second look, after some time in which the application got this many bytes. A program that has ended meanwhile is left out:
    /// what it cost can no longer be told.
    pub fn finish(&self, time: Duration, application_bytes: Option<f64>) -> Findings {
        let (mut user, mut system) = (0.0, 0.0);
        let mut findings = Findings::default();
        for (program, before) in &self.0 {
            let Some(after) = usage(program) else { continue };
            let mut add = |name: &str, value: f64| *findings.metrics.entry(name.to_owned()).or_default() += value;
            let cpu = cpu(before, &after);
            if let Some(bytes) = application_bytes {
                add(&format!("cpu_{}_s_per_gb", program.role), cpu / (bytes / GIGA));
            }
            if !time.is_zero() {
                add(&format!("cpu_{}_percent", program.role), cpu / time.as_secs_f64() * PERCENT);
            }
            let share = share(after.user.saturating_sub(before.user), after.cpu.saturating_sub(before.cpu));
            user += cpu * share;
            system += cpu * (1.0 - share);
            #[expect(clippy::cast_precision_loss, reason = "switches of one run")]
            add("context_switches", after.switches.saturating_sub(before.switches) as f64);
        }
        if !findings.metrics.is_empty() {
            findings.metrics.insert("cpu_user_s".to_owned(), user);
            findings.metrics.insert("cpu_system_s".to_owned(), system);
        }
        if user + system > 0.0 {
            findings.metrics.insert("cpu_user_percent".to_owned(), user / (user + system) * PERCENT);
        }
        findings
    }
}

/// Seconds of processor time: to the nanosecond, unless threads that ended meanwhile took theirs along.
fn cpu(before: &ProcessUsage, after: &ProcessUsage) -> f64 {
    let ticks = after.cpu.saturating_sub(before.cpu);
    let ran = after.ran.checked_sub(before.ran).filter(|ran| ran.abs_diff(ticks) <= TICKS);
    ran.unwrap_or(ticks).as_secs_f64()
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

fn usage(program: &Program) -> Option<ProcessUsage> {
    ProcessUsage::of(program.pid.as_raw_pid().cast_unsigned()).ok()
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
        let meter = Meter::start(&own);
        burn(&own[0], 3 * TICKS);
        let metrics = meter.finish(Duration::from_secs(2), Some(2.0 * GIGA)).metrics;
        let all = metrics["cpu_user_s"] + metrics["cpu_system_s"];
        assert!(all > 0.0, "{metrics:?}");
        let by_role = metrics["cpu_local_s_per_gb"] + metrics["cpu_remote_s_per_gb"];
        assert!((2.0 * by_role - all).abs() < 0.05, "{metrics:?}");
        let percent = metrics["cpu_local_percent"] + metrics["cpu_remote_percent"];
        assert!((percent - by_role * PERCENT).abs() < 1e-6, "two seconds, and two gigabytes: {metrics:?}");
        assert!((metrics["cpu_user_percent"] - metrics["cpu_user_s"] / all * PERCENT).abs() < 1e-6, "{metrics:?}");
        assert!(metrics.contains_key("context_switches"));
        assert!(
            !meter.finish(Duration::from_secs(2), None).metrics.contains_key("cpu_local_s_per_gb"),
            "nothing was got"
        );
        assert!(Meter::start(&[]).finish(Duration::from_secs(2), None).metrics.is_empty());
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
            let seconds = cpu(&before, &of(ticks, ran));
            assert!((seconds - expected).abs() < 1e-9, "{ticks:?} {ran:?}: {seconds}");
        }
    }
}
