//! Where and with what results were found: kept beside them, so that they can be judged later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::report::saved::git;
use crate::scenario::Scenario;
use crate::text::hex;

/// Kernel settings that matter to what is measured: hosts begin with them, where a case does not say otherwise.
const SYSCTLS: [&str; 12] = [
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_reordering",
    "net/ipv4/tcp_sack",
    "net/mptcp/enabled",
    "net/mptcp/scheduler",
];
/// Programs of contenders and workloads, by their kind, and how they are asked for their version.
const PROGRAMS: [(&str, &[&str]); 8] = [
    // Into a pipe it says its version only where nothing is buffered.
    ("mlvpn", &["stdbuf", "-o0", "mlvpn", "--version"]),
    ("mlvpn-rs", &["mlvpnd", "--version"]),
    ("glorytun", &["glorytun", "version"]),
    ("engarde", &["engarde-client", "-v"]),
    ("openvpn", &["openvpn", "--version"]),
    ("mqvpn", &["mqvpn", "--version"]),
    ("mptcp", &["ip", "-V"]),
    ("iperf3", &["iperf3", "--version"]),
];
/// This many bytes of an executable's SHA-256 tell it from others.
const BUILD_BYTES: usize = 8;
/// The status of a program that was to start another and did not find it. Source: POSIX.1-2024, XCU 2.8.2.
const NOT_FOUND: i32 = 127;
/// Where no version is said.
const UNKNOWN: &str = "unknown";

/// Where and with what results were found. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub hawser: String,
    /// The repository's commit, where it was run within one.
    #[serde(default)]
    pub commit: String,
    #[serde(default)]
    pub command: String,
    /// The beginning of the SHA-256 of each executable that added runs.
    pub builds: BTreeSet<String>,
    pub kernel: String,
    /// As the processor calls itself.
    pub processor: String,
    /// How many of it.
    pub processors: usize,
    /// Settings of the kernel before any case changed them, by their path below `/proc/sys`.
    pub sysctls: BTreeMap<String, String>,
    /// Versions of the contenders' programs, as they tell them, by the contender's kind.
    pub programs: BTreeMap<String, String>,
    /// Of the first repetition.
    pub seed: u64,
    /// Where recorded links have their rates from: which recordings, or which were generated, and what was drawn.
    #[serde(default)]
    pub recordings: Vec<String>,
    /// Whether workloads were shortened.
    pub quick: bool,
    /// Seconds since 1970 when the first run began.
    pub begun: f64,
}

impl Machine {
    /// This machine, now, with this `hawser` executable.
    pub fn here(program: &Path, scenario: &Scenario, quick: bool) -> Result<Self, LabError> {
        let build = hash(&fs::read(program).map_err(LabError::file("read", program))?);
        let (processor, processors) = processors(&proc("cpuinfo").unwrap_or_default());
        let kinds: BTreeSet<&str> = scenario.contenders.iter().map(|contender| contender.kind.as_str()).collect();
        let kinds = &kinds | &scenario.workloads.iter().map(|workload| workload.kind.as_str()).collect();
        let programs = PROGRAMS.iter().filter(|(kind, _)| kinds.contains(kind));
        let programs = programs.filter_map(|(kind, command)| Some(((*kind).to_owned(), version(command)?)));
        Ok(Self {
            hawser: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            command: command(std::env::args()),
            builds: BTreeSet::from([build]),
            kernel: proc("sys/kernel/osrelease").unwrap_or_default(),
            processor,
            processors,
            sysctls: SYSCTLS.iter().filter_map(|name| Some(((*name).to_owned(), setting(name)?))).collect(),
            programs: programs.collect(),
            seed: scenario.repeat.seed,
            recordings: recordings(scenario),
            quick,
            begun: super::seconds_since_1970(),
        })
    }
}

/// What `git describe` says of where it was run; nothing outside of a repository.
fn commit() -> String {
    let said = git(Path::new("."), &["describe", "--always", "--dirty", "--abbrev=12"]).unwrap_or_default();
    // Of a tag's name and a distance the commit is what follows the last g.
    said.rsplit("-g").next().unwrap_or_default().to_owned()
}

/// Without the program's folder.
fn command(mut words: impl Iterator<Item = String>) -> String {
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    words.fold(program, |command, word| command + " " + &word)
}

/// What recorded links come from, in words.
fn recordings(scenario: &Scenario) -> Vec<String> {
    let read = scenario.traces.iter().map(|(name, text)| format!("{name} (SHA-256 {}…)", hash(text.as_bytes())));
    let generated = scenario.generated.iter().map(|what| format!("{what} (generated)"));
    read.chain(generated).chain(scenario.drawn.clone()).collect()
}

/// The beginning of a hash.
fn hash(bytes: &[u8]) -> String {
    hex(&digest(&SHA256, bytes).as_ref()[..BUILD_BYTES])
}

/// A file below /proc, without its last line's end; none where there is none.
fn proc(path: &str) -> Option<String> {
    Some(fs::read_to_string(Path::new("/proc").join(path)).ok()?.trim().to_owned())
}

/// A kernel setting; none where this kernel does not have it.
fn setting(name: &str) -> Option<String> {
    Some(proc(&format!("sys/{name}"))?.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What the processor is called, and how many there are. Source: proc_cpuinfo(5).
fn processors(text: &str) -> (String, usize) {
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or(UNKNOWN, |model| model.trim_start_matches(['\t', ' ', ':']));
    (model.to_owned(), text.lines().filter(|line| line.starts_with("processor")).count())
}

/// The first line that a program says of its version; none where it is not installed.
fn version(command: &[&str]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program).args(arguments).output().ok()?;
    if output.status.code() == Some(NOT_FOUND) {
        return None;
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Some(said.lines().find(|line| !line.trim().is_empty()).unwrap_or(UNKNOWN).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::scenario;
    use super::*;

    #[test]
    fn a_machine_tells_its_kernel_processor_settings_and_build() {
        let own = std::env::current_exe().expect("this test");
        // JSON's numbers are read to the last digit but one.
        let machine = Machine { begun: 1.5, ..Machine::here(&own, &scenario(), false).expect("it can be read") };
        assert!(!machine.kernel.is_empty() && machine.processors > 0, "{machine:?}");
        assert_eq!(machine.builds.iter().map(String::len).collect::<Vec<_>>(), [2 * BUILD_BYTES]);
        assert!(machine.sysctls.contains_key("net/ipv4/tcp_congestion_control"), "{machine:?}");
        let text = serde_json::to_string(&machine).expect("plain data");
        assert_eq!(serde_json::from_str::<Machine>(&text).expect("its own text"), machine);
        assert!(Machine::here(Path::new("/nowhere"), &scenario(), false).is_err());
    }

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        assert_eq!(version(&["no-such-program", "--version"]), None);
        assert_eq!(version(&["stdbuf", "-o0", "no-such-program", "--version"]), None);
        assert_eq!(version(&["echo", "tool 1.2\nmore"]), Some("tool 1.2".to_owned()));
        assert_eq!(version(&["true"]), Some(UNKNOWN.to_owned()));
    }

    #[test]
    fn a_command_is_told_without_its_programs_folder() {
        let words = ["/a/hawser", "lab", "run", "bond"].map(str::to_owned);
        assert_eq!(command(words.into_iter()), "hawser lab run bond");
    }

    #[test]
    fn processors_are_counted() {
        let text = "processor\t: 0\nmodel name\t: Chip 3000\n\nprocessor\t: 1\nmodel name\t: Chip 3000\n";
        assert_eq!(processors(text), ("Chip 3000".to_owned(), 2));
        assert_eq!(processors(""), (UNKNOWN.to_owned(), 0));
    }
}
