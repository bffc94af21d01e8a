//! The kernel's MPTCP as it is, between namespaces that are joined by links: its path manager, ours, and what it sends.

mod manager;
mod real;
mod subflows;
mod support;
