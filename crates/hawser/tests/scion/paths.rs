//! Transcripts of `hawser scion paths`. `TRYCMD=overwrite` writes them anew; read the difference before it is
//! committed.

use std::collections::BTreeMap;

use hawser_scion::IsdAs;
use hawser_scion::daemon::proto;
use prost_types::Duration;

use crate::daemon::{StandIn, Table, told};

/// Milliseconds in nanoseconds.
const MS: i32 = 1_000_000;

fn as_number(text: &str) -> IsdAs {
    text.parse().expect("an AS")
}

/// A path with latencies in milliseconds and bandwidths in kbit/s; a latency below 0 is not announced.
fn announced(way: &str, latency: &[i32], bandwidth: &[u64]) -> proto::Path {
    let latency = latency.iter().map(|&ms| Duration { seconds: 0, nanos: if ms < 0 { -1 } else { ms * MS } });
    proto::Path { latency: latency.collect(), bandwidth: bandwidth.to_vec(), ..told(way) }
}

/// What the daemon of 1-ff00:0:111 in the six-AS network might say.
fn table() -> Table {
    let to_112 = vec![
        announced(
            "1-ff00:0:111 1 4 1-ff00:0:110 1 3 1-ff00:0:120 4 2 1-ff00:0:112",
            &[5, 1, 5, 1, 5],
            &[100_000, 0, 1_000_000, 0, 50_000],
        ),
        proto::Path { mtu: 1400, ..announced("1-ff00:0:111 2 3 1-ff00:0:120 4 2 1-ff00:0:112", &[2, 0, 2], &[0; 3]) },
        announced("1-ff00:0:111 1 4 1-ff00:0:110 5 1 1-ff00:0:112", &[5, -1, 5], &[100_000, 0, 1_500]),
        told("1-ff00:0:111 3 3 1-ff00:0:112"),
    ];
    let torn = proto::Path { mtu: 70_000, ..told("1-ff00:0:111 2 9 1-ff00:0:110") };
    let inside = proto::Path { raw: Vec::new(), interface: None, interfaces: Vec::new(), ..told("1-1 1 1 1-2") };
    Table {
        local: proto::AsResponse { isd_as: as_number("1-ff00:0:111").to_bits(), core: false, mtu: 1472 },
        paths: BTreeMap::from([
            (as_number("1-ff00:0:112"), to_112),
            (as_number("1-ff00:0:110"), vec![told("1-ff00:0:111 1 4 1-ff00:0:110"), torn]),
            (as_number("1-ff00:0:111"), vec![inside]),
            (as_number("2-ff00:0:210"), Vec::new()),
        ]),
        interfaces: BTreeMap::new(),
        ports: (31_000, 32_767),
    }
}

#[test]
fn paths_are_listed_as_written_down() {
    let daemon = StandIn::with_table(table());
    let cases = trycmd::TestCases::new();
    cases.env("NO_COLOR", "1").env("COLUMNS", "100").env("SCION_DAEMON", daemon.address().to_string());
    cases.case("tests/scion/cmd/*.trycmd");
    cases.run();
}
