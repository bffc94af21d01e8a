//! What a scenario file says, parsed: docs/scenarios.md describes the file.
//!
//! 1. A scenario has a network, contenders, workloads, events, and cases: rows that choose among them.
//! 2. For each case, contender and workload there is a series of runs, repeated as `repeat` says.
//! 3. What the original published stands beside what is measured; claims say what must hold of it, tables and plots how
//!    both are shown.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_config::keyword;
use hawser_wire::{Access, Backend, Direction};

mod cases;
mod claim;
pub(crate) mod draw;
pub(crate) mod figures;
pub(crate) mod find;
pub(crate) mod link;
mod parse;
pub(crate) mod recorded;
pub(crate) mod refer;
mod show;
pub(crate) mod values;

pub use claim::{Bound, Claim};
pub use figures::{Discipline, Figure, Figures};
pub use find::{FileError, all, find};
pub use link::{Profile, profiles};
pub use show::{Column, Plot, PlotKind, Published, Repeat, Table};

/// A scenario. Plain data.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What `hawser lab run` calls it, unique.
    pub name: String,
    /// Scenarios that belong together: `testbed`, `proxy`, `aggregation`, `environments`.
    pub group: String,
    /// A line.
    pub title: String,
    /// The finding it re-examines, in sentences.
    pub finding: String,
    /// Where the finding was published.
    pub source: String,
    /// Hosts and links.
    pub network: Network,
    /// What is compared.
    pub contenders: Vec<ContenderPlan>,
    /// What is sent.
    pub workloads: Vec<WorkloadPlan>,
    /// What happens meanwhile.
    pub events: Vec<Event>,
    /// At least one.
    pub cases: Vec<Case>,
    /// How often.
    pub repeat: Repeat,
    /// Figures of the original.
    pub published: Vec<Published>,
    /// What must hold of ours.
    pub claims: Vec<Claim>,
    /// How results are shown.
    pub tables: Vec<Table>,
    /// How results are drawn.
    pub plots: Vec<Plot>,
    /// Files and folders of the repository whose changes make its results stale; none: what carries packets.
    pub counts: Vec<String>,
    /// The file's text, kept with the results.
    pub text: String,
    /// The texts of the traces that it names, kept beside it.
    pub traces: BTreeMap<String, String>,
    /// Recorded links that were generated for want of a recording, in words.
    pub generated: Vec<String>,
    /// What was drawn, in words: of which drives, by which seed.
    pub drawn: Option<String>,
}

/// Hosts and links. Two hosts, `client` and `server`, or with `lan` each behind a portal of its own. Plain data.
#[derive(Clone, Debug)]
pub struct Network {
    /// What applications use.
    pub inner: Family,
    /// What links have.
    pub outer: Family,
    /// Whether client and server are hosts of their own behind the portals.
    pub lan: bool,
    /// Whether the server's end has an interface and address of its own for each link, or one of each for all.
    pub server_links: bool,
    /// Whether each link's router translates the client's address.
    pub nat: bool,
    /// Whether links lead to the remote end by a router each, or straight.
    pub routers: bool,
    /// Who carries the links' packets.
    pub backend: Backend,
}

keyword! {
    /// An IP version. Plain data.
    Family {
        /// RFC 791.
        V4 = "ipv4",
        /// RFC 8200.
        V6 = "ipv6",
    }
}

/// A link. Plain data.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Its name, and that of the client's interface: at most 12 characters.
    pub name: String,
    /// From the client.
    pub up: Direction,
    /// To the client.
    pub down: Direction,
    /// The medium it shares with others of this name, both ways: one sends at a time.
    pub medium: Option<String>,
    /// How those on the medium take turns; a medium's first link says it.
    pub access: Access,
    /// Lower is preferred, where a contender knows such a thing.
    pub metric: u16,
}

/// A contender and its settings. Plain data.
#[derive(Clone, Debug)]
pub struct ContenderPlan {
    /// Which: `hawser`, `mptcp`, `tcp`, …
    pub kind: String,
    /// What tables call it, unique in the scenario.
    pub label: String,
    /// Settings of its own; each contender refuses what it does not know.
    pub options: toml::Table,
}

/// A workload and its settings. Plain data.
#[derive(Clone, Debug)]
pub struct WorkloadPlan {
    /// Which: `bulk`, `request`, `voip`, …
    pub kind: String,
    /// What tables call it, unique in the scenario.
    pub name: String,
    /// How long it runs.
    pub duration: Duration,
    /// Settings of its own; each workload refuses what it does not know.
    pub options: toml::Table,
}

/// Something that happens while a workload runs. Plain data.
#[derive(Clone, Debug)]
pub struct Event {
    /// What cases call it.
    pub name: String,
    /// After the workload's start.
    pub at: Duration,
    /// To which link; empty where it happens to a program.
    pub link: String,
    /// What.
    pub what: Happening,
}

keyword! {
    /// An end of a tunnel, as a file and [`crate::contender::Program::role`] have it. Plain data.
    TunnelEnd {
        /// Where links begin.
        Local = "local",
        /// The other one.
        Remote = "remote",
    }
}

/// What happens to a link, or to a program of the contender. Plain data.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The client's interface goes down.
    Cut,
    /// Every packet is lost, silently.
    BlackHole,
    /// The end of a cut or black hole.
    Restore,
    /// Other figures, from now on. What they leave out stays as it is in that moment.
    Change {
        /// From the client.
        up: Figures,
        /// To the client.
        down: Figures,
    },
    /// This link goes down; the named one comes up in the same moment.
    Handover {
        /// The link that comes.
        to: String,
    },
    /// The client's interface gets another address.
    Address,
    /// The router's translations are forgotten and begin anew from another port.
    NatRebind,
    /// The contender's program at an end is stopped (SIGSTOP): it neither reads nor sends.
    Stop(TunnelEnd),
    /// It goes on (SIGCONT).
    Continue(TunnelEnd),
    /// It is killed (SIGKILL): nothing is undone.
    Kill(TunnelEnd),
    /// One that was killed is started, as it was before.
    Start(TunnelEnd),
    /// From now on this many hostile datagrams a second come to the remote portal.
    Attack(u32),
    /// The link's rate is zero, and what it holds stays there.
    Stall,
}

/// A row: what is chosen, and what is changed for it. Plain data.
#[derive(Clone, Debug)]
pub struct Case {
    /// As the original calls it: `A.1`.
    pub name: String,
    /// A line.
    pub title: String,
    /// At least one, with what this case changes in it. Those down at first stand in `absent`.
    pub links: Vec<LinkPlan>,
    /// Hosts of their own beside the client, each with one link to the server's end, with what this case changes in it;
    /// no contender knows of them.
    pub bystanders: Vec<LinkPlan>,
    /// Links that are down until a handover or restore brings them.
    pub absent: Vec<String>,
    /// Labels.
    pub contenders: Vec<String>,
    /// Names.
    pub workloads: Vec<String>,
    /// Names.
    pub events: Vec<String>,
    /// Settings of the hosts' kernels for the case, `net.` sysctls as `ipv4/tcp_reordering`; of one host as
    /// `client:ipv4/…`.
    pub sysctls: BTreeMap<String, String>,
    /// Its place on a plot's axis: delay, number of links …
    pub x: Option<f64>,
    /// Whether it is run with `--quick`, too.
    pub quick: bool,
}
