//! The program on packets, on interfaces and on traffic, in network namespaces of the tests' own. They need root.

mod frame;
mod host;
mod life;
mod mutations;
mod program;
mod traffic;
mod trains;
