//! Who takes part, and how they are started: each in a topology of its own.

use std::path::Path;
use std::time::Duration;

use super::super::bench::Bench;
use crate::error::LabError;
use crate::portals::Portals;
use crate::process::Process;
use crate::topology::{Bond, LinkPlan};
use crate::wireguard::WireGuard;
use crate::yardstick::Yardstick;

/// How long everyone is pinged before it counts: keys are agreed on, neighbours found.
const ACQUAINTANCE: Duration = Duration::from_millis(300);
const ACQUAINTANCE_INTERVAL: Duration = Duration::from_millis(10);

/// Of whoever lets it be chosen. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    Aes,
    ChaCha,
}

impl Cipher {
    const fn name(self) -> &'static str {
        match self {
            Self::Aes => "aes-128-gcm",
            Self::ChaCha => "chacha20-poly1305",
        }
    }
}

/// Who takes part. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    /// The kernel forwards, without a tunnel.
    Plain,
    /// wireguard-go; its cipher is ChaCha20-Poly1305.
    WireGuard,
    /// The minimal forwarder.
    Yardstick(Cipher),
    /// Hawser on this many links.
    Hawser(Cipher, Links),
}

/// How many links Hawser has. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    One,
    Two,
    Four,
}

impl Contender {
    pub(super) const HAWSER: Self = Self::Hawser(Cipher::Aes, Links::One);
    pub(super) const YARDSTICK: Self = Self::Yardstick(Cipher::Aes);

    /// What its figures are filed under.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::WireGuard => "wireguard-go",
            Self::Yardstick(Cipher::Aes) => "yardstick",
            Self::Yardstick(Cipher::ChaCha) => "yardstick-chacha",
            Self::Hawser(Cipher::Aes, Links::One) => "hawser",
            Self::Hawser(Cipher::Aes, Links::Two) => "hawser-2-links",
            Self::Hawser(Cipher::Aes, Links::Four) => "hawser-4-links",
            Self::Hawser(Cipher::ChaCha, Links::One) => "hawser-chacha",
            Self::Hawser(Cipher::ChaCha, Links::Two) => "hawser-chacha-2-links",
            Self::Hawser(Cipher::ChaCha, Links::Four) => "hawser-chacha-4-links",
        }
    }

    const fn links(self) -> &'static [LinkPlan] {
        const PLAIN: [LinkPlan; 4] = [const { LinkPlan::Plain }; 4];
        match self {
            Self::Hawser(_, Links::Four) => &PLAIN,
            Self::Hawser(_, Links::Two) => PLAIN.split_at(2).0,
            _ => PLAIN.split_at(1).0,
        }
    }

    /// The unshaped topology it runs in.
    pub(super) fn bond(self) -> Result<Bond, LabError> {
        Bond::new(self.links())
    }
}

/// What everyone needs to be started. Borrowed.
pub(super) struct Ground<'a> {
    pub bench: &'a Bench,
    /// The wireguard-go program.
    pub wireguard: &'a Path,
}

impl Ground<'_> {
    /// The program of a contender, where it is one.
    pub(super) fn program(&self, contender: Contender) -> Option<&Path> {
        match contender {
            Contender::Plain => None,
            Contender::WireGuard => Some(self.wireguard),
            Contender::Yardstick(_) => Some(&self.bench.yardstick),
            Contender::Hawser(..) => Some(&self.bench.program),
        }
    }
}

/// A contender's processes, if it has any. Ended on drop.
pub(super) enum Tunnel {
    Plain,
    WireGuard(WireGuard),
    Yardstick(Yardstick),
    Hawser(Box<Portals>),
}

impl Tunnel {
    pub(super) fn start(ground: &Ground<'_>, contender: Contender, bond: &Bond) -> Result<Self, LabError> {
        Ok(match contender {
            Contender::Plain => {
                bond.forward_plainly()?;
                Self::Plain
            }
            Contender::WireGuard => Self::WireGuard(WireGuard::start(ground.wireguard, bond)?),
            Contender::Yardstick(cipher) => {
                Self::Yardstick(Yardstick::start(&ground.bench.yardstick, bond, cipher.name())?)
            }
            Contender::Hawser(cipher, _) => {
                let traffic = format!("cipher = \"{}\"\n{}", cipher.name(), ground.bench.traffic);
                Self::Hawser(Box::new(Portals::start(&ground.bench.program, bond, &traffic)?))
            }
        })
    }

    /// Local, remote; of plain forwarding none.
    pub(super) fn processes(&self) -> Vec<&Process> {
        match self {
            Self::Plain => Vec::new(),
            Self::WireGuard(tunnel) => tunnel.processes().into(),
            Self::Yardstick(tunnel) => tunnel.processes().into(),
            Self::Hawser(portals) => portals.processes().into(),
        }
    }
}

/// A contender at work. Starts when a ping was answered; ended on drop, the tunnel first.
pub(super) struct Contest {
    pub tunnel: Tunnel,
    pub bond: Bond,
}

impl Contest {
    pub(super) fn start(ground: &Ground<'_>, contender: Contender) -> Result<Self, LabError> {
        let bond = contender.bond()?;
        let tunnel = Tunnel::start(ground, contender, &bond)?;
        if bond.ping(ACQUAINTANCE_INTERVAL, ACQUAINTANCE).run()?.echoes.is_empty() {
            let reason = format!("{} answered no ping", contender.label());
            return Err(LabError::NoFigure { figure: "ping", reason });
        }
        Ok(Self { tunnel, bond })
    }
}
