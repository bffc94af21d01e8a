//! `hawser up` as it runs: two portals as processes in namespaces of their own. Needs root.

mod dual;
mod ends;
mod lab;
mod links;
mod living;
mod protection;
mod reload;
mod sandbox;
mod traffic;
mod transports;
