//! The shim's place in the host, and the kernel's MPTCP beside it, in network namespaces. Needs root.

mod host;
mod kernel;
