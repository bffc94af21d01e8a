//! The page of a real bond, in a real Chromium. Needs root, and Debian's `chromium`.

#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../../../hawser-lab/tests/browser/mod.rs"]
mod browser;
#[cfg(feature = "page-test")]
mod demo;
mod keyboard;
#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "../tunnel/lab.rs"]
mod lab;
#[cfg(feature = "page-test")]
#[path = "../support/limited.rs"]
mod limited;
#[cfg(feature = "page-test")]
mod limits;
mod seen;
mod stage;
#[cfg(feature = "page-test")]
mod thorough;
