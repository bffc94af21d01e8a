//! What the engine counts.

use super::notice::Reason;

/// Declares why packets are dropped, once.
macro_rules! drops {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// Why a packet or datagram goes no further. There is no default. Plain value.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Drop {
            $($(#[$doc])* $variant,)*
        }

        impl Drop {
            /// All of them, in order.
            pub const ALL: [Drop; [$($name),*].len()] = [$(Drop::$variant),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

drops! {
    /// Neither TCP nor UDP, either way.
    OtherProtocol => "other_protocol",
    /// From this host: the map has no such destination. Answered with ICMP.
    NoRoute => "no_route",
    /// From this host: no path leads there. Answered with ICMP.
    NoPath => "no_path",
    /// From this host: paths are not known yet, and too many packets wait for paths already.
    Waiting => "waiting",
    /// From this host: a subflow has no path that its connection does not use already. Answered with RST.
    NoPathLeft => "no_path_left",
    /// From this host: larger than the path takes. Answered with ICMP.
    TooLarge => "too_large",
    /// From this host: the source is none of its addresses.
    NotOurs => "not_ours",
    /// From this host: the socket takes nothing now.
    SocketFull => "socket_full",
    /// From this host: the socket refused it.
    Refused => "refused",
    /// From this host, where TCP is SCION's layer 4: it is not whole, or its checksum is wrong.
    Damaged => "damaged",
    /// From this host: UDP to somebody who never acknowledged anything, more than came from there.
    Unproven => "unproven",
    /// From this host: there are too many peers, connections, flows or ports.
    Full => "full",
    /// Segments and fragments of no flow, either way.
    Stray => "stray",
    /// From a peer: no datagram.
    Malformed => "malformed",
    /// From a peer: a context that nobody gave.
    UnknownContext => "unknown_context",
    /// From a peer: addresses that are not the peer's or not this host's.
    Foreign => "foreign",
    /// From a peer: it joins by a token that no connection has.
    UnknownToken => "unknown_token",
    /// From a peer: it claims to be of a flow, and its numbers are not.
    Implausible => "implausible",
    /// From a peer that never acknowledged anything: it has as many flows of UDP as such a one may.
    Strangers => "strangers",
    /// From a peer: it is nobody's answer to a probe.
    UnknownEcho => "unknown_echo",
    /// From a peer: a probe of somebody without flows.
    StrangeProbe => "strange_probe",
    /// From a peer: TCP as SCION's layer 4, and this host's is UDP; or a flow's segment by the other one than the
    /// flow's.
    Layer4 => "layer4",
    /// From a peer: this host's kernel does not take it now.
    TunRefused => "tun_refused",
}

/// What an engine counted. Starts at zero. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters {
    drops: [u64; Drop::ALL.len()],
    deaths: [u64; Reason::ALL.len()],
    moves: [u64; Reason::ALL.len()],
    /// Flows that began.
    pub opened: u64,
    /// Flows that were freed.
    pub freed: u64,
    /// Flows of strangers that made room for others.
    pub pushed_out: u64,
    /// Flows of UDP that made room for others where there were as many as may be.
    pub evicted: u64,
    /// Paths that were dead and work again.
    pub back: u64,
    /// Probes that were sent.
    pub probes: u64,
    /// Probes that were answered for peers.
    pub echoes: u64,
    /// Subflows that were given up because their path was dead and no other was left.
    pub lost: u64,
    /// Notices that nobody took in time.
    pub lost_notices: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            drops: [0; Drop::ALL.len()],
            deaths: [0; Reason::ALL.len()],
            moves: [0; Reason::ALL.len()],
            opened: 0,
            freed: 0,
            pushed_out: 0,
            evicted: 0,
            back: 0,
            probes: 0,
            echoes: 0,
            lost: 0,
            lost_notices: 0,
        }
    }
}

impl Counters {
    /// How often something was dropped for this reason.
    pub const fn dropped(&self, why: Drop) -> u64 {
        self.drops[why as usize]
    }

    /// All drops that there were, by reason.
    pub fn drops(&self) -> impl Iterator<Item = (Drop, u64)> + '_ {
        Drop::ALL.into_iter().map(|why| (why, self.dropped(why)))
    }

    /// How often a path died for this reason.
    pub const fn died(&self, because: Reason) -> u64 {
        self.deaths[because as usize]
    }

    /// How often a flow was moved to another path for this reason.
    pub const fn moved(&self, because: Reason) -> u64 {
        self.moves[because as usize]
    }

    pub(crate) fn add(&mut self, why: Drop, more: u64) {
        self.drops[why as usize] += more;
    }

    pub(super) fn drop(&mut self, why: Drop) {
        self.drops[why as usize] += 1;
    }

    pub(super) fn die(&mut self, because: Reason) {
        self.deaths[because as usize] += 1;
    }

    pub(super) fn move_flow(&mut self, because: Reason) {
        self.moves[because as usize] += 1;
    }
}
