//! `hawser scion xdp` on a line in a namespace of the test's own.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Output};

use hawser_wire::{End, Namespace, veth};
use serde_json::{Value, json};

/// The interface's name at both ends.
const LINE: &str = "v0";
const PORT: u16 = 31000;

/// A host with a line, which is left without a bypass when it drops.
struct Host {
    namespace: Namespace,
    _peer: Namespace,
}

impl Host {
    fn new(tag: &str) -> Host {
        let make = |tag: String| Namespace::new(&tag).expect("this test makes network namespaces: run it as root");
        let (namespace, peer) = (make(format!("{tag}h")), make(format!("{tag}p")));
        veth(&End::new(&namespace, LINE, &["10.7.0.1/24"]), &End::new(&peer, LINE, &["10.7.0.2/24"]), 1500)
            .expect("a line");
        Host { namespace, _peer: peer }
    }

    fn xdp(&self, words: &[&str]) -> Output {
        let mut command = self.namespace.command(env!("CARGO_BIN_EXE_hawser"));
        command.args(["scion", "xdp"]).args(words).output().expect("it runs")
    }

    /// What it says where it succeeds.
    fn says(&self, words: &[&str]) -> String {
        let output = self.xdp(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// What it says where it fails.
    fn fails(&self, words: &[&str], status: i32) -> String {
        let output = self.xdp(words);
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        String::from_utf8(output.stderr).expect("text")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.xdp(&["detach"]);
    }
}

#[test]
fn the_bypass_outlives_the_command_that_attached_it() {
    let host = Host::new("cxdp");
    assert_eq!(host.says(&["status"]), "not attached\n");
    assert_eq!(host.says(&["detach"]), "nothing was attached\n");

    let said = host.says(&["attach", LINE, "lo", "--port", "31000"]);
    let (line, lo) = said.split_once('\n').expect("two lines");
    assert_eq!(line, "v0: native");
    assert!(lo.starts_with("lo: generic (") && lo.contains("no native mode"), "{lo}");

    let _socket = host.namespace.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))).expect("a namespace");
    let status: Value = serde_json::from_str(&host.says(&["status", "--json"])).expect("it is JSON");
    let interfaces = json!([{ "interface": "lo", "mode": "generic" }, { "interface": "v0", "mode": "native" }]);
    assert_eq!(status["interfaces"], interfaces);
    let port = |address: &str, open| json!({ "address": address, "port": PORT, "process": null, "open": open });
    assert_eq!(status["ports"], json!([port("0.0.0.0", true), port("::", true)]));
    let text = host.says(&["status"]);
    assert!(text.contains("v0  native") && text.contains("31000  any IPv4 address  attach --port\n"), "{text}");

    assert_eq!(host.says(&["attach", LINE, "--mode", "generic"]), "v0: generic\n");
    assert_eq!(host.says(&["detach", "lo"]), "lo: detached\n");
    assert_eq!(host.says(&["detach"]), "v0: detached\n");
    assert_eq!(host.says(&["status"]), "not attached\n");
}

#[test]
fn under_ip_netns_exec_it_outlives_the_command_too() {
    let host = Host::new("cxip");
    let ip = |words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host.namespace.name(), env!("CARGO_BIN_EXE_hawser"), "scion", "xdp"]);
        let output = command.args(words).output().expect("ip runs (package iproute2)");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(ip(&["attach", LINE]), "v0: native\n");
    let status = host.says(&["status"]);
    assert!(status.starts_with("v0  native\n"), "{status}");
    assert_eq!(ip(&["status"]), status);
    assert_eq!(ip(&["detach"]), "v0: detached\n");
    assert_eq!(host.says(&["status"]), "not attached\n");
}

#[test]
fn what_cannot_be_done_is_told_with_what_to_do_instead() {
    let host = Host::new("cxno");
    let absent = host.fails(&["attach", "v7"], 1);
    assert!(absent.contains("there is no interface \"v7\"") && absent.contains("hint: see what there is"), "{absent}");
    let native = host.fails(&["attach", "lo", "--mode", "native"], 1);
    assert!(native.contains("no native mode") && native.contains("hint: attach it in the kernel"), "{native}");
    assert_eq!(host.says(&["status"]), "not attached\n", "a failure leaves nothing behind");
    let port = host.fails(&["attach", LINE, "--port", "0"], 2);
    assert!(port.contains("--port"), "{port}");
    host.fails(&["attach"], 2);
}
