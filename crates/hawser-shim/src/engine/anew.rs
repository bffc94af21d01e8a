//! A SYN of a flow that lives. Anybody can write one, so by itself it turns nothing; but a host that crashed begins its
//! flows anew, by other ways than before (RFC 9293 section 3.5.1).
//!
//! 1. One that comes by another way than the flow goes back by is remembered with that way, and the peer is asked along
//!    the flow's own (RFC 9000 section 9.3.3): [`Engine::begins_anew`].
//! 2. Anything else of the flow, or the peer's answer from the flow's end, ends that ([`Engine::is_still_there`]).
//! 3. Where neither comes for a second, and the SYN does again, the flow goes by the other way: there the kernel's
//!    challenge is answered (RFC 9293 section 3.10.7.4).

use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::EndpointAddr;
use hawser_scion::conn::WayBack;

use super::lanes::Way;
use super::{Engine, Outside, PeerId};
use crate::flow::FlowId;

/// How long the peer has to answer: as long as TCP waits with its second SYN (RFC 6298 section 2.1).
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Steps 1 and 3: whether a flow that lives goes back by the way of a SYN from now on.
    pub(super) fn begins_anew(&mut self, now: Time, id: FlowId, by: WayBack, outside: &mut impl Outside) -> bool {
        let Some(lane) = self.lane_mut(id).filter(|lane| !lane.is_ours && lane.way != Way::Back(by)) else {
            return true;
        };
        match lane.anew {
            Some((asked, since)) if asked == by => now.since(since) >= ANSWERS_WITHIN,
            _ => {
                lane.anew = Some((by, now));
                let (peer, way) = (lane.peer, lane.way);
                self.ask_who(now, peer, way, outside);
                false
            }
        }
    }

    /// Step 2: the peer answers from this end.
    pub(super) fn is_still_there(&mut self, peer: PeerId, end: EndpointAddr) {
        let is_there = |way| matches!(way, Way::Back(back) if back.end == end);
        let lanes = self.lanes.iter_mut().flatten().filter(|lane| lane.peer == peer && is_there(lane.way));
        lanes.for_each(|lane| lane.anew = None);
    }
}
