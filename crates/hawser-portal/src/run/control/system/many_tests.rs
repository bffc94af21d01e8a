//! A member with thousands of peers: what it costs when another member dies, or when one peer more comes by etcd. Ten
//! times as many peers take some ten times as long. Needs root, as it makes a network namespace. The times:
//!
//! ```text
//! sudo -E cargo test --release -p hawser-portal --lib many_tests -- --nocapture
//! ```

use std::net::{IpAddr, Ipv4Addr};

use hawser_config::{Peer, PeerName};
use hawser_net::tun::{Tun, TunOpts};

use super::*;

/// How many times as long ten times as many may take: ten, and what else the machine does. A hundred would be where
/// each looks through all others.
const TIMES_MOST: u32 = 35;
/// A moment that is too short to be compared.
const MOMENT: Duration = Duration::from_millis(5);
/// What packets to each peer may have.
const MTU: u16 = 1_400;

/// Runs `story` on a thread of its own in a new network namespace.
fn in_namespace<F: Future<Output = ()>>(story: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // SAFETY: only this thread's network namespace changes; it holds no descriptor that depends on it.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.expect("this test needs root");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(story());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A member's, with peers that have an address each.
fn config(peers: u32) -> Config {
    let text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n\
                [hub]\n[[peer]]\nname = \"home\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
                allowed_ips = [\"10.1.0.0/16\"]\n";
    let config = Config::parse(text, "test.toml").expect("a right configuration");
    let peer = |number: u32| {
        let mut key = [1; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let address = Ipv4Addr::from_bits(0x0a80_0000 + number);
        Peer {
            name: PeerName::parse(&format!("peer{number}")).expect("a name"),
            public_key: PublicKey::new(key).expect("not zero"),
            allowed_ips: vec![IpNet::from(IpAddr::from(address))],
            ..config.peers[0].clone()
        }
    };
    Config { peers: (0..peers).map(peer).collect(), ..config.clone() }
}

/// How long it takes that the member owns all its peers, told at once; that it does, told one by one; and that it has
/// one more.
async fn times(peers: u32) -> [Duration; 3] {
    let (folder, config, more) = (tempfile::tempdir().expect("a folder"), config(peers), config(peers + 1));
    let tun = Tun::create("hwm%d", &TunOpts::default()).expect("a tun device");
    let instance = InstanceName::new("many").expect("a name");
    let mut system = System::new(NetConfig::new(folder.path(), &instance).expect("a journal"), false);
    system.tun = IfIndex::new(tun.index());
    system.set_peer_mtus(&config, config.peers.iter().map(|peer| (peer.name.as_str(), MTU))).await;
    let told = |metric| config.peers.iter().map(|peer| (peer.clone(), Some(metric))).collect::<Vec<_>>();
    system.announce(&config, &told(3)).await;
    let all = told(2);
    let begun = Instant::now();
    system.announce(&config, &all).await;
    let at_once = begun.elapsed();
    let each = told(1);
    let begun = Instant::now();
    for one in &each {
        system.announce(&config, std::slice::from_ref(one)).await;
    }
    let one_by_one = begun.elapsed();
    let begun = Instant::now();
    system.reconfigure(&more).await;
    let one_more = begun.elapsed();
    assert!(system.missing.is_empty(), "{:?}", system.missing);
    let routes = system.net.applied().filter(|change| matches!(change, Change::Route(_)));
    assert!(routes.count() == each.len() && system.announced.len() == each.len(), "each has one route");
    let none: Vec<_> = config.peers.iter().map(|peer| (peer.clone(), None)).collect();
    system.announce(&more, &none).await;
    assert!(system.announced.is_empty() && !system.net.applied().any(|change| matches!(change, Change::Route(_))));
    [at_once, one_by_one, one_more]
}

#[test]
fn ten_times_as_many_peers_take_some_ten_times_as_long() {
    in_namespace(|| async {
        let (few, many) = (times(1_000).await, times(10_000).await);
        for (what, (few, many)) in
            ["told at once", "told one by one", "one more"].into_iter().zip(few.into_iter().zip(many))
        {
            println!("{what}: with 1,000 peers {few:?}, with 10,000 {many:?}");
            assert!(many < few.max(MOMENT) * TIMES_MOST, "{what}: with 1,000 peers {few:?}, with 10,000 {many:?}");
        }
    });
}
