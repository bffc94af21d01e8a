//! Echo requests answered, as many as a host should (RFC 1122 section 3.2.2.6, for SCMP).

use std::net::SocketAddr;
use std::time::Instant;

use hawser_net::link::udp::UdpLink;
use hawser_net::link::{Ecn, Link, Route, SendBatch};

use super::port::Port;
use crate::addr::EndpointAddr;
use crate::packet::{Echo, Packet, ScmpView, Template};

/// Answers a second, and at once: enough for people and monitors, too few to be of use as a reflector
/// (Linux limits ICMP to 1000 a second with bursts of 50, `icmp_msgs_per_sec`, for a whole host).
const ANSWERS_PER_SECOND: f64 = 100.0;
const BURST: f64 = 20.0;

/// Answers to echo requests, and how many there may be. Begins with a burst's allowance. For one thread.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// What may be answered now, as of when; unknown before the first request.
    allowance: Option<(f64, Instant)>,
    message: Vec<u8>,
    batch: Option<SendBatch>,
}

impl Answers {
    /// Answers a request along the path it came by, through who handed it on. What cannot go now is not answered.
    pub(super) fn answer(
        &mut self,
        port: &Port,
        link: &mut UdpLink,
        remote: SocketAddr,
        packet: &Packet<'_>,
        echo: Echo<'_>,
    ) {
        let (isd_as, host) = packet.source();
        let to = EndpointAddr::new(isd_as, SocketAddr::new(host, 0));
        let back = packet.dataplane().reversed().ok();
        let template = back.and_then(|back| Template::new(port.local.endpoint, to, &back, port.local.flow).ok());
        let (Some(template), true) = (template, self.may_answer(Instant::now())) else {
            return port.counters.echoes_refused.add(1);
        };
        template.write_scmp(&ScmpView::EchoReply(echo), &mut self.message);
        let batch = self.batch.get_or_insert_default();
        batch.clear();
        let message = &self.message;
        let copy = |room: &mut [u8]| {
            room.copy_from_slice(message);
            room.len()
        };
        let route = Route { remote, source: None, ecn: Ecn::NotEct };
        let gone = batch.push(route, message.len(), copy).is_ok() && link.send(batch).is_ok() && batch.is_empty();
        let count = if gone { &port.counters.echoes_answered } else { &port.counters.echoes_refused };
        count.add(1);
    }

    fn may_answer(&mut self, now: Instant) -> bool {
        let (left, since) = self.allowance.unwrap_or((BURST, now));
        let left = (left + now.duration_since(since).as_secs_f64() * ANSWERS_PER_SECOND).min(BURST);
        let may = left >= 1.0;
        self.allowance = Some((if may { left - 1.0 } else { left }, now));
        may
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_is_answered_and_then_a_hundred_a_second() {
        let (mut answers, began) = (Answers::default(), Instant::now());
        let burst = (0..1000).filter(|_| answers.may_answer(began)).count();
        assert_eq!(burst, 20);
        let second = (1..=1000).filter(|ms| answers.may_answer(began + Duration::from_millis(*ms))).count();
        // Sums of parts of answers are a little less than whole.
        assert!((99..=100).contains(&second), "{second}");
    }
}
