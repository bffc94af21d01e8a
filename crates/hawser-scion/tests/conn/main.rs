//! Connections and sockets over veth pairs between namespaces. Needs root.

mod basics;
mod quic;
mod renewal;
mod scmp;
mod support;
mod threaded;
