//! What differs from draft-ietf-ccwg-bbr, because a bond rides over radio links, and a ping must stay fast beside a
//! full load.
//!
//! Each departure can be switched off, and the draft's own rule holds then. docs/results/ablation.md says what each is
//! worth. The answer to CE marks is none of them: a marked round counts as congested, as the draft's section 3.7
//! demands.

/// Which departures from the draft hold. All of them by default. A plain value, the same for all paths of a portal.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Departures {
    /// Loss is congestion only beside a queue. The draft lowers its bounds when 2 % of a round are lost while probing,
    /// and after any loss otherwise: at 1 % random loss its rate decays by 2 % a round trip between probes, and at 3 %
    /// every probe fails. Here a round counts as congested that lost more than 2 % above the path's own loss beside a
    /// queue, or more than 5 % above it, queue or not. Beside a queue that stands over a round every loss is
    /// congestion, as in the draft: many flows at one bottleneck otherwise take each other's losses for the path's own.
    pub loss_beside_queue: bool,
    /// What the path loses by its nature is learned while cruising without a queue, at most 5 %, and is no congestion.
    pub own_loss: bool,
    /// Startup ends at loss only when its rate has also stopped growing for a round; beside a queue it ends with the
    /// first losses after that, and elsewhere with the round that shows their share.
    pub startup_loss: bool,
    /// The first probe after a Startup that loss, or a mark, has ended comes after half a second: a burst may have filled
    /// a short queue long before the pipe was full, and two or three seconds pass otherwise.
    pub early_probe: bool,
    /// Loss lowers the rate only where the sender filled it; else only the volume sinks.
    pub limited_loss: bool,
    /// A fall shows in limited samples too (`fall.rs`). A scheduler that stops at a path's queue limits every sample,
    /// and a maximum that only others replace would stand for ever. When several spans of a queue, sent as the model
    /// says, brought less than 0.6 of that, what they brought takes the maximum's place, and Down empties the queue.
    pub fall: bool,
    /// On a path whose rate varies the window follows the rate (`follow.rs`).
    pub follow: bool,
    /// Up ends when half a round of feedback has raised the queue and not the rate; the draft waits for three rounds.
    pub probe_queue: bool,
    /// Down paces at 0.75 while much is queued: a long path would be probed again before it is empty.
    pub deep_down: bool,
    /// A round trip within a sixteenth of the least renews it, so that PROBE_RTT comes only when needed.
    pub renewal: bool,
    /// Startup hardly paces a sender that is the limit itself, and so lets an inner slow start through.
    pub startup_pace: bool,
    /// Startup stops at a queue of half a round trip, once the rate has not grown behind it; of a quarter, where the
    /// sender has little to send and would stay in Startup for long.
    pub startup_queue: bool,
    /// Cruising is trimmed. The bandwidth is a maximum of noisy samples; paced at it a path always has a queue. While
    /// one stands, cruising takes off a hundredth a round, and gives it back slowly.
    pub trim: bool,
    /// Headroom never cuts the path's own product, and the clumps its acknowledgements come in.
    pub headroom: bool,
    /// What may be in flight in any case covers the time that hosts rest between rounds of packets.
    pub host_time: bool,
    /// What an average packet takes beyond the least round trip counts to the path's product.
    pub spread: bool,
    /// Pacing never falls below a datagram a round trip, which any path may be sent (RFC 8085 section 3.1.2). A stall
    /// or a sleep leaves a rate of some bytes a second behind, and what is sent at that rate measures no other.
    pub least_pace: bool,
    /// A rate sample lasts no shorter than from one arrival to the other by the peer's clock
    /// (`congestion/sampler.rs`): acknowledgements of a path that is full both ways come in clumps.
    pub arrivals: bool,
}

impl Departures {
    /// The draft as it is written.
    pub const NONE: Departures = Departures::all(false);

    const fn all(hold: bool) -> Departures {
        Departures {
            loss_beside_queue: hold,
            own_loss: hold,
            startup_loss: hold,
            early_probe: hold,
            limited_loss: hold,
            fall: hold,
            follow: hold,
            probe_queue: hold,
            deep_down: hold,
            renewal: hold,
            startup_pace: hold,
            startup_queue: hold,
            trim: hold,
            headroom: hold,
            host_time: hold,
            spread: hold,
            least_pace: hold,
            arrivals: hold,
        }
    }
}

impl Default for Departures {
    fn default() -> Departures {
        Departures::all(true)
    }
}
