//! What is known of the way that a path leads: its times, its datagrams' size, and what it does to trains and marks.

use crate::path::constants::MAX_ACK_DELAY;
use crate::path::ecn::EcnValidation;
use crate::path::loss_meter::LossEpisode;
use crate::path::oneway::OneWayDelay;
use crate::path::pmtu::Pmtu;
use crate::path::rtt::RttEstimator;
use crate::path::trains::TrainWatch;
use crate::session::Settings;
use crate::session::constants::{BATCH_BYTES, INITIAL_RTT};
use crate::transport::Transport;
use crate::units::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// What a path has learnt of its way. Begins with nothing, and again where the path leads another way; its path owns
/// it.
pub(in crate::session) struct Way {
    pub rtt: RttEstimator,
    pub oneway: OneWayDelay,
    pub pmtu: Pmtu,
    /// Whether datagrams arrive that leave as one train.
    pub trains: TrainWatch,
    pub ecn: EcnValidation,
    pub episode: LossEpisode,
    /// When it began: what was sent before says nothing of it.
    pub moved_at: Time,
}

impl Way {
    /// One to `remote` that nothing was sent on.
    pub fn new(transport: Transport, remote: &SocketAddr, settings: &Settings) -> Self {
        Way {
            rtt: RttEstimator::new(INITIAL_RTT),
            oneway: OneWayDelay::new(),
            pmtu: untried_mtu(transport, remote, settings),
            trains: TrainWatch::default(),
            ecn: EcnValidation::default(),
            episode: LossEpisode::default(),
            moved_at: Time::ZERO,
        }
    }

    /// From now on it is another one, of which nothing is known but perhaps a round trip (RFC 9000 section 9.4).
    pub fn restart(&mut self, now: Time, round_trip: Duration, pmtu: Pmtu) {
        self.rtt = RttEstimator::new(round_trip);
        self.oneway = OneWayDelay::new();
        self.pmtu = pmtu;
        self.trains = TrainWatch::default();
        self.ecn.restart();
        self.episode = LossEpisode::default();
        self.moved_at = now;
    }

    /// Bytes of a datagram that it carries.
    pub fn mtu(&self) -> usize {
        usize::from(self.pmtu.current())
    }

    /// How long without word before something is wrong.
    pub fn probe_timeout(&self) -> Duration {
        self.rtt.pto(MAX_ACK_DELAY)
    }
}

/// The MTU search of a way that nothing was sent on. A datagram larger than a batch would wait for ever.
pub(super) fn untried_mtu(transport: Transport, remote: &SocketAddr, settings: &Settings) -> Pmtu {
    let link_mtu = settings.max_link_mtu.min(BATCH_BYTES as u16);
    let overhead = transport.overhead(remote) as u16;
    match (transport.fixed_size(), transport.said_size(remote)) {
        (Some(size), _) => Pmtu::fixed(size),
        (None, Some(size)) => Pmtu::believed(link_mtu.min(size.saturating_add(overhead)), overhead),
        (None, None) => Pmtu::new(link_mtu, overhead),
    }
}

const _: () = assert!(BATCH_BYTES <= 65_507 && BATCH_BYTES <= u16::MAX as usize);
