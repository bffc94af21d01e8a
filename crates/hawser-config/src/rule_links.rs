//! The links that a `[[rule]]` names: `via`, in order, or `weights`, by shares; `strict`, and nowhere else.

use toml::de::{DeTable, DeValue};

use super::error::{Fault, Span, did_you_mean};
use super::parsers::{link_name, weight};
use super::reader::{Sited, Table, boolean, kind, quoted};
use super::shape;
use super::unique::Unique;
use super::values::{LinkName, Scheduler};

/// Which links rules may name. Plain data.
pub(super) struct Known {
    /// Those of this file, right or wrong.
    names: Vec<String>,
    /// Peers call this portal by links of theirs, whose names are not known here.
    called: bool,
}

impl Known {
    /// What the file says of links.
    pub fn of(tree: &DeTable<'_>) -> Self {
        let tables = shape::tables(tree, "link");
        let name = |table: &DeTable<'_>| table.get("name").and_then(|name| name.get_ref().as_str().map(str::to_owned));
        let listen = tree.get("portal").and_then(|portal| portal.get_ref().as_table()?.get("listen"));
        let listens = listen.and_then(|listen| listen.get_ref().as_array().map(|list| !list.is_empty()));
        Self { names: tables.filter_map(name).collect(), called: listens.unwrap_or(false) }
    }

    /// Why no packet can go by this link.
    fn lacks(&self, name: &LinkName) -> Option<Fault> {
        if self.called || self.names.iter().any(|known| known == name.as_str()) {
            return None;
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let fault = Fault::new(format!("no [[link]] is called {}", quoted(name.as_str())));
        Some(match did_you_mean(name.as_str(), &names) {
            Some(meant) => fault.hint(format!("did you mean {}?", quoted(meant))).fix(quoted(meant)),
            None if names.is_empty() => fault.hint("add a [[link]] of that name"),
            None => fault.hint(format!("links of this file: {}", names.join(", "))),
        })
    }
}

/// The keys that this file reads.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleLinks {
    pub via: Vec<LinkName>,
    pub weights: Vec<(LinkName, u8)>,
    pub strict: bool,
    /// By none of them, and not by the tunnel.
    pub direct: bool,
}

/// What `via` says of packets that go past the tunnel.
const DIRECT: &str = "direct";
/// What is no matter past the tunnel.
const OF_THE_TUNNEL: [&str; 6] = ["scheduler", "resend", "fec", "weights", "strict", "priority"];

/// Reads them. `scheduler` is the rule's own.
pub(super) fn read(table: &mut Table<'_, '_, '_>, known: &Known, scheduler: Option<&Sited<Scheduler>>) -> RuleLinks {
    if table.text("via") == Some(DIRECT) {
        return direct(table);
    }
    let via = table.list("via", link_name);
    let weights = table.optional("weights", weights);
    let strict = table.optional("strict", boolean);
    if via.as_ref().is_some_and(Vec::is_empty) {
        let fault = Fault::new("`via` is empty").hint("write: via = [\"dsl\", \"lte\"], or leave it out");
        table.fault(table.header(), fault);
    }
    let mut seen = Unique::default();
    for link in via.iter().flatten() {
        claim(table, known, &link.value, &link.span);
        seen.claim(table, link.value.clone(), link.span.clone(), "the link is there twice");
    }
    for (name, _) in weights.iter().flat_map(|weights| &weights.value) {
        claim(table, known, name, &weights.as_ref().map_or(0..0, |weights| weights.span.clone()));
    }
    if let (Some(weights), Some(_)) = (&weights, &via) {
        let fault = Fault::new("`via` and `weights` in one [[rule]]");
        let hint = "`via` takes one link after the other, `weights` all of them by shares: leave one out";
        table.fault(weights.span.clone(), fault.hint(hint));
    }
    if let (Some(_), Some(other)) = (&weights, scheduler.filter(|other| other.value != Scheduler::Weighted)) {
        let fault = Fault::new(format!("`weights` are no matter to the scheduler {}", other.value));
        table.fault(other.span.clone(), fault.fix("\"weighted\""));
    }
    if let Some(strict) = strict.as_ref().filter(|strict| strict.value && via.is_none() && weights.is_none()) {
        let fault = Fault::new("`strict`, and no link that it is about");
        table.fault(strict.span.clone(), fault.hint("add: via = [\"dsl\"]"));
    }
    RuleLinks {
        via: via.into_iter().flatten().map(|link| link.value).collect(),
        weights: weights.map_or_else(Vec::new, |weights| weights.value),
        strict: strict.is_some_and(|strict| strict.value),
        direct: false,
    }
}

/// Nothing that the portal does with packets holds for these.
fn direct(table: &mut Table<'_, '_, '_>) -> RuleLinks {
    table.optional("via", |_| Ok(()));
    table.optional("weights", weights);
    table.optional("strict", boolean);
    if let Some(key) = OF_THE_TUNNEL.into_iter().find(|key| table.has(key)) {
        let fault =
            Fault::new(format!("`{key}` beside `via = \"direct\"`: what goes past the tunnel is no matter to it"));
        table.fault(table.header(), fault.hint(format!("leave `{key}` out, or name links: via = [\"dsl\"]")));
    }
    RuleLinks { direct: true, ..RuleLinks::default() }
}

fn claim(table: &mut Table<'_, '_, '_>, known: &Known, name: &LinkName, span: &Span) {
    if let Some(fault) = known.lacks(name) {
        table.fault(span.clone(), fault);
    }
}

/// A part for each link.
fn weights(value: &DeValue<'_>) -> Result<Vec<(LinkName, u8)>, Fault> {
    let hint = "write: weights = { dsl = 3, lte = 1 }";
    let DeValue::Table(parts) = value else {
        return Err(Fault::new(format!("expected a part for each link, found {}", kind(value))).hint(hint));
    };
    if parts.is_empty() {
        return Err(Fault::new("no link has a part").hint(hint));
    }
    let part = |(name, part): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let text: &std::borrow::Cow<'_, str> = name.get_ref();
        let name = LinkName::parse(text).map_err(|error| Fault::new(error.to_string()))?;
        Ok((name, weight(part.get_ref())?))
    };
    parts.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Rule};
    use super::*;

    /// The rules of a portal with the links dsl and lte, or one that peers call.
    fn rules(listens: bool, rules: &str) -> Result<Vec<Rule>, Vec<ConfigError>> {
        let links = "[[link]]\nname = \"dsl\"\ninterface = \"eth0\"\n[[link]]\nname = \"lte\"\ninterface = \"wwan0\"\n";
        let (portal, links) = if listens { ("listen = [\"0.0.0.0:4920\"]\n", "") } else { ("", links) };
        let endpoints = if listens { "" } else { "endpoints = [\"198.51.100.7:4920\"]\n" };
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\n{portal}[tun]\naddresses = [\"10.77.0.2/24\"]\n{links}[[peer]]\nname = \"hub\"\n\
             public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nallowed_ips = [\"10.77.0.1/32\"]\n{endpoints}{rules}"
        );
        Config::parse(&text, "test.toml").map(|config| config.rules)
    }

    fn name(text: &str) -> LinkName {
        LinkName::parse(text).expect("a name")
    }

    #[test]
    fn a_rule_names_links_in_order_or_by_shares() {
        let text = "[[rule]]\nprotocol = \"udp\"\nvia = [\"dsl\", \"lte\"]\nstrict = true\npriority = 2\n\
                    [[rule]]\nweights = { dsl = 3, lte = 1 }\n";
        let read = rules(false, text).expect("right rules");
        assert_eq!((&read[0].via[..], read[0].strict, read[0].priority), (&[name("dsl"), name("lte")][..], true, 2));
        assert_eq!(read[1].weights, [(name("dsl"), 3), (name("lte"), 1)]);
        assert_eq!((read[1].scheduler, read[1].strict), (Some(Scheduler::Weighted), false), "shares need it");
    }

    #[test]
    fn what_no_packet_can_follow_is_told_with_a_hint() {
        let table = [
            ("via = [\"dls\"]", "no [[link]] is called \"dls\"", "did you mean \"dsl\"?"),
            ("via = [\"starlink\"]", "no [[link]] is called \"starlink\"", "links of this file: dsl, lte"),
            ("weights = { dsl = 1, ltd = 1 }", "no [[link]] is called \"ltd\"", "did you mean \"lte\"?"),
            ("via = []", "`via` is empty", "write: via = [\"dsl\", \"lte\"], or leave it out"),
            ("via = \"dsl\"", "`via`: expected a list, found a string", "a list stands in brackets"),
            ("weights = {}", "`weights`: no link has a part", "write: weights = { dsl = 3, lte = 1 }"),
            ("strict = true\npriority = 1", "`strict`, and no link that it is about", "add: via = [\"dsl\"]"),
            ("priority = 4", "`priority`: 4 is not between -3 and 3", "higher goes first; all other traffic has 0"),
        ];
        for (rule, message, hint) in table {
            let faults = rules(false, &format!("[[rule]]\n{rule}\n")).expect_err(rule);
            let said: Vec<_> = faults.iter().map(|fault| (fault.message.as_str(), fault.hint.as_deref())).collect();
            assert_eq!(said, [(message, Some(hint))], "{rule}");
        }
        let both = rules(false, "[[rule]]\nvia = [\"dsl\"]\nweights = { lte = 1 }\n").expect_err("both");
        assert_eq!(both[0].message, "`via` and `weights` in one [[rule]]");
        let other = rules(false, "[[rule]]\nweights = { lte = 1 }\nscheduler = \"flow\"\n").expect_err("no shares");
        assert_eq!(other[0].corrected.as_deref(), Some("scheduler = \"weighted\""));
    }

    #[test]
    fn a_portal_that_is_called_may_name_links_of_its_peers() {
        let read = rules(true, "[[rule]]\nvia = [\"starlink\"]\n").expect("somebody may have it");
        assert_eq!(read[0].via, [name("starlink")]);
    }
}
