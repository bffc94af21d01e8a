//! The program's commands, as they are typed. Some need root, etcd, tmux or tshark, and say so.

#[path = "../support/asked.rs"]
mod asked;
mod check;
mod contrib;
#[path = "../support/copied.rs"]
mod copied;
#[path = "../support/disk.rs"]
mod disk;
#[expect(dead_code, reason = "tests/hub takes the rest")]
#[path = "../support/etcd.rs"]
mod etcd;
#[path = "../support/etcd_hub.rs"]
mod etcd_hub;
#[cfg(feature = "top")]
#[path = "../../src/cmd/top/fixture.rs"]
mod fixture;
mod hub_etcd;
mod hub_hangs;
mod hub_join;
mod hub_status;
mod keys;
#[expect(dead_code, reason = "tests/tunnel takes the rest")]
#[path = "../tunnel/lab.rs"]
mod lab;
#[cfg(feature = "pages")]
mod pages;
mod shim;
#[cfg(feature = "scion")]
mod shim_status;
#[cfg(feature = "scion")]
mod shim_up;
#[cfg(feature = "scion")]
#[path = "../support/shims.rs"]
mod shims;
mod status;
#[cfg(feature = "top")]
#[path = "../support/tmux.rs"]
mod tmux;
#[cfg(feature = "top")]
mod top;
mod transcripts;
#[path = "../support/tshark.rs"]
mod tshark;
mod wireshark;
