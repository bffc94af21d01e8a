//! Every workload over two namespaces joined by a link whose figures are known. Needs root; uses the programs ip, ss,
//! iperf3.

mod lab;
mod others;
mod streams;
