//! `scion showpaths` and `hawser scion paths` list the same paths, in the six-AS network. Needs root, and go once.

use hawser_lab::localnet::{Host, Localnet, Topology};
use serde_json::Value;

/// More paths than there are.
const ALL: &str = "100";
/// Looks at paths that still come and go, at most.
const LOOKS: usize = 20;

/// What a program prints, run on a host.
fn run(host: &Host, program: &str, arguments: &[&str]) -> Value {
    let out = host.namespace.command(program).args(arguments).output().expect("it runs");
    assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// All that both tell of each path, but for the expiry, which goes on with every beacon.
fn paths(shown: &Value) -> Vec<Vec<Value>> {
    let keys = ["fingerprint", "hops", "sequence", "next_hop", "mtu", "latency", "status"];
    let paths = shown["paths"].as_array().expect("paths");
    paths.iter().map(|path| keys.map(|key| path[key].clone()).to_vec()).collect()
}

#[test]
fn both_list_the_same_paths_in_the_same_order() {
    let topology = Topology::named("six-as", None).expect("it comes along");
    let net = Localnet::up(&topology).expect("the network comes up (needs root, and go)");
    let scion = net.services.join("scion").to_string_lossy().into_owned();
    let mut most = 0;
    for (from, to) in [
        ("1-ff00:0:111", "1-ff00:0:112"),
        ("1-ff00:0:112", "2-ff00:0:211"),
        ("2-ff00:0:211", "1-ff00:0:111"),
        ("1-ff00:0:110", "2-ff00:0:210"),
    ] {
        let host = net.host(from).expect("a host");
        let daemon = host.daemon.to_string();
        let theirs =
            || run(host, &scion, &["showpaths", to, "--sciond", &daemon, "--format", "json", "--maxpaths", ALL]);
        let ours = || {
            run(host, env!("CARGO_BIN_EXE_hawser"), &["scion", "paths", to, "--daemon", &daemon, "--json", "--probe"])
        };
        // A network that has just come up may find more paths between two looks.
        let looks = (0..LOOKS).map(|_| (theirs(), ours(), theirs()));
        let (theirs, ours, _) =
            looks.into_iter().find(|(one, _, other)| paths(one) == paths(other)).expect("paths that stay as they are");
        assert_eq!(paths(&theirs), paths(&ours), "from {from} to {to}");
        for key in ["local_isd_as", "destination"] {
            assert_eq!(theirs[key], ours[key]);
        }
        assert!(paths(&ours).iter().all(|path| path.last().is_some_and(|status| status == "alive")), "{ours:#}");
        most = most.max(paths(&ours).len());
    }
    assert!(most >= 4, "there is something to compare: {most}");
}
