//! The shim: unmodified TCP and UDP applications over SCION, each MPTCP subflow on a path of its own.
//!
//! 1. [`mptcp`] reads TCP segments and what MPTCP says in them; [`udp`] datagrams and their fragments.
//! 2. [`flow`] keeps each flow, main or subflow, from its SYN to its end, and those of UDP until they are silent.
//! 3. [`compress`] puts a few bytes in place of the headers that both ends know; [`translate`] does without UDP, as an
//!    option.
//! 4. [`engine`] gives each flow a path, and another one when that dies; [`packet`] drives it with devices and sockets.
//! 5. [`route`] knows where addresses are in SCION; [`config`] what is wanted, [`status`] what there is.
//! 6. [`kernel`] tells the kernel's path manager what to do, and hears what it does.
//! 7. [`host`] has interfaces, addresses and rules; [`manager`] a subflow wherever there is a path; [`run`] brings all
//!    together.
//!
//! The first three and [`engine`] are sans-IO: time and randomness are arguments. README.md tells the story.

pub mod compress;
pub mod config;
pub mod engine;
pub mod flow;
pub mod host;
pub mod kernel;
pub mod manager;
pub mod mptcp;
pub mod packet;
pub mod route;
pub mod run;
pub mod status;
pub mod translate;
pub mod udp;
