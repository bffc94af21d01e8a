//! The harm that is done to the first home's active member, and how it ends.

use std::time::Duration;

use hawser_lab::hub::outward;
use rustix::process::Signal;

use crate::world::{MEMBERS, World, told};

/// From the traffic's beginning to the harm.
const BEFORE: Duration = Duration::from_secs(2);
/// The same where it is judged by what the traffic does by itself in as long a time (`Pinged::gap_before_ms`).
const LONG_BEFORE: Duration = Duration::from_millis(4500);
/// The same with what is done before: a member drains within seconds, and machines begin anew within one.
const PREPARED: Duration = Duration::from_secs(8);

/// What is done to the first home's active member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// kill -9 of its process; its machine, and FRR there, go on.
    Killed,
    /// The same of it and of its standby, at once.
    BothKilled,
    /// Killed after the other machines began anew, whom it told of its flows.
    Rebooted,
    /// The same after it had the flows from another one: nobody tells the other machines of them.
    RebootedSince,
    /// All that its machine sends, and all that comes, is lost.
    Silent,
    /// Its process is stopped (SIGSTOP), and let go on.
    Stopped,
    /// The way of one of the home's links to it is cut, both ways.
    LinkCut,
    /// What homes send to it is lost; or what it sends to homes.
    Deaf,
    Mute,
    /// What the routing daemons of its machine and of the router say to each other is lost.
    Unrouted,
    /// SIGTERM: it drains, and ends.
    Drained,
    /// Nothing: what the traffic does by itself.
    None,
}

impl Harm {
    /// What was done before, under the same traffic.
    pub fn prepare(self, world: &mut World) {
        if self == Self::RebootedSince {
            let member = world.active(0);
            for words in [&["drain"][..], &["drain", "--undo"]] {
                let out = world.hub_command(member, words);
                assert!(out.status.success(), "{}", told(&out));
            }
        }
        if matches!(self, Self::Rebooted | Self::RebootedSince) {
            let active = world.active(0);
            (0..MEMBERS.len()).filter(|member| *member != active).for_each(|member| world.forget_flows(member));
        }
    }

    /// To whom it is done.
    pub fn on(self, world: &World) -> Vec<usize> {
        let active = world.active(0);
        if self == Self::BothKilled { vec![active, world.holding(0, "standby")] } else { vec![active] }
    }

    pub fn begin(self, world: &World, members: &[usize]) {
        let member = members[0];
        let [own, _] = outward(member);
        let (to, from) = (format!("ip daddr {own}"), format!("ip saddr {own}"));
        match self {
            Self::Killed | Self::BothKilled | Self::Rebooted | Self::RebootedSince => {
                members.iter().for_each(|member| world.signal(*member, Signal::KILL));
            }
            Self::Silent => world.silence(member, true),
            Self::Stopped => world.signal(member, Signal::STOP),
            Self::LinkCut => {
                world.lose(&[format!("ip saddr 192.0.1.1 {to}"), format!("ip daddr 192.0.1.1 {from}")]);
            }
            Self::Deaf => world.lose(&[to]),
            Self::Mute => world.lose(&[from]),
            Self::Unrouted => world.unroute(member),
            Self::Drained => world.signal(member, Signal::TERM),
            Self::None => {}
        }
    }

    pub fn end(self, world: &World, member: usize) {
        match self {
            Self::Silent => world.silence(member, false),
            Self::Stopped => world.signal(member, Signal::CONT),
            Self::LinkCut | Self::Deaf | Self::Mute => world.lose_no_more(),
            Self::Unrouted => world.route_again(),
            _ => {}
        }
    }

    /// A planned move is over soon; of the others it is not known when they are.
    pub fn is_calm(self) -> bool {
        matches!(self, Self::Drained | Self::None)
    }

    /// For how long there is traffic before.
    pub fn comes_after(self) -> Duration {
        match self {
            Self::Rebooted | Self::RebootedSince => PREPARED,
            Self::Drained | Self::None => LONG_BEFORE,
            _ => BEFORE,
        }
    }

    /// Its process does not outlive it.
    pub fn ends_it(self) -> bool {
        matches!(self, Self::Killed | Self::BothKilled | Self::Rebooted | Self::RebootedSince | Self::Drained)
    }
}
