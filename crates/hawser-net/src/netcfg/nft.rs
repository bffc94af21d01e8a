//! A table of nftables of Hawser's own, set and replaced as a whole by the program `nft`.
//!
//! 1. [`NftTable::script`] declares the table, deletes it, and declares it anew with its chains: `nft` makes that one
//!    transaction of the kernel's, so that there is never half a table.
//! 2. [`load`] gives it to `nft` on standard input; [`delete`] and [`is_there`] ask for less.
//! 3. What `nft` says on standard error becomes the error, with a hint where something is known.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

use super::features::Feature;
use super::program::{self, Lent, PATIENCE, ProgramError, first_line};
use super::types::Family;

/// What the names of Hawser's tables begin with; a journal that names another table is not obeyed.
const PREFIX: &str = "hawser_";
/// Longest name of a table, in bytes (`NFT_NAME_MAXLEN` less the closing zero, linux/netfilter/nf_tables.h).
const NAME_MAX: usize = 255;
/// The program.
const PROGRAM: &str = "nft";
/// What would end a quoted interface name, escape, or match more than one.
const NOT_QUOTABLE: [char; 4] = ['"', '*', '\\', '\n'];

/// The name of a table of Hawser's own: `hawser_`, then letters, digits and `_`.
/// There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NftName(String);

/// A table of family `inet`, whole.
/// Without chains it does nothing. Plain data, journalled as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NftTable {
    /// Its name.
    pub name: NftName,
    /// Its sets of addresses. A later table of the same name keeps what is in those that it has too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<NftSet>,
    /// Its chains, in their order.
    pub chains: Vec<NftChain>,
}

/// A set of addresses of one IP version, each for a time. Empty at first. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NftSet {
    /// Its name.
    pub name: String,
    /// Of which version its addresses are.
    pub family: Family,
    /// For how many seconds what is put there without a time stays.
    pub timeout_s: u32,
}

/// A chain. Without a hook it only serves others; its policy is `accept`. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NftChain {
    /// Its name.
    pub name: String,
    /// Where the kernel calls it, in the words of nft(8): `type filter hook forward priority mangle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Its rules, each in the words of nft(8); interface names by [`quoted`].
    pub rules: Vec<String>,
}

impl NftName {
    /// The table of the TUN device of this name; what a table's name cannot hold is written in hexadecimal digits.
    pub fn of_tun(tun: &str) -> Self {
        let plain = |byte: u8| byte.is_ascii_alphanumeric();
        let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("_{byte:02x}") };
        Self(tun.bytes().fold(PREFIX.to_owned(), |name, byte| name + &letter(byte)))
    }

    /// The second table of the same device, with what a takeover needs; no device's first one has this name.
    pub fn of_takeover(tun: &str) -> Self {
        Self(Self::of_tun(tun).0 + "_takeover")
    }

    /// The third table of the same device, with what `fail = "closed"` needs.
    pub fn of_kill_switch(tun: &str) -> Self {
        Self(Self::of_tun(tun).0 + "_closed")
    }

    /// The fourth table of the same device, with what rules need that look at more than packets.
    pub fn of_rules(tun: &str) -> Self {
        Self(Self::of_tun(tun).0 + "_rules")
    }

    fn parse(name: String) -> Result<Self, NftError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let good = name.starts_with(PREFIX) && name.len() <= NAME_MAX && name.chars().all(plain);
        if good { Ok(Self(name)) } else { Err(NftError::NotOurs { name }) }
    }
}

impl TryFrom<String> for NftName {
    type Error = NftError;

    fn try_from(name: String) -> Result<Self, NftError> {
        Self::parse(name)
    }
}

impl From<NftName> for String {
    fn from(name: NftName) -> Self {
        name.0
    }
}

impl fmt::Display for NftName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An interface's name as rules hold it: `oifname "eth0"`.
///
/// # Errors
/// [`NftError::NotQuotable`] for a name that `nft` would read otherwise.
pub fn quoted(interface: &str) -> Result<String, NftError> {
    if interface.contains(NOT_QUOTABLE) {
        return Err(NftError::NotQuotable { interface: interface.to_owned() });
    }
    Ok(format!("\"{interface}\""))
}

impl NftTable {
    /// Step 1.
    fn script(&self) -> String {
        let name = &self.name;
        let chains: String = self.chains.iter().map(NftChain::script).collect();
        if !self.sets.is_empty() {
            let sets: String = self.sets.iter().map(NftSet::script).collect();
            // What goes are the rules alone; deleted, sets would come back empty.
            return format!(
                "table inet {name} {{\n{sets}}}\nflush table inet {name}\ntable inet {name} {{\n{chains}}}\n"
            );
        }
        format!("table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n{chains}}}\n")
    }
}

impl NftSet {
    fn script(&self) -> String {
        let version = match self.family {
            Family::V4 => "ipv4_addr",
            Family::V6 => "ipv6_addr",
        };
        let Self { name, timeout_s, .. } = self;
        format!("  set {name} {{\n    type {version}; flags timeout; timeout {timeout_s}s;\n  }}\n")
    }
}

impl NftChain {
    fn script(&self) -> String {
        let hook = self.hook.as_ref().map_or(String::new(), |hook| format!("    {hook}; policy accept;\n"));
        let rules: String = self.rules.iter().map(|rule| format!("    {rule}\n")).collect();
        format!("  chain {} {{\n{hook}{rules}  }}\n", self.name)
    }
}

/// Sets the table, in the place of the one of its name if there is one.
pub(super) async fn load(table: &NftTable) -> Result<(), NftError> {
    run(&["-f", "-"], &table.script()).await.map(drop)
}

/// Deletes the table; false if there is none.
pub(super) async fn delete(name: &NftName) -> Result<bool, NftError> {
    found(run(&["delete", "table", "inet", &name.0], "").await)
}

/// Whether there is a table of this name.
pub(super) async fn is_there(name: &NftName) -> Result<bool, NftError> {
    found(run(&["--terse", "list", "table", "inet", &name.0], "").await)
}

fn found(answer: Result<Vec<u8>, NftError>) -> Result<bool, NftError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.is_gone() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Step 2, in the calling thread's network namespace. Gives what `nft` prints.
pub(super) async fn run(arguments: &[&str], input: &str) -> Result<Vec<u8>, NftError> {
    let output = program::run(PROGRAM, arguments, input, Lent::NetAdmin).await.map_err(|error| match error {
        ProgramError::Missing => NftError::Missing,
        ProgramError::NotRun(source) => NftError::NotRun { source },
        ProgramError::Silent => NftError::Silent,
    })?;
    if output.status.success() { Ok(output.stdout) } else { Err(refusal(&String::from_utf8_lossy(&output.stderr))) }
}

/// Step 3.
fn refusal(said: &str) -> NftError {
    let first = first_line(said);
    if said.contains("not supported") {
        return NftError::MissingFeature { feature: Feature::Nftables, said: first.to_owned() };
    }
    NftError::Refused { said: first.to_owned() }
}

/// Why a table could not be set or deleted.
/// There is no default. Owned data only, so it crosses threads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NftError {
    /// The program is not installed.
    #[error("run nft: there is no such program where it belongs")]
    Missing,
    /// The program could not be run.
    #[error("run nft: {source}")]
    NotRun {
        /// Why not.
        source: io::Error,
    },
    /// The program did not end.
    #[error("run nft: no answer within {} s", PATIENCE.as_secs())]
    Silent,
    /// The program or the kernel refused.
    #[error("run nft: {said}")]
    Refused {
        /// The first line that it said.
        said: String,
    },
    /// The kernel has not what is asked for.
    #[error("run nft: the kernel lacks {feature}: {said}")]
    MissingFeature {
        /// What is missing, with version and option.
        feature: Feature,
        /// The first line that it said.
        said: String,
    },
    /// Not the name of a table of Hawser's own.
    #[error("parse table name {name:?}: not one of hawser's own")]
    NotOurs {
        /// What was given.
        name: String,
    },
    /// A name that cannot stand in a rule.
    #[error("write rule for interface {interface:?}: a name with such characters cannot stand in nftables rules")]
    NotQuotable {
        /// The name.
        interface: String,
    },
}

impl NftError {
    /// True if there is no such table.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { said } if said.contains("No such file or directory"))
    }

    /// What a user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("install it; on Debian: apt-get install nftables"),
            Self::Refused { said } if said.contains("not permitted") => Some("run as root or with CAP_NET_ADMIN"),
            Self::NotQuotable { .. } => Some("rename the interface: ip link set dev … name …"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_declared_deleted_and_declared_in_one_script() {
        let chain = |name: &str, hook: Option<&str>, rules: &[&str]| NftChain {
            name: name.into(),
            hook: hook.map(Into::into),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        };
        let forward = chain("forward", Some("type filter hook forward priority mangle"), &["jump clamp"]);
        let clamp = chain("clamp", None, &["tcp flags syn counter", "counter"]);
        let table = NftTable { name: NftName::of_tun("hawser0"), sets: Vec::new(), chains: vec![forward, clamp] };
        assert_eq!(
            table.script(),
            "table inet hawser_hawser0\ndelete table inet hawser_hawser0\ntable inet hawser_hawser0 {\n  \
             chain forward {\n    type filter hook forward priority mangle; policy accept;\n    jump clamp\n  }\n  \
             chain clamp {\n    tcp flags syn counter\n    counter\n  }\n}\n"
        );
    }

    #[test]
    fn sets_keep_what_is_in_them_when_rules_are_replaced() {
        let set = NftSet { name: "names_4".into(), family: Family::V4, timeout_s: 60 };
        let chain = NftChain { name: "c".into(), hook: None, rules: vec!["ip daddr @names_4 accept".into()] };
        let table = NftTable { name: NftName::of_rules("hawser0"), sets: vec![set], chains: vec![chain] };
        assert_eq!(
            table.script(),
            "table inet hawser_hawser0_rules {\n  set names_4 {\n    type ipv4_addr; flags timeout; timeout 60s;\n  }\n}\n\
             flush table inet hawser_hawser0_rules\ntable inet hawser_hawser0_rules {\n  chain c {\n    ip daddr @names_4 accept\n  }\n}\n"
        );
    }

    #[test]
    fn every_tun_device_has_a_table_of_its_own() {
        let names = ["hawser0", "a.b", "a_b", "a_2eb", "ö", "tun-1"].map(|tun| NftName::of_tun(tun).to_string());
        assert_eq!(names[..2], ["hawser_hawser0", "hawser_a_2eb"]);
        assert_eq!(NftName::of_tun("hawser0_takeover").to_string(), "hawser_hawser0_5ftakeover");
        assert_eq!(NftName::of_takeover("hawser0").to_string(), "hawser_hawser0_takeover");
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name} is there twice");
            assert!(NftName::parse(name.clone()).is_ok(), "{name}");
        }
    }

    #[test]
    fn tables_of_others_are_not_ours() {
        for name in ["filter", "hawser", "hawser_x; flush ruleset", "hawser_x\n", ""] {
            assert!(NftName::parse(name.into()).is_err(), "{name:?}");
            let json = serde_json::to_string(name).unwrap();
            assert!(serde_json::from_str::<NftName>(&json).is_err(), "{name:?}");
        }
    }

    #[test]
    fn interface_names_cannot_leave_their_quotes() {
        assert_eq!(quoted("eth0.100").unwrap(), "\"eth0.100\"");
        for name in ["a\"b", "eth*", "a\\", "a\nb"] {
            assert!(matches!(quoted(name), Err(NftError::NotQuotable { .. })), "{name:?}");
        }
    }

    #[test]
    fn what_nft_says_becomes_an_error_with_a_hint() {
        let table = [
            ("Error: Could not process rule: Operation not permitted\ntable", false, Some("CAP_NET_ADMIN")),
            ("\nError: No such file or directory; did you mean", true, None),
            ("netlink: Error: cache initialization failed: Protocol not supported", false, None),
            ("", false, None),
        ];
        for (said, gone, hint) in table {
            let error = refusal(said);
            assert_eq!(error.is_gone(), gone, "{error}");
            assert_eq!(error.hint().is_some(), hint.is_some(), "{error}");
            assert!(error.hint().unwrap_or_default().contains(hint.unwrap_or_default()), "{error}");
        }
        let missing = refusal("cache initialization failed: Protocol not supported").to_string();
        assert!(missing.contains("linux 5.2"), "{missing}");
        assert!(NftError::Missing.hint().unwrap().contains("apt-get install nftables"));
    }
}
