//! What a peer notices of an attack: flows both ways and a ping, in peace first.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_wire::Rate;
use hawser_wire::traffic::{PingReport, UdpFlow, UdpReport};

use crate::lab::{LOCAL, Lab, REMOTE, ms, parse};

/// How long each spell of traffic goes on.
pub const SPELL: Duration = Duration::from_secs(4);
/// Of what is sent, this share must arrive (docs/security.md).
const GOODPUT: f64 = 0.9;
/// A ping may take this much longer than in peace, in ms, half of the pings at least: others use the processors, too.
const LATER_MS: f64 = 5.0;

/// Flows both ways, and a ping beside them.
pub struct Bystander {
    flows: [UdpReport; 2],
    ping: PingReport,
}

impl Bystander {
    /// Sends for a [`SPELL`].
    pub fn watch(lab: &Lab) -> Bystander {
        let ways = [(&lab.local, &lab.remote, REMOTE), (&lab.remote, &lab.local, LOCAL)];
        let flows = ways.map(|(from, to, address)| {
            let (from, to, destination) = (from.clone(), to.clone(), SocketAddr::new(parse(address), 5_001));
            let flow = UdpFlow {
                from,
                to,
                destination,
                payload: 1_380,
                rate: Rate::mbit(10.0),
                duration: SPELL,
                linger: ms(300),
            };
            flow.start().expect("a flow")
        });
        let ping = lab.ping(REMOTE, ms(20), SPELL).run().expect("a ping");
        Bystander { flows: flows.map(|flow| flow.finish().expect("a flow")), ping }
    }

    fn median_ms(&self) -> f64 {
        self.ping.round_trips().percentile(50.0).expect("answers")
    }

    /// Fails where an attack cost more than docs/security.md says.
    pub fn assert_unharmed(&self, peace: &Bystander, said: &str) {
        for flow in &self.flows {
            let share = flow.arrivals.len() as f64 / flow.sent as f64;
            assert!(share >= GOODPUT, "{share} of the datagrams; {said}");
        }
        let (now, usual) = (self.median_ms(), peace.median_ms());
        assert!(now <= usual + LATER_MS, "a ping takes {now} ms, {usual} in peace; {said}");
    }
}
