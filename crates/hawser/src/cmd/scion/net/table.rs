//! A SCION network's status as tables.

use std::fmt::Write as _;

use hawser_lab::localnet::{LinkStatus, ProcessStatus, Status, WayStatus};

/// A megabyte, in bytes.
const MEGABYTE: f64 = 1e6;

/// All of it: programs, hosts, processes, paths, links; then what processes complained of.
pub fn of(status: &Status) -> String {
    let Status { name, up_s, memory_bytes, cpu_s, .. } = status;
    let whole = match (&status.ready_s, &status.fault) {
        (Some(seconds), _) => format!("whole after {seconds:.1} s"),
        (None, Some(fault)) => format!("not whole: {fault}"),
        (None, None) => "not whole yet".to_owned(),
    };
    let mut text = format!(
        "{name}: up for {up_s:.0} s, {whole}; {} MB, {cpu_s:.1} s of processor time\n",
        megabytes(*memory_bytes)
    );
    let _ = writeln!(text, "programs: {}", status.programs.display());
    hosts(status, &mut text);
    let processes = || status.ases.iter().flat_map(|one| &one.processes);
    rows(&mut text, &["AS", "process", "pid", "MB", "cpu s", "errors"], processes().map(process));
    let paths = status.paths.iter().map(|pair| {
        let count = pair.fault.clone().unwrap_or_else(|| pair.paths.len().to_string());
        vec![pair.from.clone(), pair.to.clone(), count]
    });
    rows(&mut text, &["from", "to", "paths"], paths);
    rows(
        &mut text,
        &["link", "kind", "state", "from", "to", "emulated", "packets", "back", "lost"],
        status.links.iter().map(link),
    );
    for ProcessStatus { isd_as, role, log, .. } in processes().filter(|process| !process.log.is_empty()) {
        let _ = write!(text, "\n{isd_as} {role} says:\n");
        log.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

fn hosts(status: &Status, text: &mut String) {
    let row = |isd_as: &str, host: &hawser_lab::localnet::HostStatus| {
        let address = format!("{isd_as},{}", host.address);
        vec![address, host.daemon.clone(), host.namespace.clone()]
    };
    let all = status.ases.iter().flat_map(|one| one.hosts.iter().map(move |host| row(&one.isd_as, host)));
    rows(text, &["host", "daemon", "namespace"], all);
}

fn process(process: &ProcessStatus) -> Vec<String> {
    let pid = if process.running { process.pid.to_string() } else { "ended".to_owned() };
    let memory = megabytes(process.memory_bytes).to_string();
    let cpu = format!("{:.1}", process.cpu_s);
    vec![process.isd_as.clone(), process.role.clone(), pid, memory, cpu, process.errors.to_string()]
}

fn link(link: &LinkStatus) -> Vec<String> {
    let emulated = link.emulated.as_ref().map_or_else(
        || "no".to_owned(),
        |way| {
            let rate = way.rate_mbps.map(|rate| format!("{rate} Mbit/s, ")).unwrap_or_default();
            format!("{rate}{} ms", way.delay_ms)
        },
    );
    let lost = |way: &WayStatus| way.dropped + way.lost;
    vec![
        link.name.clone(),
        link.kind.clone(),
        link.state.clone(),
        link.a.clone(),
        link.b.clone(),
        emulated,
        link.a_to_b.packets.to_string(),
        link.b_to_a.packets.to_string(),
        (lost(&link.a_to_b) + lost(&link.b_to_a)).to_string(),
    ]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "for reading")]
fn megabytes(bytes: u64) -> u64 {
    (bytes as f64 / MEGABYTE).round() as u64
}

/// A table with a line before it; nothing where there is no row.
fn rows(text: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut all: Vec<Vec<String>> = vec![head.iter().map(|&title| title.to_owned()).collect()];
    all.extend(rows);
    if all.len() == 1 {
        return;
    }
    let wide: Vec<usize> =
        (0..head.len()).map(|column| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    text.push('\n');
    for row in all {
        let line: String = row.iter().zip(&wide).map(|(cell, wide)| format!("{cell:<wide$}  ")).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
