//! From `[traffic]`, `[[rule]]` and `[[link]]` to what the core is told of flows and paths.

use hawser_config::{Config, Link, LinkName, MarkMatch, Rule};
use hawser_core::rules::{Dscp, Mark, Rule as CoreRule, Rules, Treatment, Via};
use hawser_core::scheduler::Weight;
use hawser_core::session::Terms;
use hawser_core::units::{LinkGroup, LinkTag};

use super::plan::SocketPlan;

/// How flows are treated.
pub fn rules(config: &Config) -> Rules {
    let otherwise = Treatment { scheduler: config.traffic.scheduler, ..Treatment::default() };
    // What goes past the tunnel is never read from it.
    let rules = config.rules.iter().filter(|rule| !rule.direct);
    Rules::new(rules.map(|rule| core_rule(rule, otherwise)).collect(), otherwise)
}

fn core_rule(rule: &Rule, otherwise: Treatment) -> CoreRule {
    let mark = rule.seen_mark().map(|MarkMatch { value, mask }| Mark::new(value, mask));
    if rule.class.is_some() {
        // nftables has looked at all that the rule asks for.
        return CoreRule { mark, via: via(rule), treatment: treatment(rule, otherwise), ..CoreRule::default() };
    }
    CoreRule {
        dscp: rule.dscp.and_then(Dscp::new),
        protocol: rule.protocol,
        source: rule.source,
        destination: rule.destination,
        ports: rule.ports.clone(),
        mark,
        via: via(rule),
        treatment: treatment(rule, otherwise),
    }
}

fn treatment(rule: &Rule, otherwise: Treatment) -> Treatment {
    Treatment {
        scheduler: rule.scheduler.unwrap_or(otherwise.scheduler),
        resend: rule.resend,
        fec: rule.fec,
        priority: rule.priority,
        ..otherwise
    }
}

fn via(rule: &Rule) -> Via {
    if rule.weights.is_empty() {
        return Via::in_order(&rule.via.iter().map(tag).collect::<Vec<_>>(), rule.strict);
    }
    let part = |(name, parts): &(LinkName, u8)| (tag(name), Weight::new(*parts).unwrap_or_default());
    Via::by_weight(rule.weights.iter().map(part).collect(), rule.strict)
}

/// What the core tells a link by: that of every interface has one name with all its own.
pub fn tag(name: &LinkName) -> LinkTag {
    LinkTag::of(name.without_interface())
}

/// On what terms each link is offered; `barred` says which have carried all that they may.
pub fn terms(links: &[Link], plans: &[SocketPlan], barred: impl Fn(&Link) -> bool) -> Vec<(LinkGroup, Terms)> {
    let group = |link: &Link| plans.iter().find(|plan| plan.opens() && plan.name == link.name.as_str());
    let of = |link: &Link| group(link).map(|plan| (plan.group, link_terms(link, barred(link))));
    links.iter().filter_map(of).collect()
}

fn link_terms(link: &Link, barred: bool) -> Terms {
    Terms {
        weight: Weight::new(link.weight).unwrap_or_default(),
        max_rate: link.max_rate,
        barred,
        name: tag(&link.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hawser_core::units::Rate;

    #[test]
    fn a_rule_that_names_no_scheduler_keeps_that_of_all_traffic() {
        let text = "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.2/24\"]\n[[link]]\nname = \"a\"\n\
             interface = \"eth0\"\nweight = 3\nmax_rate = \"20M\"\n[[peer]]\nname = \"hub\"\n\
             public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nendpoints = [\"198.51.100.7:4920\"]\n\
             allowed_ips = [\"10.77.0.1/32\"]\n[traffic]\nscheduler = \"flow\"\n[[rule]]\ndscp = \"ef\"\nresend = false\nfec = \"auto\"\n";
        let config = Config::parse(text, "test.toml").expect("a right configuration");
        let otherwise = Treatment { scheduler: hawser_config::Scheduler::Flow, ..Treatment::default() };
        let rule = CoreRule {
            dscp: Dscp::new(46),
            treatment: Treatment { resend: false, fec: true, ..otherwise },
            ..CoreRule::default()
        };
        assert_eq!(rules(&config), Rules::new(vec![rule], otherwise));
        let plans = crate::run::plan::sockets(&config);
        let [(group, terms)] = terms(&config.links, &plans, |_| true)[..] else { panic!("one link") };
        assert_eq!((group, terms.weight.get(), terms.barred), (LinkGroup(0), 3, true));
        assert_eq!(terms.name, LinkTag::of("a"));
        assert_eq!(terms.max_rate, Some(Rate(2_500_000)));
    }
}
