//! The laws by name, each with what switches it off: an ablation goes through them one by one.

use super::Tuning;
use crate::queue::{LIMIT, TARGET};
use crate::units::ByteCount;
use std::fmt;
use std::time::Duration;

/// A law of the policy. A plain value; there are those of [`Law::all`].
#[derive(Copy, Clone)]
pub struct Law {
    /// What it is called on a command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    neutralise: fn(&mut Tuning),
}

impl Law {
    /// Every law.
    pub fn all() -> &'static [Law] {
        &LAWS
    }

    /// The law of that name.
    pub fn named(name: &str) -> Option<Law> {
        LAWS.iter().find(|law| law.name == name).copied()
    }

    pub(super) fn switch_off(self, tuning: &mut Tuning) {
        (self.neutralise)(tuning);
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn law(name: &'static str, about: &'static str, neutralise: fn(&mut Tuning)) -> Law {
    Law { name, about, neutralise }
}

static LAWS: [Law; 39] = [
    law("doubt", "a tier is left only when the probe of a suspect path could have been answered", |t| {
        (t.tier.doubt_rounds, t.tier.doubt) = (0, Duration::ZERO);
    }),
    law("fastest-margin", "the fastest path keeps its place against small differences", |t| {
        (t.fastest.margin_us, t.fastest.margin_jitters) = (0, 0);
    }),
    law("own-jitter", "what a path's delay varies by its nature counts as delay", |t| {
        (t.delay.jitter_part, t.delay.spread_part) = (u32::MAX, u32::MAX);
    }),
    law("active-set", "bulk uses only paths whose rate is worth their delay", |t| t.active_set.delay_weight = 0.0),
    law("probe-copies", "a path that costs a flow much is probed with redundant copies", |t| t.active_set.cheap = 0.0),
    law("overflow", "active paths take before the faster ones' queue has reached their delay", |t| {
        (t.overflow.first, t.overflow.least) = (1.0, 1.0);
    }),
    law("probing", "a path is fed for its rate's sake until its bandwidth has stopped growing", |t| {
        t.probing.longest = Duration::ZERO;
    }),
    law("probe-retry", "a path that is left out is probed anew, ever more seldom", |t| {
        (t.retry.first, t.retry.last) = (Duration::MAX, Duration::MAX);
    }),
    law("duplicate", "what was lost twice goes by two paths", |t| t.reinjection.tries_alone = u8::MAX),
    law("reinject-idle", "what a slower path keeps goes by the fastest one too, where that is idle", |t| {
        t.reinjection.idle_part = 0;
    }),
    law("sparse-first", "sparse flows' packets go before retransmissions", |t| t.reinjection.sparse_part = 0.0),
    law("hedge", "what sparse flows have under way on a late path goes by another too", |t| t.hedge.share = 0.0),
    law("queue-limit", "what may wait grows with the bond's rate", |t| t.aqm.limit_max = LIMIT),
    law("quantum", "a bulk flow's turn grows with the bond's rate", |t| t.aqm.quantum_max = ByteCount::ZERO),
    law("codel-target", "the ingress queue holds a window that pays for bursts", |t| {
        (t.aqm.target, t.aqm.target_varying) = (TARGET, TARGET);
    }),
    law("codel-memory", "what filled a link that is lost or fades is not dropped meanwhile", |t| {
        t.aqm.memory = Duration::ZERO;
    }),
    law("codel-varying", "it lasts through the dips of rates that vary", |t| t.aqm.target_varying = t.aqm.target),
    law("codel-shorten", "a drop from a long queue leaves its head, and takes what is behind", |t| {
        t.aqm.kept = Duration::MAX
    }),
    law("ack-filter", "acknowledgements of a slow start over several paths have gaps", |t| {
        t.ack_filter.gap = Duration::ZERO;
    }),
    law("hold", "a gap is waited for as long as it may still be repaired, and not a fixed time", |t| {
        t.hold.min = t.hold.max;
    }),
    law("flap-hold", "a path that drops again and again is held back for ever longer", |t| {
        t.flaps.first = Duration::ZERO
    }),
    law("bbr-loss-beside-queue", "loss is congestion only beside a queue", |t| t.bbr.loss_beside_queue = false),
    law("bbr-own-loss", "what a path loses by its nature is no congestion", |t| t.bbr.own_loss = false),
    law("bbr-startup-loss", "Startup ends at loss only when its rate has stopped growing", |t| {
        t.bbr.startup_loss = false
    }),
    law("bbr-early-probe", "the first probe comes early after a Startup that loss has ended", |t| {
        t.bbr.early_probe = false
    }),
    law("bbr-limited-loss", "loss lowers the rate only where the sender filled it", |t| t.bbr.limited_loss = false),
    law("bbr-fall", "a rate that fell is seen in limited samples too", |t| t.bbr.fall = false),
    law("bbr-follow", "where the rate varies the window follows it", |t| t.bbr.follow = false),
    law("bbr-probe-queue", "a probe ends at a queue that brings no rate", |t| t.bbr.probe_queue = false),
    law("bbr-deep-down", "Down drains faster while much is queued", |t| t.bbr.deep_down = false),
    law("bbr-renewal", "a round trip near the least renews it", |t| t.bbr.renewal = false),
    law("bbr-startup-pace", "Startup hardly paces a sender that is the limit", |t| t.bbr.startup_pace = false),
    law("bbr-startup-queue", "Startup ends at a queue that brings no rate", |t| t.bbr.startup_queue = false),
    law("bbr-trim", "cruising is slowed while a queue stands", |t| t.bbr.trim = false),
    law("bbr-headroom", "headroom never cuts the path's own product", |t| t.bbr.headroom = false),
    law("bbr-host-time", "what is in flight covers the hosts' rests", |t| t.bbr.host_time = false),
    law("bbr-spread", "what an average packet takes counts to the path's product", |t| t.bbr.spread = false),
    law("bbr-arrivals", "a rate sample lasts as long as arrivals were apart", |t| t.bbr.arrivals = false),
    law("bbr-least-pace", "a path is paced at a datagram a round trip at least", |t| t.bbr.least_pace = false),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_law_has_a_name_of_its_own_and_something_to_switch_off() {
        let names: BTreeSet<&str> = Law::all().iter().map(|law| law.name).collect();
        assert_eq!(names.len(), Law::all().len());
        for law in Law::all() {
            assert_ne!(Tuning::neutral(*law), Tuning::default(), "{law:?}");
            assert_eq!(Law::named(law.name).map(|found| found.name), Some(law.name));
        }
        assert!(Law::named("no-law").is_none());
    }

    #[test]
    fn no_two_laws_are_switched_off_alike() {
        let all = Law::all();
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                assert_ne!(Tuning::neutral(*one), Tuning::neutral(*other), "{one:?} and {other:?}");
            }
        }
    }
}
