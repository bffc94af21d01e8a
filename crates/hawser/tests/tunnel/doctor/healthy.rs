//! Set-ups in which nothing is wrong: neither portal's doctor finds anything.

use hawser_wire::{Direction, Loss, Probability};

use super::*;
use crate::home::WORLD;
use crate::lab::{ENDPOINT_V6, LINKS};
use crate::names;

/// A set-up: what it is, and what it makes and asks.
type SetUp = (&'static str, fn());

fn assert_well(set_ups: &[SetUp]) {
    for some in set_ups.chunks(BESIDE) {
        std::thread::scope(|scope| {
            for (name, set_up) in some {
                let builder = std::thread::Builder::new().name((*name).to_owned());
                builder.spawn_scoped(scope, set_up).expect("a thread");
            }
        });
    }
}

/// A lab whose configurations are changed: (file, from, to).
fn lab(edits: &[(&str, &str, &str)]) -> Lab {
    let lab = Lab::new("well", "");
    edits.iter().for_each(|(file, from, to)| lab.edit(file, from, to));
    lab
}

/// Both portals of a lab, whose links work.
fn start(lab: &Lab, links: usize) -> (Portal, Portal) {
    let (remote, local) = (lab.start("remote"), lab.start("local"));
    local.wait_for("all paths to be active", |status| states(status) == vec![PathState::Active; links]);
    (local, remote)
}

fn well(lab: &Lab, links: usize) {
    let _portals = start(lab, links);
    nothing_found(lab);
}

fn nothing_found(lab: &Lab) {
    for (namespace, file) in [(&lab.local, "local.toml"), (&lab.remote, "remote.toml")] {
        assert_eq!(found(namespace, &lab.path(file)), BTreeSet::new(), "{file}");
    }
}

fn well_at_home(home: &Home) {
    let _portals = home.start_both();
    for (namespace, file) in [(&home.local, "local.toml"), (&home.remote, "remote.toml")] {
        assert_eq!(found(namespace, &home.path(file)), BTreeSet::new(), "{file}");
    }
}

#[test]
fn nothing_is_found_of_one_link_two_or_four() {
    assert_well(&[
        ("one link", || well(&lab(&[("local.toml", LINK_TWO, "")]), 1)),
        ("two links", || well(&lab(&[]), 2)),
        ("four links", || {
            let lab = lab(&[("local.toml", "[[peer]]", &format!("{}{}[[peer]]", link("three"), link("four")))]);
            // Bound to an interface, a socket needs a route of that interface, and each is to a part of the network of
            // its own.
            for (name, net, prefix) in [("three", 3, "198.51.100.0/25"), ("four", 4, "198.51.100.0/26")] {
                let near = End::new(&lab.local, name, &[&format!("192.0.{net}.1/24")]);
                veth(&near, &End::new(&lab.remote, name, &[&format!("192.0.{net}.2/24")]), 1500).expect("a veth pair");
                run(&lab.local, "ip", &format!("route add {prefix} via 192.0.{net}.2 dev {name}"));
            }
            well(&lab, 4);
        }),
        ("a scheduler by weights", || well(&Lab::new("well", "[traffic]\nscheduler = \"weighted\"\n"), 2)),
        ("repairs", || well(&Lab::new("well", "[[rule]]\nprotocol = \"icmp\"\nfec = \"auto\"\n"), 2)),
        ("a standby tier", || {
            well(&lab(&[("local.toml", "interface = \"two\"\n", "interface = \"two\"\nmetric = 10\n")]), 2)
        }),
    ]);
}

fn link(name: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\ninterface = \"{name}\"\n")
}

#[test]
fn nothing_is_found_of_other_outer_packets() {
    assert_well(&[
        ("IPv6 only", || {
            let lab = outer(&format!("\"[{ENDPOINT_V6}]:4920\""));
            for link in LINKS {
                run(&lab.local, "ip", &format!("-4 address flush dev {link}"));
            }
            well(&lab, 2);
        }),
        ("both IP versions", || well(&outer(&format!("\"{ENDPOINT}:4920\", \"[{ENDPOINT_V6}]:4920\"")), 2)),
        ("tcp", || well(&streams("transport = \"tcp\"\n"), 2)),
        ("tls", || well(&streams("transport = \"tcp\"\ntls = true\ntls_name = \"www.example.com\"\n"), 2)),
        ("a nat that changes ports, and says what is too big", || {
            let (lab, nat) = behind_a_nat(120);
            run(&nat, "ip", "link set out mtu 1400");
            run(&lab.remote, "ip", "link set wan mtu 1400");
            well(&lab, 1);
        }),
        ("names", || {
            let lab = names::lab("well", &format!("\"{}:4920\"", names::NAME));
            let _server = names::NameServer::start(&lab.remote, parse(ENDPOINT));
            let (_remote, local) = (lab.start("remote"), names::start(&lab));
            local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
            let by = resolving_by(&lab.path("resolv.conf"));
            let found = found_by(&lab.local, &lab.path("local.toml"), &by.each_ref().map(String::as_str));
            assert_eq!(found, BTreeSet::new());
        }),
    ]);
}

/// A lab whose local portal knows these endpoints.
fn outer(endpoints: &str) -> Lab {
    lab(&[
        ("local.toml", &format!("\"{ENDPOINT}:4920\""), endpoints),
        ("remote.toml", "\"0.0.0.0:4920\"", "\"0.0.0.0:4920\", \"[::]:4920\""),
    ])
}

/// A lab whose links are streams.
fn streams(words: &str) -> Lab {
    let lab = lab(&[("remote.toml", "listen =", "transports = [\"udp\", \"tcp\"]\ntls = true\nlisten =")]);
    for link in LINKS {
        let name = format!("interface = \"{link}\"\n");
        lab.edit("local.toml", &name, &format!("{name}{words}"));
    }
    lab
}

#[test]
fn nothing_is_found_of_gateways() {
    assert_well(&[
        ("a gateway that masquerades, where others set much", || {
            let home = Home::new("well");
            home.make_dirty();
            well_at_home(&home);
        }),
        ("a closed kill switch", || {
            let home = Home::new("well");
            let state = home.path("state").display().to_string();
            home.edit("local.toml", "default_route = true\n", "default_route = true\nfail = \"closed\"\n");
            home.edit("local.toml", "[portal]\n", &format!("[portal]\nstate_dir = \"{state}\"\n"));
            well_at_home(&home);
        }),
        ("a rule past the tunnel", || {
            let home = Home::new("well");
            let rule = format!("[[rule]]\ndestination = \"{}/32\"\nvia = \"direct\"\n[[peer]]", WORLD[0]);
            home.edit("local.toml", "[[peer]]", &rule);
            well_at_home(&home);
        }),
        ("another tunnel's routes, which do no harm", || {
            let home = Home::new("well");
            run(&home.local, "ip", "tuntap add dev other0 mode tun");
            run(&home.local, "ip", "address add 10.66.0.2/24 dev other0");
            run(&home.local, "ip", "link set other0 up");
            run(&home.local, "ip", "route add 10.50.0.0/16 dev other0");
            run(&home.local, "ip", "route add default dev other0 table 51820");
            run(&home.local, "ip", "rule add fwmark 0xca6c lookup 51820 priority 100");
            well_at_home(&home);
        }),
    ]);
}

/// A portal that waits for the processor, since others have it, is told so.
mod alone {
    use super::*;

    #[test]
    fn nothing_is_found_while_loaded_nor_of_a_slow_link_that_is_well() {
        assert_well(&[
            ("loaded", || {
                let lab = lab(&[]);
                let _links = LINKS.map(|link| lab.emulate(link, &Direction::shaped(20.0, ms(5), ms(50))));
                let _portals = start(&lab, 2);
                let flow = bulk(&lab, ms(4_000)).start().expect("a flow");
                std::thread::sleep(ms(2_500));
                nothing_found(&lab);
                flow.finish().expect("a flow");
            }),
            ("1 % loss and 300 ms", || {
                let lab = lab(&[("local.toml", LINK_ONE, "")]);
                let loss = Loss::Random(Probability::new(0.01).expect("a share"));
                let _link = lab.emulate("two", &Direction { loss, ..Direction::shaped(20.0, ms(150), ms(300)) });
                let (local, _remote) = start(&lab, 1);
                let flow = UdpFlow { rate: Rate::mbit(5.0), ..bulk(&lab, ms(8_000)) }.start().expect("a flow");
                local.wait_for("losses", |status| {
                    paths(status).iter().any(|path| path.live.lost_packets >= 3 && path.live.acked_packets >= 300)
                });
                nothing_found(&lab);
                flow.finish().expect("a flow");
            }),
        ]);
    }
}
