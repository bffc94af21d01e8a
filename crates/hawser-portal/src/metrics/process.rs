//! What the portal's process uses, under the names that every Prometheus client has.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads, in seconds.
pub fn cpu_seconds() -> f64 {
    const NANOS: f64 = 1e-9;
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * NANOS
}

/// Resident memory in bytes (VmRSS of proc_pid_status(5), in KiB). None where /proc is not mounted.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_time_and_memory() {
        let before = cpu_seconds();
        let memory = std::hint::black_box(vec![1u8; 16 << 20]);
        assert!(resident_bytes().expect("/proc is mounted") >= memory.len() as u64);
        assert!(cpu_seconds() > before);
    }
}
