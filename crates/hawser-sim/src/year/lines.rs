//! The lines of a home, as they are, and as the faults on them make them.

use super::fault::Fault;
use super::kind::Kind;
use crate::net::spec::{mbit_rate, millis};
use crate::net::{LinkSpec, Loss, Way, link};
use hawser_core::units::ByteCount;
use std::time::Duration;

/// A DSL line, which has IPv4 addresses of its own, and IPv6 by another socket.
pub const DSL: usize = 0;
/// See [`DSL`].
pub const DSL6: usize = 1;
/// LTE behind a provider's NAT: of the second tier, as it is metered.
pub const LTE: usize = 2;
/// Starlink behind a provider's NAT.
pub const STARLINK: usize = 3;
/// The links whose pipes are lines; [`DSL6`] goes by those of [`DSL`].
pub const LINES: [usize; 3] = [DSL, LTE, STARLINK];
/// Their names in reports.
pub const NAMES: [&str; 3] = ["dsl", "lte", "starlink"];

/// The line that a link goes by.
pub fn line_of(link: usize) -> usize {
    if link == DSL6 { DSL } else { link }
}

/// All links as they are where nothing is wrong.
pub fn normal() -> Vec<LinkSpec> {
    let dsl = link(50.0, 20.0).up(|way| way.set_rate(10.0)).mtu(1492).queue_ms(150.0);
    let lte = link(30.0, 50.0).up(|way| way.set_rate(10.0)).jitter(8.0).queue_ms(200.0).metric(1).nat(60);
    let starlink = link(100.0, 45.0).up(|way| way.set_rate(15.0)).jitter(5.0).loss(0.001).queue_ms(100.0).nat(60);
    vec![dsl.clone(), dsl.ipv6().socket_of(DSL), lte, starlink]
}

impl Fault {
    /// Whether a line is not as it should be while this lasts.
    pub fn is_on(&self, line: usize) -> bool {
        match self.row.kind {
            Kind::AllCut | Kind::KeyChange => true,
            Kind::FirstTier => line != LTE,
            _ => self.line == Some(line),
        }
    }

    /// What it makes of a way of a line that it is on; between 0 and 1 `severity` says how much.
    pub fn shape(&self, up: bool, way: &mut Way) {
        let between = |low: f64, high: f64| low * (high / low).powf(self.severity);
        match self.row.kind {
            Kind::Reconnect | Kind::Cut | Kind::Down | Kind::FirstTier | Kind::AllCut | Kind::Unplugged => {
                way.hole = true
            }
            Kind::CutUp => way.hole |= up,
            Kind::CutDown => way.hole |= !up,
            Kind::Flapping => way.hole |= self.phase,
            Kind::LossBursts => way.loss = Loss::Bursts { enter: between(0.002, 0.03), leave: 0.1 },
            Kind::Loss => way.loss = Loss::Random(between(0.01, 0.3)),
            Kind::KeyChange => way.loss = Loss::Random(0.2),
            Kind::BitErrors => way.bit_errors = between(0.001, 0.05),
            Kind::Reordering => (way.jitter, way.reorders) = (millis(between(5.0, 80.0)), true),
            Kind::Duplication => way.duplicates = between(0.01, 0.5),
            Kind::DelayJump => way.delay += millis(between(20.0, 600.0)) / 2,
            Kind::Jitter => way.jitter += millis(between(20.0, 300.0)),
            Kind::Bufferbloat => {
                way.rate = mbit_rate(1.0);
                way.queue = way.rate.bytes_in(Duration::from_secs(4));
            }
            Kind::RateFall => way.rate = way.rate.scale(between(0.01, 0.5)),
            Kind::MtuTold | Kind::MtuSilent => {
                way.mtu = way.mtu.min(between(1_280.0, 1_420.0) as usize);
                way.reports |= self.row.kind == Kind::MtuTold;
            }
            Kind::Stall => way.stalled = true,
            Kind::StallDown => way.stalled |= !up,
            _ => {}
        }
        // Two full packets, whatever the rate.
        way.queue = way.queue.max(ByteCount(3_000));
    }

    /// Whether the portal is told that a socket cannot be used meanwhile.
    pub fn takes(&self, socket: usize) -> bool {
        match self.row.kind {
            Kind::Reconnect | Kind::Down | Kind::Unplugged => self.line == Some(line_of(socket)),
            Kind::Family => socket == if self.severity < 0.5 { DSL } else { DSL6 },
            _ => false,
        }
    }
}
