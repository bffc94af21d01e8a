//! Engines under virtual time.

mod layer4;
mod moves;
mod paths;
mod sim;
mod strangers;
mod talk;
mod traffic;
mod udp;
mod udp_strangers;

use crate::mptcp::Key;

const KEYS: [Key; 2] = [Key([1; 8]), Key([2; 8])];
