//! Network configuration against the running kernel, in network namespaces that each test makes for itself.
//!
//! Needs root (and iproute2 as the second opinion); without it every test fails and says so.

mod apply;
mod killed;
mod lab;
mod many;
mod nft;
mod route;
mod rp_filter;
mod rules;
mod watch;
