//! A name's addresses, asked for past the tunnel: its endpoint may be what the tunnel leads to.
//!
//! 1. The host's own list (hosts(5)) comes first. 2. Each name server of resolv.conf(5) is asked by UDP (RFC 1035
//!    section 4.2.1), by the way that the system takes and by each link: one after the other, until one has an address.
//!    With `[tun] dns` these are the servers that the system has of others.
//! 3. Where none has, the system's resolver is asked, which knows other sources than DNS; not where it asks those of
//!    `[tun] dns`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use hawser_config::HostName;
use hawser_net::netcfg::{asked_servers, known_servers};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

const HOSTS: &str = "/etc/hosts";
/// Where systemd-resolved answers (systemd-resolved.service(8)): by whatever device's servers it chooses.
const RESOLVED_STUBS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 53)), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 54))];
/// The port of name servers (RFC 1035 section 4.2.1).
const PORT: u16 = 53;
/// How long after one name server, or link, the next is asked.
const NEXT_AFTER: Duration = Duration::from_millis(300);
/// How long an answer is waited for, and when the question is repeated.
const PATIENCE: Duration = Duration::from_secs(2);
const REPEATED_AFTER: Duration = Duration::from_millis(800);
/// The addresses of the other IP version are waited for so long.
const OTHER_VERSION: Duration = Duration::from_millis(500);
/// How long the system's resolver may take: it asks by the tunnel, perhaps.
const SYSTEM_PATIENCE: Duration = Duration::from_secs(8);
/// What the system's resolver says counts for so long, as it does not tell.
const SYSTEM_TTL: Duration = Duration::from_secs(60);
/// Bytes of an answer: the most that one of UDP has without EDNS is 512.
const ANSWER_MAX: usize = 4096;

/// By which ways name servers are asked. Plain data.
#[derive(Clone, Debug)]
pub struct Ways {
    /// The mark of the portal's own packets, which keeps them off the tunnel.
    pub mark: Option<u32>,
    /// The interfaces of its links.
    pub interfaces: Vec<String>,
    /// Name servers of `[tun] dns` that only the tunnel leads to: they are not asked what the tunnel leads to.
    pub inner: Vec<IpAddr>,
    /// The system's resolver may be asked: it does not ask those of `[tun] dns`.
    pub system: bool,
}

/// What a name has. At least one address; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// In order.
    pub addresses: Vec<IpAddr>,
    /// How long they count, as the name server says.
    pub ttl: Duration,
}

/// All steps. What is wrong is said in a clause.
pub async fn ask(name: &HostName, ways: Ways) -> Result<Answer, String> {
    if let Some(answer) = in_hosts(&fs::read_to_string(HOSTS).unwrap_or_default(), name) {
        return Ok(answer);
    }
    let servers = servers(asked_servers(), known_servers(), &ways);
    let servers: Vec<SocketAddr> = servers.into_iter().map(|server| SocketAddr::new(server, PORT)).collect();
    match by_dns(name, &ways, &servers).await {
        Err(error) if ways.system => by_system(name).await.ok_or(error),
        answered => answered,
    }
}

/// Step 1.
fn in_hosts(text: &str, name: &HostName) -> Option<Answer> {
    let is = |word: &str| word.eq_ignore_ascii_case(name.as_str());
    let line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(is).then_some(address)
    };
    answer(text.lines().filter_map(line), SYSTEM_TTL)
}

/// Whom to ask, of those that libc asks and those that systemd-resolved and resolvconf know.
fn servers(asked: Vec<IpAddr>, known: Vec<IpAddr>, ways: &Ways) -> Vec<IpAddr> {
    if ways.system && !asked.iter().all(IpAddr::is_loopback) {
        return asked;
    }
    let mut servers = asked;
    servers.extend(known);
    servers.retain(|server| !ways.inner.contains(server));
    if !ways.system {
        servers.retain(|server| !RESOLVED_STUBS.contains(server));
    }
    if !ways.system && servers.iter().any(|server| !server.is_loopback()) {
        // One on this host may ask those of `[tun] dns`.
        servers.retain(|server| !server.is_loopback());
    }
    let mut seen = BTreeSet::new();
    servers.retain(|server| seen.insert(*server));
    servers
}

/// Addresses that a host can have; none where there are none.
fn answer(addresses: impl Iterator<Item = IpAddr>, ttl: Duration) -> Option<Answer> {
    let mut addresses: Vec<IpAddr> =
        addresses.filter(|address| !address.is_unspecified() && !address.is_multicast()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    (!addresses.is_empty()).then_some(Answer { addresses, ttl })
}

/// Step 2.
async fn by_dns(name: &HostName, ways: &Ways, servers: &[SocketAddr]) -> Result<Answer, String> {
    let interfaces = ways.interfaces.iter().map(|interface| Some(interface.clone()));
    let mut asked = JoinSet::new();
    let mut begin = Duration::ZERO;
    for interface in std::iter::once(None).chain(interfaces) {
        for server in servers.iter().filter(|server| interface.is_none() || !server.ip().is_loopback()) {
            let (name, mark, interface, server) = (name.clone(), ways.mark, interface.clone(), *server);
            asked.spawn(async move {
                sleep(begin).await;
                let way = interface.as_deref().map_or_else(String::new, |interface| format!(" by {interface}"));
                let socket = socket(server, mark, interface).map_err(|error| format!("ask {server}{way}: {error}"))?;
                exchange(&socket, &name).await.map_err(|error| format!("{server}{way}: {error}"))
            });
            begin += NEXT_AFTER;
        }
    }
    let mut errors = Vec::new();
    // Who still asks when one has an answer is stopped with the set.
    while let Some(joined) = asked.join_next().await {
        match joined {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => errors.push(error),
            Err(_) => {}
        }
    }
    errors.sort_unstable();
    errors.into_iter().next().ok_or_else(|| "there is no name server to ask past the tunnel".to_owned()).and_then(Err)
}

/// A socket to a name server, past the tunnel.
fn socket(server: SocketAddr, mark: Option<u32>, interface: Option<String>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if let Some(mark) = mark {
        socket.set_mark(mark)?;
    }
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.connect(&server.into())?;
    UdpSocket::from_std(socket.into())
}

/// Asks for the addresses of both IP versions.
async fn exchange(socket: &UdpSocket, name: &HostName) -> Result<Answer, String> {
    let mut questions: Vec<Message> = Vec::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        // The dot keeps the domains of resolv.conf away.
        let name = Name::from_ascii(format!("{name}.")).map_err(|error| error.to_string())?;
        let mut question = Message::query();
        question.metadata.recursion_desired = true;
        question.add_query(Query::query(name, kind));
        questions.push(question);
    }
    let start = Instant::now();
    let (mut end, mut repeat) = (start + PATIENCE, start);
    let (mut addresses, mut ttl, mut refused) = (Vec::new(), u32::MAX, None);
    let mut bytes = [0; ANSWER_MAX];
    while !questions.is_empty() {
        if Instant::now() >= repeat {
            for question in &questions {
                let question = question.to_vec().map_err(|error| error.to_string())?;
                socket.send(&question).await.map_err(|error| error.to_string())?;
            }
            repeat += REPEATED_AFTER;
        }
        let length = match timeout_at(end.min(repeat), socket.recv(&mut bytes)).await {
            Ok(received) => received.map_err(|error| error.to_string())?,
            Err(_) if Instant::now() >= end => break,
            Err(_) => continue,
        };
        let Ok(said) = Message::from_vec(&bytes[..length]) else { continue };
        let Some(at) = questions.iter().position(|asked| is_answer(&said, asked)) else { continue };
        questions.swap_remove(at);
        match said.metadata.response_code {
            ResponseCode::NoError => {}
            code => refused = Some(code),
        }
        ttl = said.answers.iter().map(|record| record.ttl).min().unwrap_or(u32::MAX).min(ttl);
        addresses.extend(said.answers.iter().filter_map(|record| address(&record.data)));
        end = end.min(Instant::now() + OTHER_VERSION);
    }
    let silent = if refused.is_none() && questions.len() > 1 { "no answer" } else { "it has no address" };
    let found = answer(addresses.into_iter(), Duration::from_secs(ttl.into()));
    found.ok_or_else(|| refused.map_or_else(|| silent.to_owned(), |code| code.to_string().to_lowercase()))
}

/// Whether it answers this question: whoever guesses must guess number, port, name and kind.
fn is_answer(said: &Message, asked: &Message) -> bool {
    said.metadata.id == asked.metadata.id && said.queries == asked.queries
}

fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(address) => Some(Ipv4Addr::from(*address).into()),
        RData::AAAA(address) => Some(Ipv6Addr::from(*address).into()),
        _ => None,
    }
}

/// Step 3, on a thread of its own: nobody can stop it, and nobody waits for it at the end.
async fn by_system(name: &HostName) -> Option<Answer> {
    let (tell, told) = oneshot::channel();
    let name = name.clone();
    let look_up = move || {
        let found = (name.as_str(), 0).to_socket_addrs().ok();
        let _ = tell.send(found.and_then(|found| answer(found.map(|address| address.ip()), SYSTEM_TTL)));
    };
    std::thread::Builder::new().name("hawser-names".to_owned()).spawn(look_up).ok()?;
    tokio::time::timeout(SYSTEM_PATIENCE, told).await.ok()?.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::{A, AAAA, CNAME};

    fn name() -> HostName {
        HostName::parse("hub.example.net").expect("a name")
    }

    /// A name server that says this of each kind of question it is asked, after having been silent for some.
    async fn server(silent: usize, says: impl Fn(RecordType) -> (ResponseCode, Vec<RData>)) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let address = socket.local_addr().expect("an address");
        let answers: Vec<(RecordType, (ResponseCode, Vec<RData>))> =
            [RecordType::A, RecordType::AAAA].map(|kind| (kind, says(kind))).into();
        tokio::spawn(async move {
            let mut bytes = [0; 512];
            for number in 0.. {
                let (length, from) = socket.recv_from(&mut bytes).await.expect("a question");
                if number < silent {
                    continue;
                }
                let asked = Message::from_vec(&bytes[..length]).expect("a question");
                let query = asked.queries[0].clone();
                let (_, (code, data)) = answers.iter().find(|(kind, _)| *kind == query.query_type()).expect("a kind");
                let mut said = Message::response(asked.metadata.id, asked.metadata.op_code);
                said.metadata.response_code = *code;
                said.add_query(query.clone());
                for data in data {
                    said.add_answer(Record::from_rdata(query.name().clone(), 77, data.clone()));
                }
                socket.send_to(&said.to_vec().expect("a message"), from).await.expect("it is sent");
            }
        });
        address
    }

    fn both(kind: RecordType) -> (ResponseCode, Vec<RData>) {
        let data = match kind {
            RecordType::A => {
                let alias = CNAME(Name::from_ascii("other.example.").expect("a name"));
                vec![RData::CNAME(alias), RData::A(A::new(192, 0, 2, 7))]
            }
            _ => vec![RData::AAAA(AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7))],
        };
        (ResponseCode::NoError, data)
    }

    fn plain() -> Ways {
        Ways { mark: None, interfaces: Vec::new(), inner: Vec::new(), system: true }
    }

    async fn asked(servers: &[SocketAddr]) -> Result<Answer, String> {
        by_dns(&name(), &plain(), servers).await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn both_ip_versions_come_with_the_least_time_to_live_and_a_lost_question_is_repeated() {
        let addresses = ["192.0.2.7", "2001:db8::7"].map(|text| text.parse().expect("an address")).into();
        let expect = Ok(Answer { addresses, ttl: Duration::from_secs(77) });
        for silent in [0, 2] {
            assert_eq!(asked(&[server(silent, both).await]).await, expect, "{silent} questions were lost");
        }
        let nobody = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let silent = nobody.local_addr().expect("an address");
        assert_eq!(asked(&[silent, server(0, both).await]).await, expect, "the next one is asked");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_wrong_is_said() {
        let missing = server(0, |_| (ResponseCode::NXDomain, Vec::new())).await;
        assert_eq!(asked(&[missing]).await, Err(format!("{missing}: non-existent domain")));
        let empty = server(0, |_| (ResponseCode::NoError, Vec::new())).await;
        assert_eq!(asked(&[empty]).await, Err(format!("{empty}: it has no address")));
        let nobody = UdpSocket::bind("127.0.0.1:0").await.expect("a socket").local_addr().expect("an address");
        assert!(asked(&[nobody]).await.is_err_and(|error| error.contains("refused")), "a closed port says so");
        assert_eq!(asked(&[]).await, Err("there is no name server to ask past the tunnel".into()));
    }

    #[test]
    fn whom_only_the_tunnel_leads_to_is_not_asked() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let (stub, own) = (ip("127.0.0.53"), ip("127.0.0.1"));
        let (inner, world, lan) = (ip("10.77.0.1"), ip("9.9.9.9"), ip("192.168.8.1"));
        let dns = Ways { inner: vec![inner], system: false, ..plain() };
        // what libc asks, what others know, with `dns` or without, whom to ask
        for (asked, known, ways, expect) in [
            (vec![lan, world], vec![inner], plain(), vec![lan, world]),
            (vec![stub], vec![lan], plain(), vec![stub, lan]),
            (vec![stub], vec![inner, lan], dns.clone(), vec![lan]),
            (vec![inner, lan], vec![inner, lan], dns.clone(), vec![lan]),
            (vec![inner], vec![lan], dns.clone(), vec![lan]),
            (vec![world], vec![world], dns.clone(), vec![world]),
            (vec![inner], vec![], dns.clone(), vec![]),
            (vec![stub], vec![inner], dns.clone(), vec![]),
            (vec![own], vec![inner], dns.clone(), vec![own]),
            (vec![own], vec![inner, lan], dns.clone(), vec![lan]),
        ] {
            assert_eq!(servers(asked.clone(), known.clone(), &ways), expect, "{asked:?} {known:?} {ways:?}");
        }
    }

    #[test]
    fn the_hosts_own_list_is_read() {
        let hosts = "127.0.0.1 localhost\n192.0.2.9 other HUB.example.net # hub\n#192.0.2.8 hub.example.net\n0.0.0.0 hub.example.net\n";
        let found = in_hosts(hosts, &name()).expect("an address");
        assert_eq!(found.addresses, ["192.0.2.9".parse::<IpAddr>().expect("an address")]);
        assert_eq!(in_hosts("192.0.2.9 hub\n", &name()), None);
    }
}
