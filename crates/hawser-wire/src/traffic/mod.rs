//! Traffic between namespaces, and what of it arrived: for the demo, tests and measures.
//!
//! All figures come from what the receiver got and when; clocks are one machine's, so that one-way times mean
//! something.

mod duplex;
mod flows;
mod listener;
mod ping;
mod process;
mod ready;
mod reliable;
mod sample;
mod stream_info;
mod streams;
mod tcp;
mod timeline;
mod udp;

pub use duplex::{Duplex, DuplexReport, ReadyDuplex, RunningDuplex};
pub use flows::{ConnectedFlows, FlowReport, Flows, FlowsReport, RunningFlows, Towards};
pub use ping::{Echo, Ping, PingReport, RunningPing};
pub use process::ProcessUsage;
pub use reliable::{Reliable, Stack};
pub use sample::Sample;
pub use stream_info::StreamInfo;
pub use streams::{RunningStreams, StreamsReport, TcpStreams};
pub use tcp::{Congestion, RunningTcp, TcpTransfer};
pub use timeline::Timeline;
pub use udp::{Arrival, RunningUdp, UdpFlow, UdpReport};
