//! The sockets that are there, and those that should be: which come, which go, and which stay under their names.

use std::collections::BTreeSet;

use hawser_core::units::{LinkGroup, LinkId};

use crate::run::messages::Reload;
use crate::run::plan::SocketPlan;

/// Follows the `wanted` sockets, named by nobody yet: `present` is then what is wanted, in its order, and `reload`
/// tells the packet thread what changed. A socket keeps its name while it is there; one that comes takes a name that
/// was free before.
pub fn follow(present: &mut Vec<SocketPlan>, wanted: Vec<SocketPlan>, reload: &mut Reload) {
    let mut old = std::mem::take(present);
    let mut taken: BTreeSet<LinkId> = old.iter().map(|plan| plan.id).collect();
    let mut groups: BTreeSet<LinkGroup> = old.iter().map(|plan| plan.group).collect();
    let of_link: Vec<(String, LinkGroup)> = old.iter().map(|plan| (plan.name.clone(), plan.group)).collect();
    for mut plan in wanted {
        if let Some(at) = old.iter().position(|one| one.is_same(&plan)) {
            let one = old.swap_remove(at);
            (plan.id, plan.group) = (one.id, one.group);
            if plan.metric != one.metric {
                reload.metrics.push((plan.id, plan.metric));
            }
        } else {
            plan.id = LinkId(free(&taken, |id| id.0));
            taken.insert(plan.id);
            let siblings = present.iter().map(|one| (&one.name, one.group));
            let known = of_link.iter().map(|(name, group)| (name, *group));
            let sibling = siblings.chain(known).find(|(name, _)| **name == plan.name);
            plan.group = sibling.map_or_else(|| LinkGroup(free(&groups, |group| group.0)), |(_, group)| group);
            groups.insert(plan.group);
            reload.links_added.push(plan.clone());
        }
        present.push(plan);
    }
    reload.links_removed.extend(old.iter().map(|plan| plan.id));
}

/// The least number that none has. There are never as many sockets as numbers.
fn free<T: Ord>(taken: &BTreeSet<T>, number: impl Fn(&T) -> u16) -> u16 {
    let taken: BTreeSet<u16> = taken.iter().map(number).collect();
    (0..u16::MAX).find(|number| !taken.contains(number)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::plan;
    use hawser_config::Config;

    const V4: &str = "\"192.0.2.1:4920\"";
    const BOTH: &str = "\"192.0.2.1:4920\", \"[2001:db8::1]:4920\"";

    /// Links by name, interface and metric.
    fn wanted(links: &[(&str, &str, u16)], endpoints: &str) -> Vec<SocketPlan> {
        let links: String = links
            .iter()
            .map(|(name, on, metric)| format!("[[link]]\nname = \"{name}\"\ninterface = \"{on}\"\nmetric = {metric}\n"))
            .collect();
        let text = format!(
            "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.1/24\"]\n{links}[[peer]]\nname = \"hub\"\n\
             public_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\nallowed_ips = [\"10.77.0.2/32\"]\n\
             endpoints = [{endpoints}]\n"
        );
        plan::sockets(&Config::parse(&text, "test.toml").expect("a right configuration"))
    }

    #[test]
    fn a_socket_keeps_its_name_and_a_free_one_is_used_again() {
        let mut present = wanted(&[("a", "eth0", 0), ("b", "eth1", 0)], V4);
        let mut step = |links: &[(&str, &str, u16)], endpoints: &str| {
            let mut reload = Reload::default();
            follow(&mut present, wanted(links, endpoints), &mut reload);
            let name = |plan: &SocketPlan| format!("{}{}/{}", plan.name, plan.id.0, plan.group.0);
            let names = |plans: &[SocketPlan]| plans.iter().map(name).collect::<Vec<_>>().join(" ");
            let removed: Vec<u16> = reload.links_removed.iter().map(|id| id.0).collect();
            let metrics: Vec<(u16, u16)> = reload.metrics.iter().map(|(id, metric)| (id.0, *metric)).collect();
            (names(&present), removed, names(&reload.links_added), metrics)
        };
        let said = |present: &str, removed: &[u16], added: &str, metrics: &[(u16, u16)]| {
            (present.to_owned(), removed.to_vec(), added.to_owned(), metrics.to_vec())
        };
        let (a, b, c) = (("a", "eth0", 0), ("b", "eth1", 0), ("c", "eth2", 0));
        assert_eq!(step(&[a, b], V4), said("a0/0 b1/1", &[], "", &[]));
        assert_eq!(step(&[b, a], V4), said("b1/1 a0/0", &[], "", &[]), "their order in the file does not matter");
        assert_eq!(step(&[("b", "eth1", 7), c], V4), said("b1/1 c2/2", &[0], "c2/2", &[(1, 7)]));
        assert_eq!(step(&[b, c, a], V4), said("b1/1 c2/2 a0/0", &[], "a0/0", &[(1, 0)]));
        // Another interface is another socket of the same link; another IP version a second one.
        assert_eq!(step(&[("b", "eth9", 0), c, a], V4), said("b3/1 c2/2 a0/0", &[1], "b3/1", &[]));
        assert_eq!(step(&[c, a], BOTH), said("c2/2 c1/2 a0/0 a4/0", &[3], "c1/2 a4/0", &[]));
        assert_eq!(step(&[a], "\"[2001:db8::1]:4920\""), said("a4/0", &[2, 1, 0], "", &[]));
    }
}
