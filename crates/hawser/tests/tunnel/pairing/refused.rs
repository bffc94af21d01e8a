//! Networks and hosts that do not let a bond come about: a login page before the server, a host that makes no NAT.

use super::*;
use crate::footprint::Footprint;
use crate::home::nft;

/// What the provider of both links does with who has not logged in: HTTP is answered by it, nothing else passes.
const LOGIN_FIRST: &str = "table inet login { \
    chain prerouting { type nat hook prerouting priority dstnat; iifname { one, two } meta nfproto ipv4 tcp dport 80 redirect; }; \
    chain forward { type filter hook forward priority 0; iifname { one, two } drop; }; }";
/// Nobody may change what a container may not: whether it forwards, among others.
const READ_ONLY: &str = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"";
/// A kernel without nf_tables, as `nft` tells it.
const NO_NFTABLES: &str = "printf '#!/bin/sh\\necho \"Error: Could not process rule: Operation not supported\" >&2\\nexit 1\\n' >\"$0\" && \
    chmod +x \"$0\" && mount --bind \"$0\" \"$(command -v nft)\" && exec \"$@\"";

/// Answers every request at port 80 of a namespace by a login page, until the test ends.
fn ask_for_a_login(namespace: &Namespace) {
    use std::io::{Read as _, Write as _};
    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:80")).expect("entered").expect("a listener");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: http://login.hotel.example/\r\n\r\n");
        }
    });
}

impl Scene {
    /// Runs `hawser` where a host is kept from something, as a script sees to.
    fn kept_from(&self, script: &str, namespace: &Namespace, who: &str, words: &str) -> Said {
        let mut command = namespace.command("unshare");
        let stand_in = self.home.folder().join(format!("{who}-nft"));
        command.args(["--mount", "sh", "-c", script]).arg(stand_in).arg(env!("CARGO_BIN_EXE_hawser"));
        self.said(command, who, words)
    }

    fn folder(&self, who: &str) -> PathBuf {
        self.file(who).parent().expect("a folder").to_owned()
    }
}

#[test]
fn a_captive_portal_before_the_server_is_named_with_its_cure_and_nothing_is_left() {
    let scene = Scene::new("captive");
    let home = &scene.home;
    let token = scene.serve();
    ask_for_a_login(&home.router);
    nft(&home.router, LOGIN_FIRST);
    let before = Footprint::of(&home.local);
    let said = scene.join(&token, "");
    assert_eq!(said.status, Some(1), "{}", said.err);
    let sentence = "a captive portal answers in the place of 198.51.100.7 by one: http://login.hotel.example/";
    assert!(said.err.contains(sentence), "{}", said.err);
    let cure = "log in there by one: curl --interface one http://198.51.100.7/ shows it; then join again";
    assert!(said.err.contains(cure), "{}", said.err);
    assert!(said.took < Duration::from_secs(20), "{:?}", said.took);
    before.assert_same(&home.local, "before a login");
    assert!(!scene.folder("home").exists(), "no file is left");
    // Somebody has logged in; the token is as good as before.
    run(&home.router, "nft", "delete table inet login");
    let said = scene.join(&token, "");
    assert_eq!(said.status, Some(0), "{}", said.err);
}

#[test]
fn a_host_that_may_make_no_nat_says_so_with_the_cure_and_neither_serves_nor_keeps_a_file() {
    let scene = Scene::new("no-nat");
    let Home { local, remote, .. } = &scene.home;
    let table = [
        ("read-only", READ_ONLY, "no NAT for peers is allowed here: the system does not forward", "sysctl -w net.ipv4"),
        ("no-nftables", NO_NFTABLES, "the kernel lacks", "CONFIG_NF_TABLES"),
    ];
    let before = [local, remote].map(Footprint::of);
    for (who, script, sentence, cure) in table {
        let said = scene.kept_from(script, remote, who, "serve");
        assert_eq!(said.status, Some(1), "{who}: {}", said.err);
        assert!(said.err.contains(sentence) && said.err.contains(cure), "{who}: {}", said.err);
        assert!(said.out.is_empty(), "{who}: no token is printed: {}", said.out);
        before[1].assert_same(remote, who);
        assert!(!scene.folder(who).exists(), "{who}: no file is left");
    }
    // The same at home, for the network that is to go by the tunnel.
    let token = scene.serve();
    let said = scene.kept_from(NO_NFTABLES, local, "home", &format!("join {token} --serve lan0"));
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("the kernel lacks") && said.err.contains("undone: "), "{}", said.err);
    before[0].assert_same(local, "after join");
    assert!(!scene.folder("home").exists(), "no file is left");
}
