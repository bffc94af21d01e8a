//! The journal's lines and what becomes of them, as tables; its life across owners.

use std::{fs, process::Command};

use super::{
    super::{
        change::{IpProtocol, MarkMatch, RouteKind, RouteSpec, RuleSpec},
        name_servers::{NameServers, Resolver},
        nft::{NftChain, NftName, NftTable},
        sysctl::SysctlKey,
        types::{Family, IfIndex, Mark, Metric, Mtu, RulePriority, TableId},
    },
    *,
};

const OWNER: &str = r#"{"owner":{"format":2,"pid":7,"started":99,"boot":"b","netns":{"cookie":4097}}}"#;
const MTU: &str =
    r#"{"set":{"id":1,"change":{"mtu":{"interface":3,"mtu":1400}},"interface":"eth0","before":{"mtu":1500}}}"#;
const MTU_AGAIN: &str = r#"{"set":{"id":1,"change":{"mtu":{"interface":3,"mtu":1300}},"interface":"eth0","before":{"mtu":1500},"earlier":{"mtu":{"interface":3,"mtu":1400}}}}"#;
const ADDRESS: &str = r#"{"set":{"id":2,"change":{"address":{"interface":3,"address":"10.77.0.1/24"}},"interface":"eth0","before":"absent"}}"#;
const OUTSIDE: &str =
    r#"{"set":{"id":3,"change":{"sysctl":{"key":"kernel/core_pattern","value":"x"}},"before":{"value":"y"}}}"#;
const UNDONE_2: &str = r#"{"undone":{"id":2}}"#;

fn interface() -> IfIndex {
    IfIndex::new(3).unwrap()
}

fn name() -> Option<String> {
    Some("eth0".into())
}

fn mtu(bytes: u32) -> Change {
    Change::Mtu { interface: interface(), mtu: Mtu(bytes) }
}

fn address(text: &str) -> Change {
    Change::Address { interface: interface(), address: text.parse().unwrap() }
}

fn every_kind() -> Vec<Change> {
    vec![
        address("fd77::1/64"),
        mtu(1400),
        Change::LinkUp { interface: interface() },
        Change::Route(RouteSpec {
            table: Some(TableId(4920)),
            metric: Some(Metric(5)),
            source: Some("10.77.0.1".parse().unwrap()),
            gateway: Some("10.77.0.9".parse().unwrap()),
            kind: RouteKind::Local,
            ..RouteSpec::to("0.0.0.0/0".parse().unwrap(), interface())
        }),
        Change::Rule(RuleSpec {
            mark: Some(MarkMatch { mark: Mark(0x48), mask: 0xff }),
            input: Some("eth0".into()),
            output: Some("eth1".into()),
            source: Some("fd66::/64".parse().unwrap()),
            destination: Some("fd67::/64".parse().unwrap()),
            ip_protocol: Some(IpProtocol(58)),
            invert: true,
            suppress_prefix_length: Some(0),
            ..RuleSpec::at(Family::V6, RulePriority(100), TableId(4920))
        }),
        Change::Sysctl { key: SysctlKey::rp_filter("eth0").unwrap(), value: "2".into() },
        Change::Nft(NftTable {
            name: NftName::of_tun("hawser0"),
            sets: Vec::new(),
            chains: vec![NftChain {
                name: "forward".into(),
                hook: None,
                rules: vec!["oifname \"eth0\" accept".into()],
            }],
        }),
        Change::NameServers(NameServers {
            interface: interface(),
            device: "eth0".into(),
            servers: vec!["10.77.0.1".parse().unwrap()],
            domains: vec!["~.".into()],
            by: Resolver::Resolvconf,
        }),
    ]
}

#[test]
fn lines_are_the_golden_ones() {
    let owner = Owner { pid: 7, started: 99, boot: "b".into(), netns: Netns::Cookie(4097) };
    let first = Entry { id: 1, change: mtu(1400), interface: name(), before: Before::Mtu(Mtu(1500)), earlier: None };
    let again = Entry { change: mtu(1300), earlier: Some(mtu(1400)), ..first.clone() };
    let second =
        Entry { id: 2, change: address("10.77.0.1/24"), interface: name(), before: Before::Absent, earlier: None };
    for (line, want) in [
        (owner_line(&owner), OWNER),
        (set_line(&first), MTU),
        (set_line(&again), MTU_AGAIN),
        (set_line(&second), ADDRESS),
        (undone_line(2), UNDONE_2),
    ] {
        assert_eq!(String::from_utf8(line.unwrap()).unwrap(), format!("{want}\n"));
    }
}

#[test]
fn journals_say_what_is_still_to_be_undone() {
    // journal, changes to be undone, unreadable lines
    let table: [(String, Vec<Change>, Vec<usize>); 11] = [
        (String::new(), vec![], vec![]),
        (format!("{OWNER}\n"), vec![], vec![]),
        (format!("{OWNER}\n{MTU}\n{ADDRESS}\n"), vec![mtu(1400), address("10.77.0.1/24")], vec![]),
        (format!("{OWNER}\n{MTU}\n{ADDRESS}\n{UNDONE_2}\n"), vec![mtu(1400)], vec![]),
        (format!("{OWNER}\n{MTU}\n{ADDRESS}\n{MTU_AGAIN}\n"), vec![mtu(1300), address("10.77.0.1/24")], vec![]),
        (format!("{OWNER}\n{MTU}\n{}", &ADDRESS[..20]), vec![mtu(1400)], vec![]),
        (format!("{OWNER}\n{MTU}"), vec![], vec![]),
        (OWNER[..30].to_owned(), vec![], vec![]),
        (format!("{OWNER}\n{}\n{ADDRESS}\n", &MTU[..20]), vec![address("10.77.0.1/24")], vec![2]),
        (format!("{OWNER}\n\0\u{fffd}\n{MTU}\n"), vec![mtu(1400)], vec![2]),
        (format!("{OWNER}\n{OUTSIDE}\n{MTU}\n"), vec![mtu(1400)], vec![2]),
    ];
    for (text, changes, unreadable) in table {
        let contents = parse(text.as_bytes()).unwrap();
        let found: Vec<_> = contents.entries.into_iter().map(|entry| entry.change).collect();
        assert_eq!((found, contents.unreadable), (changes, unreadable), "{text}");
    }
    assert_eq!(parse(OWNER.replace("\"format\":2", "\"format\":3").as_bytes()), Ok(Contents::default()), "torn");
    assert_eq!(parse(format!("{}\n", OWNER.replace("\"format\":2", "\"format\":3")).as_bytes()), Err(3));
}

#[test]
fn every_cut_of_a_journal_is_readable() {
    let whole = format!("{OWNER}\n{MTU}\n{ADDRESS}\n{MTU_AGAIN}\n{UNDONE_2}\n");
    for end in 0..=whole.len() {
        let contents = parse(&whole.as_bytes()[..end]).unwrap();
        assert_eq!(contents.unreadable, Vec::<usize>::new(), "cut at {end}");
    }
}

#[test]
fn every_kind_of_change_survives_its_line() {
    for change in every_kind() {
        let entry = Entry { id: 1, change, interface: name(), before: Before::Value("0".into()), earlier: None };
        let line = set_line(&entry).unwrap();
        assert_eq!(parse(&line).unwrap().entries, vec![entry]);
    }
}

fn open(directory: &Path) -> Result<Journal, JournalError> {
    Journal::open(directory, &InstanceName::new("hawser0").unwrap())
}

#[test]
fn a_journal_passes_to_its_successor_and_vanishes_when_empty() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path()).unwrap();
    let path = journal.directory.join(JOURNAL);
    for change in every_kind() {
        let entry = journal.entry(change, name(), Before::Absent, None);
        journal.set(vec![entry]).unwrap();
    }
    drop(journal);
    let mut journal = open(directory.path()).unwrap();
    let changes: Vec<_> = journal.entries().map(|entry| entry.change.clone()).collect();
    assert_eq!(changes, every_kind());
    for entry in journal.entries().cloned().collect::<Vec<_>>() {
        journal.undone(&[entry.id]).unwrap();
    }
    assert!(path.exists());
    drop(journal);
    assert!(!path.exists() && !path.parent().unwrap().exists());
}

#[test]
fn two_at_once_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, JournalError::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    drop(first);
    open(directory.path()).unwrap();
}

#[test]
fn a_living_owner_is_named_even_without_its_lock_and_a_dead_one_is_not_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let ours = Owner::this_process().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let started = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap();
    let theirs = Owner { pid: child.id(), started, ..ours };
    let netns = directory.path().join("hawser0").join(directory_name(&theirs));
    fs::create_dir_all(&netns).unwrap();
    let entry = Entry { id: 1, change: mtu(1400), interface: name(), before: Before::Mtu(Mtu(1500)), earlier: None };
    write_anew(&netns, &theirs, &[entry]).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(error.to_string().contains(&child.id().to_string()), "{error}");
    assert!(error.hint().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(open(directory.path()).unwrap().entries().len(), 1);
}

#[test]
fn a_journal_of_another_boot_is_void_and_one_of_another_namespace_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let ours = Owner::this_process().unwrap();
    let netns = directory.path().join("hawser0").join(directory_name(&ours));
    fs::create_dir_all(&netns).unwrap();
    let entry = Entry { id: 1, change: mtu(1400), interface: name(), before: Before::Mtu(Mtu(1500)), earlier: None };
    let dead = Owner { started: ours.started - 1, ..ours.clone() };

    let elsewhere = Owner { netns: Netns::Cookie(1 << 40), ..dead.clone() };
    write_anew(&netns, &elsewhere, std::slice::from_ref(&entry)).unwrap();
    let text = fs::read(netns.join(JOURNAL)).unwrap();
    assert!(matches!(
        open(directory.path()),
        Err(JournalError::OtherNamespace { theirs: Netns::Cookie(0x100_0000_0000), .. })
    ));
    assert_eq!(fs::read(netns.join(JOURNAL)).unwrap(), text);

    let before_boot = Owner { boot: "earlier".into(), ..dead };
    write_anew(&netns, &before_boot, &[entry]).unwrap();
    assert_eq!(open(directory.path()).unwrap().entries().len(), 0);
}

#[test]
fn journals_of_other_namespaces_stay_until_the_next_boot() {
    let directory = tempfile::tempdir().unwrap();
    let ours = Owner::this_process().unwrap();
    let instance = directory.path().join("hawser0");
    let entry = Entry { id: 1, change: mtu(1400), interface: name(), before: Before::Mtu(Mtu(1500)), earlier: None };
    let dead = Owner { started: ours.started - 1, ..ours.clone() };
    let earlier = Owner { boot: "earlier".into(), ..dead.clone() };
    // whose, in which directory, whether it stays
    let table = [
        (&dead, Netns::Cookie(1 << 40), true),
        (&dead, Netns::Inode(4_026_531_840), true),
        (&earlier, Netns::Cookie(1 << 41), false),
        (&earlier, Netns::Inode(4_026_531_840), false),
    ];
    let directories = table.map(|(owner, netns, stays)| {
        let owner = Owner { netns, ..owner.clone() };
        let journal = instance.join(directory_name(&owner));
        fs::create_dir_all(&journal).unwrap();
        write_anew(&journal, &owner, std::slice::from_ref(&entry)).unwrap();
        (journal, stays)
    });
    // What is no journal of ours to read is nobody's to sweep either.
    let (strange, format) = (instance.join("netns-7"), OWNER.replace("\"format\":2", "\"format\":3"));
    fs::create_dir_all(&strange).unwrap();
    fs::write(strange.join(JOURNAL), format!("{format}\n")).unwrap();
    let journal = open(directory.path()).unwrap();
    assert_eq!((journal.entries().len(), journal.lacks()), (0, None));
    for (directory, stays) in directories {
        assert_eq!(directory.join(JOURNAL).exists(), stays, "{}", directory.display());
        assert_eq!(directory.exists(), stays, "{}", directory.display());
    }
    assert!(strange.join(JOURNAL).exists());
}

#[test]
fn a_journal_of_an_earlier_boot_that_somebody_is_taking_is_not_swept() {
    let directory = tempfile::tempdir().unwrap();
    let ours = Owner::this_process().unwrap();
    let theirs = Owner { boot: "earlier".into(), netns: Netns::Cookie(1 << 40), ..ours };
    let journal = directory.path().join("hawser0").join(directory_name(&theirs));
    fs::create_dir_all(&journal).unwrap();
    write_anew(&journal, &theirs, &[]).unwrap();
    let lock = File::open(&journal).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    drop(open(directory.path()).unwrap());
    assert!(journal.join(JOURNAL).exists());
    drop(lock);
    drop(open(directory.path()).unwrap());
    assert!(!journal.exists());
}

#[test]
fn a_kernel_without_cookies_is_named_with_its_version() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path()).unwrap();
    assert_eq!(journal.lacks(), None);
    journal.owner.netns = Netns::Inode(4_026_531_840);
    assert_eq!(journal.lacks().unwrap().to_string(), "cookies of network namespaces (linux 5.14)");
    assert!(directory_name(&journal.owner).ends_with(&format!("netns-inode-4026531840-{}", journal.owner.boot)));
}

#[test]
fn a_row_of_mtus_is_one_entry_and_the_file_stays_short() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path()).unwrap();
    let path = journal.directory.join(JOURNAL);
    let first = journal.entry(mtu(1400), name(), Before::Mtu(Mtu(1500)), None);
    journal.set(vec![first]).unwrap();
    for bytes in 0..1000 {
        let held = journal.held(&mtu(bytes)).unwrap().clone();
        let next = journal.entry(mtu(bytes), name(), Before::Mtu(Mtu(1500)), Some(&held));
        journal.set(vec![next]).unwrap();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= STALE_LINES + 2, "{lines} lines");
    }
    assert_eq!(journal.entries().len(), 1);
    assert_eq!(journal.entries().next().unwrap().earlier, Some(mtu(998)));
    assert_eq!(parse(&fs::read(&path).unwrap()).unwrap().entries, journal.entries().cloned().collect::<Vec<_>>());
}

#[test]
fn many_entries_that_are_replaced_one_by_one_are_written_anew_seldom() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path()).unwrap();
    let path = journal.directory.join(JOURNAL);
    let route = |number: u32, metric| {
        let to = ipnet::Ipv4Net::new(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number), 32).unwrap();
        Change::Route(RouteSpec { metric: Some(Metric(metric)), ..RouteSpec::to(to.into(), interface()) })
    };
    let all: Vec<Entry> =
        (0..1000).map(|number| journal.entry(route(number, 2), name(), Before::Absent, None)).collect();
    journal.set(all).unwrap();
    let inode = || fs::metadata(&path).unwrap().ino();
    let (mut before, mut written) = (inode(), 0);
    for number in 0..1000 {
        let next = journal.entry(route(number, 1), name(), Before::Absent, None);
        journal.set(vec![next]).unwrap();
        let old = journal.held(&route(number, 2)).unwrap().id;
        journal.undone(&[old]).unwrap();
        written += u32::from(std::mem::replace(&mut before, inode()) != before);
    }
    assert!(written <= 2, "{written} times a thousand lines");
    assert_eq!(journal.entries().len(), 1000);
    assert!(
        journal.entries().all(|entry| matches!(&entry.change, Change::Route(route) if route.metric == Some(Metric(1))))
    );
    assert!(journal.held(&route(7, 2)).is_none());
    assert_eq!(parse(&fs::read(&path).unwrap()).unwrap().entries, journal.entries().cloned().collect::<Vec<_>>());
}

#[test]
fn instance_names() {
    for (name, good) in [
        ("hawser0", true),
        ("a.b-c_D9", true),
        ("", false),
        ("..", false),
        (".hidden", false),
        ("a/b", false),
        ("a b", false),
        (&"x".repeat(65), false),
    ] {
        assert_eq!(InstanceName::new(name).is_ok(), good, "{name:?}");
    }
}
