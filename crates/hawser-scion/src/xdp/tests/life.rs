//! From attaching to detaching, and everything that may die in between.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use aya::Ebpf;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use hawser_wire::{End, veth};
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::frame::{datagram, template};
use super::host::{FAR, Hosts, LINE, NEAR, assert_nothing, bound, namespace, receive};
use crate::packet::ENDHOST_PORT;
use crate::xdp::layout::{OBJECT, PROGRAM};
use crate::xdp::pins::Pins;
use crate::xdp::{Allowed, Arrangement, Bypass, Delivery, Lease, Left, Mode, On, Status, Wanted, XdpError};
use crate::xdp::{detach, interfaces, status};

const PORT: u16 = 31000;
/// Where a child finds the address to bind; set only in a child.
const ADDRESS: &str = "HAWSER_TEST_LEASE";
/// What a child prints once it has its lease.
const READY: &str = "leased";
/// How long a child lives that nobody kills.
const LIFE: Duration = Duration::from_secs(60);
/// The test that, executed anew as a child, is the one to be killed.
const CHILD_TEST: &str = "xdp::tests::life::an_application_that_is_killed_gets_nothing_more_from_that_moment_on";

fn far(port: u16) -> SocketAddr {
    SocketAddr::new(FAR[0].parse().expect("an address"), port)
}

/// Sends packets for a port to the far host's dispatcher port.
struct Sender(UdpSocket);

impl Sender {
    fn new(hosts: &Hosts) -> Sender {
        Sender(hosts.at_near(|| bound(SocketAddr::new(NEAR[0].parse().expect("an address"), 0))))
    }

    fn send(&self, port: u16, payload: &[u8]) -> Vec<u8> {
        let packet = datagram(&template(self.0.local_addr().expect("its address"), far(port), &[]), payload);
        self.0.send_to(&packet, far(ENDHOST_PORT)).expect("sent");
        packet
    }
}

#[test]
fn what_is_attached_is_shown_and_goes_when_it_is_detached() {
    let hosts = Hosts::new("xlife");
    let name = LINE.to_owned();
    let on = |mode| vec![On { interface: LINE.into(), mode }];
    hosts.at_far(|| {
        assert_eq!(status().expect("a status"), Status::default());
        assert_eq!(detach(&[]).expect("nothing to do"), Vec::<String>::new());
        let attach = |wanted| Bypass::load()?.attach(LINE, wanted, false);
        // Each step: what is wanted, what is there then.
        let steps = [
            (Wanted::Auto, Mode::Native),
            (Wanted::Native, Mode::Native),
            (Wanted::Generic, Mode::Generic),
            (Wanted::Auto, Mode::Generic),
            (Wanted::Native, Mode::Native),
        ];
        for (wanted, mode) in steps {
            let attached = attach(wanted).expect("it attaches");
            assert_eq!((attached.mode, attached.fallback.is_none()), (mode, true), "{wanted:?}");
            assert_eq!(status().expect("a status").interfaces, on(mode), "{wanted:?}");
        }
        let error = detach(&["v1".into()]).expect_err("there is none").to_string();
        assert!(error.contains("\"v1\""), "{error}");
        assert_eq!(detach(std::slice::from_ref(&name)).expect("it detaches"), [LINE]);
        assert_eq!(status().expect("a status"), Status::default());
        let pins = Pins::find().expect("a namespace").expect("a file system");
        assert!(!pins.program().exists() && !pins.whitelist().exists(), "nothing is left behind");
    });
}

#[test]
fn an_interface_whose_driver_runs_no_programs_gets_it_from_the_kernel_with_the_reason_told() {
    let hosts = Hosts::new("xlo");
    hosts.at_far(|| {
        let mut bypass = Bypass::load().expect("it loads");
        let refused = bypass.attach("lo", Wanted::Native, false).expect_err("loopback has no native mode");
        assert!(matches!(refused, XdpError::NotNative { .. }), "{refused}");
        let attached = bypass.attach("lo", Wanted::Auto, false).expect("it attaches");
        assert_eq!(attached.mode, Mode::Generic);
        let reason = attached.fallback.expect("a reason").to_string();
        assert!(reason.contains("lo") && reason.contains("native"), "{reason}");
        let missing = bypass.attach("v9", Wanted::Auto, false).expect_err("there is none");
        assert!(matches!(missing, XdpError::NoInterface { .. }), "{missing}");
    });
}

/// Puts somebody else's program on the line as `ip link set xdp` does.
fn occupy(program: &Xdp) {
    let index = interfaces::list().expect("interfaces").into_iter().find(|known| known.name == LINE).expect("the line");
    let mut message: LinkMessage = LinkMessageBuilder::<LinkUnspec>::new().index(index.index.0).build();
    let descriptor = program.fd().expect("it is loaded").as_fd().as_raw_fd();
    message.attributes.push(LinkAttribute::Xdp(vec![LinkXdp::Fd(descriptor), LinkXdp::Flags(1 << 1)]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().expect("netlink");
        tokio::spawn(connection);
        handle.link().set(message).execute().await.expect("it is put there");
    });
}

#[test]
fn anothers_program_is_replaced_only_by_force_and_never_if_its_owner_holds_it() {
    let hosts = Hosts::new("xforce");
    hosts.at_far(|| {
        let mut object = Ebpf::load(OBJECT).expect("it loads");
        let other: &mut Xdp = object.program_mut(PROGRAM).expect("it is there").try_into().expect("of XDP");
        other.load().expect("it loads");
        let id = other.info().expect("its number").id();
        let attach = |force| Bypass::load()?.attach(LINE, Wanted::Auto, force);
        let there = || {
            let interfaces = interfaces::list().expect("interfaces");
            interfaces.into_iter().find(|known| known.name == LINE).expect("the line").program.map(|it| it.id)
        };

        occupy(other);
        let refused = attach(false).expect_err("it is occupied");
        assert!(
            matches!(refused, XdpError::Occupied { program, mode: Mode::Generic, .. } if program == id),
            "{refused}"
        );
        assert_eq!(there(), Some(id));
        attach(true).expect("by force");
        assert_ne!(there(), Some(id));
        detach(&[]).expect("it detaches");

        let link = other.attach(LINE, XdpMode::Skb).expect("it attaches");
        for force in [false, true] {
            let refused = attach(force).expect_err("it is held");
            assert!(matches!(refused, XdpError::Held { .. }) == force, "{refused}");
            assert_eq!(there(), Some(id));
        }
        assert_eq!(detach(&[]).expect("nothing of ours"), Vec::<String>::new());
        assert_eq!(there(), Some(id));
        other.detach(link).expect("it was attached");
    });
}

#[test]
fn an_interface_that_is_gone_leaves_nothing() {
    let hosts = Hosts::new("xgone");
    let end = |namespace, address: &str| End::new(namespace, "v1", &[address]);
    veth(&end(&hosts.near, "10.8.0.1/24"), &end(&hosts.far, "10.8.0.2/24"), 1500).expect("a second line");
    hosts.at_far(|| {
        let mut bypass = Bypass::load().expect("it loads");
        for interface in [LINE, "v1"] {
            bypass.attach(interface, Wanted::Generic, false).expect("it attaches");
        }
    });
    hosts.far.delete_interface("v1").expect("it is there");
    hosts.at_far(|| {
        assert_eq!(status().expect("a status").interfaces.len(), 1);
        let links = || Pins::find().expect("a namespace").expect("a file system").links().expect("a folder").len();
        assert_eq!(links(), 2, "nobody has looked");
        drop(Bypass::load().expect("it is there"));
        assert_eq!(links(), 1);
    });
}

#[test]
fn a_namespace_that_is_gone_leaves_nothing_once_somebody_attaches_elsewhere() {
    let (gone, near) = (namespace("xdead"), namespace("xlives"));
    veth(&End::new(&gone, LINE, &[]), &End::new(&near, LINE, &[]), 1500).expect("a line");
    let program = gone
        .run(|| {
            Bypass::load().and_then(|mut bypass| bypass.attach(LINE, Wanted::Auto, false)).expect("it attaches");
            Pins::find().expect("a namespace").expect("a file system").program()
        })
        .expect("the namespace is there");
    drop(gone);
    assert!(program.exists(), "it is pinned, not owned");
    let hosts = Hosts::new("xsweep");
    // The kernel takes namespaces apart in its own time.
    super::host::until("its pins are swept", || {
        hosts.attach(Wanted::Generic);
        !program.exists()
    });
}

#[test]
fn a_lease_lasts_as_long_as_it_is_held() {
    let hosts = Hosts::new("xlease");
    hosts.attach(Wanted::Generic);
    let sender = Sender::new(&hosts);
    let (application, dispatcher) = hosts.at_far(|| (bound(far(PORT)), bound(far(ENDHOST_PORT))));
    let arrives = |at: &UdpSocket, payload: &[u8]| assert_eq!(sender_receives(&sender, at, payload), ());

    arrives(&dispatcher, b"before the lease");
    let lease = hosts.at_far(|| Lease::take(&application)).expect("a lease");
    arrives(&application, b"with a lease");
    let process = Some(std::process::id());
    let allowed = Allowed { address: far(PORT).ip(), port: PORT, process, open: true };
    assert_eq!(hosts.at_far(status).expect("a status").ports, [allowed]);

    // Taken off and put on again, the bypass still knows it.
    hosts.at_far(|| detach(&[])).expect("it detaches");
    arrives(&dispatcher, b"without a bypass");
    hosts.attach(Wanted::Generic);
    arrives(&application, b"with a bypass again");

    let second = hosts.at_far(|| Lease::take(&application)).expect("a second one");
    drop(lease);
    arrives(&application, b"the later one has it");
    drop(second);
    arrives(&dispatcher, b"after the lease");
    assert_eq!(hosts.at_far(status).expect("a status").ports, []);
}

fn sender_receives(sender: &Sender, at: &UdpSocket, payload: &[u8]) {
    let packet = sender.send(PORT, payload);
    assert_eq!(receive(at), packet, "{}", String::from_utf8_lossy(payload));
}

#[test]
fn a_lease_that_was_forgotten_ends_with_its_socket() {
    let hosts = Hosts::new("xforget");
    hosts.attach(Wanted::Native);
    let sender = Sender::new(&hosts);
    let (application, dispatcher) = hosts.at_far(|| (bound(far(PORT)), bound(far(ENDHOST_PORT))));
    std::mem::forget(hosts.at_far(|| Lease::take(&application)).expect("a lease"));
    sender_receives(&sender, &application, b"while it is open");
    drop(application);
    sender_receives(&sender, &dispatcher, b"the moment it is closed");
    assert_eq!(hosts.counters().left_for(Left::Socket), 1);
    assert_eq!(hosts.at_far(status).expect("a status").ports, [], "and whoever looks tidies up");
    sender_receives(&sender, &dispatcher, b"and from then on");
    assert_eq!(hosts.counters().left_for(Left::Port), 1);
}

#[test]
fn a_port_of_the_command_line_serves_whoever_opens_it() {
    let hosts = Hosts::new("xport");
    hosts.at_far(|| {
        let mut bypass = Bypass::load().expect("it loads");
        bypass.attach(LINE, Wanted::Generic, false).expect("it attaches");
        bypass.allow(PORT.try_into().expect("not 0")).expect("room");
    });
    let sender = Sender::new(&hosts);
    let dispatcher = hosts.at_far(|| bound(far(ENDHOST_PORT)));
    for _ in 0..2 {
        sender_receives(&sender, &dispatcher, b"nobody there");
        assert!(hosts.at_far(status).expect("a status").ports.iter().all(|allowed| !allowed.open));
        let application = hosts.at_far(|| bound(format!("0.0.0.0:{PORT}").parse().expect("an address")));
        sender_receives(&sender, &application, b"somebody there");
        // A lease beside it changes nothing when it ends.
        drop(hosts.at_far(|| Lease::take(&application)).expect("a lease"));
        sender_receives(&sender, &application, b"still there");
    }
    let ports = hosts.at_far(status).expect("a status").ports;
    assert_eq!(ports.len(), 2, "one of each family: {ports:?}");
    assert!(ports.iter().all(|allowed| allowed.process.is_none() && allowed.address.is_unspecified()), "{ports:?}");
}

#[test]
fn an_application_has_what_it_asked_for_or_the_reason() {
    let hosts = Hosts::new("xchoice");
    let arrange = |delivery: Delivery| hosts.at_far(move || delivery.arrange(&bound(far(PORT))));
    assert!(matches!(arrange(Delivery::Direct), Err(XdpError::NotAttached)));
    assert!(matches!(arrange(Delivery::Both), Ok(Arrangement::Dispatched(Some(XdpError::NotAttached)))));
    assert!(matches!(arrange(Delivery::Dispatched), Ok(Arrangement::Dispatched(None))));
    hosts.attach(Wanted::Generic);
    assert!(matches!(arrange(Delivery::Direct), Ok(Arrangement::Direct(_))));
    assert!(matches!(arrange(Delivery::Both), Ok(Arrangement::Direct(_))));
    assert!(matches!(arrange(Delivery::Dispatched), Ok(Arrangement::Dispatched(None))));
}

#[test]
fn a_thread_without_capabilities_is_told_which_ones_it_lacks() {
    let hosts = Hosts::new("xcaps");
    let error = hosts.at_far(|| {
        caps::clear(None, caps::CapSet::Effective).expect("they can be given up");
        Bypass::load().expect_err("it may not")
    });
    assert!(matches!(error, XdpError::NotPermitted { .. }), "{error}");
    assert!(error.to_string().contains("CAP_BPF and CAP_NET_ADMIN"), "{error}");
    let program = hosts.at_far(Pins::find).expect("a namespace").expect("a file system").program();
    assert!(!program.parent().expect("a folder").exists(), "what was begun is taken back");
}

/// A child with a lease; dropped, it is killed.
struct Application(Child);

impl Drop for Application {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it ends");
    }
}

#[test]
fn an_application_that_is_killed_gets_nothing_more_from_that_moment_on() {
    if let Ok(address) = env::var(ADDRESS) {
        let socket = bound(address.parse().expect("an address"));
        let _lease = Lease::take(&socket).expect("a lease");
        println!("{READY}");
        std::io::stdout().flush().expect("it is read");
        thread::sleep(LIFE);
        return;
    }
    for wanted in [Wanted::Generic, Wanted::Native] {
        let hosts = Hosts::new("xkill");
        hosts.attach(wanted);
        let sender = Sender::new(&hosts);
        let dispatcher = hosts.at_far(|| bound(far(ENDHOST_PORT)));
        let mut child = hosts.far.command(env::current_exe().expect("it runs").to_str().expect("a name"));
        let child: &mut Command = child.args(["--exact", CHILD_TEST, "--nocapture"]);
        let child = child.env(ADDRESS, far(PORT).to_string()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut application = Application(child);
        let said = BufReader::new(application.0.stdout.take().expect("it is piped"));
        assert!(said.lines().any(|line| line.expect("text").ends_with(READY)), "it has its lease");

        sender.send(PORT, b"while it lives");
        assert_nothing(&dispatcher);
        assert_eq!(hosts.counters().forwarded, 1);
        let ports = hosts.at_far(status).expect("a status").ports;
        assert_eq!(ports.iter().map(|allowed| allowed.process).collect::<Vec<_>>(), [Some(application.0.id())]);

        drop(application);
        sender_receives(&sender, &dispatcher, b"the moment it is dead");
        assert_eq!(hosts.at_far(status).expect("a status").ports, []);
        let again = hosts.at_far(|| bound(far(PORT)));
        sender_receives(&sender, &dispatcher, b"its port is not its successor's");
        assert_nothing(&again);
    }
}
