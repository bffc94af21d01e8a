//! BBR's arrows and rules.
use super::*;
