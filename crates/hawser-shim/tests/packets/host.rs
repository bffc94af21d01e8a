//! Hosts with a packet thread each, joined by a veth pair inside one AS.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hawser_net::tun::{Tun, TunOpts};
use hawser_scion::EndpointAddr;
use hawser_scion::conn::{ConnOpts, END_HOST_PORT, PathTable, PortRange, ScionSocket, TcpPackets};
use hawser_scion::select::Criterion;
use hawser_scion::service::{PathService, ServiceOpts};
use hawser_shim::engine::{EngineOpts, Notice, OwnAddresses, Snapshot};
use hawser_shim::packet::{Handle, Order, Parts, spawn};
use hawser_shim::route::{Addresses, DEFAULT_RANGE, InterfaceIndex, RouteTable};
use hawser_shim::translate::Layer4;
use hawser_wire::{End, Namespace, RpFilter, veth};
use ipnet::IpNet;

/// Within this something comes, on a loaded machine too.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Egress interfaces of each host.
const EGRESS: u8 = 2;
/// Nobody answers there: inside one AS no paths are asked for.
const NO_DAEMON: &str = "127.0.0.1:1";

/// A host with its shim. The shim ends with it.
pub struct Host {
    pub namespace: Namespace,
    pub end: EndpointAddr,
    pub handle: Handle,
}

/// Two of them, each of which knows the other's derived addresses.
pub fn pair() -> [Host; 2] {
    pair_over(Layer4::Udp, None)
}

/// The same, over this layer 4, in an AS with these dispatched ports; none: all.
pub fn pair_over(layer4: Layer4, dispatched: Option<PortRange>) -> [Host; 2] {
    let [near, far] = ["shim-near", "shim-far"].map(|tag| Namespace::new(tag).expect("run this test as root"));
    veth(&End::new(&near, "a", &["10.9.0.1/24"]), &End::new(&far, "a", &["10.9.0.2/24"]), 1500).unwrap();
    let ends = ["1-ff00:0:110,10.9.0.1:31000", "1-ff00:0:110,10.9.0.2:31000"].map(|end| end.parse().unwrap());
    meet(&near);
    let start = |namespace, [end, other]: [EndpointAddr; 2]| {
        Host::start(namespace, other, ConnOpts { dispatched, ..ConnOpts::new(end) }, layer4)
    };
    [start(near, ends), start(far, [ends[1], ends[0]])]
}

/// Has the hosts know each other's link addresses.
fn meet(near: &Namespace) {
    let say = || UdpSocket::bind("10.9.0.1:0").unwrap().send_to(b"hello", "10.9.0.2:9").unwrap();
    near.run(say).unwrap();
}

impl Host {
    fn start(namespace: Namespace, other: EndpointAddr, conn: ConnOpts, layer4: Layer4) -> Self {
        let end = conn.local;
        let tun = |name: String| {
            let tun = namespace.run(|| Tun::create(&name, &TunOpts::default())).unwrap().unwrap();
            namespace.set_up(&name).unwrap();
            tun
        };
        let ingress = tun("shim-in".to_owned());
        let egress = InterfaceIndex::egresses(EGRESS).map(|k| tun(format!("shim{}", k.get()))).collect();
        let mut own = OwnAddresses::default();
        for interface in std::iter::once(InterfaceIndex::INGRESS).chain(InterfaceIndex::egresses(EGRESS)) {
            let addresses = Addresses::of(end, Some(DEFAULT_RANGE), interface).unwrap();
            own = own.with_interface(interface, addresses);
            route(&namespace, interface, addresses);
        }
        let bind = |port: u16, tcp: TcpPackets| {
            let mut opts = ConnOpts { tcp, ..conn.clone() };
            opts.local.host.set_port(port);
            let socket = namespace.run(|| ScionSocket::bind(opts, Arc::new(PathTable::default())));
            socket.unwrap().unwrap()
        };
        let tcp = match layer4 {
            Layer4::Udp => Vec::new(),
            Layer4::Tcp => vec![bind(END_HOST_PORT, TcpPackets::Only)],
        };
        let parts = Parts {
            ingress,
            egress,
            socket: bind(end.host.port(), TcpPackets::Taken),
            tcp,
            service: Arc::new(PathService::start(NO_DAEMON.parse().unwrap(), ServiceOpts::default()).unwrap()),
            conn: conn.clone(),
            opts: EngineOpts { local: end, select: Criterion::Length, egress: EGRESS, layer4 },
            own,
            routes: Arc::new(RouteTable::new(Some(DEFAULT_RANGE), []).with_end(other)),
        };
        let handle = namespace.run(|| spawn(parts)).unwrap().unwrap();
        Self { namespace, end, handle }
    }

    /// The address of one of its interfaces.
    pub fn address(&self, interface: InterfaceIndex, v6: bool) -> IpAddr {
        let addresses = Addresses::of(self.end, Some(DEFAULT_RANGE), interface).unwrap();
        addresses.iter().find(|address| address.is_ipv6() == v6).unwrap()
    }

    /// Where its servers are reached.
    pub fn server(&self, v6: bool, port: u16) -> SocketAddr {
        SocketAddr::new(self.address(InterfaceIndex::INGRESS, v6), port)
    }

    pub fn snapshot(&self) -> Snapshot {
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        self.handle.order(Order::Snapshot(reply)).unwrap();
        answer.recv_timeout(PATIENCE).unwrap()
    }

    /// Waits for a notice.
    pub fn until<T>(&self, what: &str, look: impl Fn(&Notice) -> Option<T>) -> T {
        loop {
            let notice = self.handle.notices.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {what}"));
            if let Some(found) = look(&notice) {
                return found;
            }
        }
    }
}

/// What the shim's host part does: addresses, and routes by source.
fn route(namespace: &Namespace, interface: InterfaceIndex, addresses: Addresses) {
    let device = if interface.is_ingress() { "shim-in".to_owned() } else { format!("shim{}", interface.get()) };
    namespace.set_rp_filter(&device, RpFilter::Loose).unwrap();
    let table = (100 + u32::from(interface.get())).to_string();
    for address in addresses.iter() {
        let (version, range) = if address.is_ipv6() { ("-6", "fc00::/8") } else { ("-4", "100.64.0.0/10") };
        namespace.add_address(&device, IpNet::from(address)).unwrap();
        let address = address.to_string();
        run(namespace, &[version, "rule", "add", "from", &address, "lookup", &table]);
        run(namespace, &[version, "route", "add", range, "dev", &device, "table", &table]);
        if interface.get() == 1 {
            run(namespace, &[version, "route", "add", range, "dev", &device, "src", &address]);
        }
    }
}

fn run(namespace: &Namespace, arguments: &[&str]) {
    let done = namespace.command("ip").args(arguments).status().unwrap();
    assert!(done.success(), "ip {arguments:?}");
}
