//! The addresses of `domains`, learned from answers of name servers that pass. Nobody is asked.
//!
//! 1. nftables logs answers that were asked for ([`super::rule_table`]); [`Learner::next`] hears them.
//! 2. [`lesson`] reads one: the name that was asked for, its aliases, and the addresses at the end of these (RFC 1035
//!    section 4.1).
//! 3. What a rule's domains cover goes into the rule's sets for its TTL, and is gone with that. [`Learner::follow`]
//!    puts it there anew after a reload, and after others flushed nftables.
//!
//! An answer is not held up, so what its reader sends at once may be sooner than the set: docs/schedulers.md has a way
//! to avoid that.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use hawser_config::{Config, Domain};
use hawser_net::netcfg::{Family, NftName, PacketLog, SetElements};
use hickory_proto::op::Message;
use hickory_proto::rr::RData;

use super::rule_table::{learns, set_name};
use crate::api::Status;
use crate::run::own;

/// UDP's number, and the bytes of its header (RFC 768); of IPv4's without options (RFC 791) and of IPv6's (RFC 8200).
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// What counts for no time at all is for the question at hand (RFC 1035 section 3.2.1): whoever asked connects within
/// this.
const TTL_MIN: Duration = Duration::from_secs(1);
/// And longer than this nothing does: 7 days are the most that RFC 8767 section 4 advises to believe.
const TTL_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Addresses that are kept for all rules together. Answers of a hostile server take no more memory.
const KNOWN_MAX: usize = 16_384;

/// What is known. Initially nothing, of no rule; the control thread owns it.
#[derive(Default)]
pub struct Learner {
    heard: Option<(PacketLog, SetElements)>,
    table: Option<NftName>,
    lists: Vec<Vec<Domain>>,
    /// Until when each address of a set counts.
    known: BTreeMap<(String, IpAddr), Instant>,
}

/// What an answer says. Plain data.
#[derive(Debug, PartialEq, Eq)]
struct Lesson {
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    ttl: Duration,
}

impl Learner {
    /// Hears of the domains of these rules from now on. A failure is told: the rules match nothing then.
    pub fn follow(&mut self, config: &Config) {
        self.lists = config.rules.iter().map(|rule| rule.domains.clone()).filter(|list| !list.is_empty()).collect();
        if !learns(config) {
            *self = Self::default();
            return;
        }
        let tun = config.tun.name.as_str();
        self.table = Some(NftName::of_rules(tun));
        if self.heard.is_none() {
            match open(own::log_group(tun)) {
                Ok(heard) => self.heard = Some(heard),
                Err(error) => {
                    tracing::error!(%error, "rules with domains match nothing: answers of name servers not heard (CONFIG_NETFILTER_NETLINK_LOG)")
                }
            }
        }
        let sets: Vec<String> = self.lists.iter().flat_map(|list| both(list)).collect();
        let now = Instant::now();
        self.known.retain(|(set, _), until| *until > now && sets.contains(set));
        for ((set, address), until) in self.known.clone() {
            self.put(&set, &[(address, until.saturating_duration_since(now))]);
        }
    }

    /// Step 1. It waits for ever where nothing is to be heard.
    pub async fn next(&mut self) -> io::Result<Vec<Vec<u8>>> {
        match &mut self.heard {
            Some((log, _)) => log.next().await,
            None => std::future::pending().await,
        }
    }

    /// Steps 2 and 3.
    pub fn take(&mut self, packets: io::Result<Vec<Vec<u8>>>) {
        let packets = match packets {
            Ok(packets) => packets,
            Err(error) => {
                tracing::error!(%error, "answers of name servers not heard any more: a reload tries again");
                self.heard = None;
                return;
            }
        };
        for lesson in packets.iter().filter_map(|packet| lesson(answer(packet)?)) {
            self.learn(&lesson, Instant::now());
        }
    }

    fn learn(&mut self, lesson: &Lesson, now: Instant) {
        let Lesson { names, addresses, ttl } = lesson;
        let asked = |list: &&Vec<Domain>| list.iter().any(|domain| names.iter().any(|name| domain.covers(name)));
        let lists: Vec<Vec<Domain>> = self.lists.iter().filter(asked).cloned().collect();
        self.known.retain(|_, until| *until > now);
        for list in lists {
            for family in [Family::V4, Family::V6] {
                let set = set_name(&list, family);
                let of_family = addresses.iter().filter(|address| Family::of(**address) == family);
                let room = KNOWN_MAX.saturating_sub(self.known.len());
                let learned: Vec<(IpAddr, Duration)> = of_family.map(|address| (*address, *ttl)).take(room).collect();
                for (address, ttl) in &learned {
                    self.known.insert((set.clone(), *address), now + *ttl);
                }
                self.put(&set, &learned);
            }
        }
    }

    fn put(&self, set: &str, addresses: &[(IpAddr, Duration)]) {
        let (Some((_, elements)), Some(table)) = (&self.heard, &self.table) else { return };
        if let Err(error) = if addresses.is_empty() { Ok(()) } else { elements.put(table, set, addresses) } {
            tracing::warn!(set, %error, "addresses of a domain not put into nftables");
        }
    }

    /// What is known of each rule's domains goes into the status.
    pub fn complete(&self, config: &Config, status: &mut Status) {
        let now = Instant::now();
        for (rule, told) in config.rules.iter().zip(&mut status.rules).filter(|(rule, _)| !rule.domains.is_empty()) {
            told.sets = both(&rule.domains).to_vec();
            let own = self.known.iter().filter(|((set, _), until)| told.sets.contains(set) && **until > now);
            told.addresses = own
                .map(|((_, address), until)| (address.to_string(), until.saturating_duration_since(now).as_secs()))
                .collect();
        }
    }
}

fn open(group: u16) -> io::Result<(PacketLog, SetElements)> {
    Ok((PacketLog::open(group)?, SetElements::open()?))
}

fn both(list: &[Domain]) -> [String; 2] {
    [Family::V4, Family::V6].map(|family| set_name(list, family))
}

/// What a datagram of UDP carries, from its IP header on.
fn answer(packet: &[u8]) -> Option<&[u8]> {
    let datagram = match packet.first()? >> 4 {
        4 if *packet.get(9)? == UDP => packet.get(usize::from(packet[0] & 0xf).max(IPV4_HEADER / 4) * 4..)?,
        6 if *packet.get(6)? == UDP => packet.get(IPV6_HEADER..)?,
        _ => return None,
    };
    datagram.get(UDP_HEADER..)
}

/// Step 2. None where it has no address.
fn lesson(bytes: &[u8]) -> Option<Lesson> {
    let said = Message::from_vec(bytes).ok()?;
    let plain = |name: &hickory_proto::rr::Name| name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
    let mut names = vec![plain(said.queries.first()?.name())];
    let (mut addresses, mut ttl) = (BTreeSet::new(), u32::MAX);
    // Aliases may stand in any order, and a hostile answer has thousands.
    let mut aliases: HashMap<String, Vec<(String, u32)>> = HashMap::new();
    for record in &said.answers {
        if let RData::CNAME(alias) = &record.data {
            aliases.entry(plain(&record.name)).or_default().push((plain(alias), record.ttl));
        }
    }
    let mut at = 0;
    while let Some(name) = names.get(at) {
        for (alias, alias_ttl) in aliases.remove(name).unwrap_or_default() {
            ttl = ttl.min(alias_ttl);
            names.push(alias);
        }
        at += 1;
    }
    let of_names: HashSet<&str> = names.iter().map(String::as_str).collect();
    for record in said.answers.iter().filter(|record| of_names.contains(plain(&record.name).as_str())) {
        let address: Option<IpAddr> = match &record.data {
            RData::A(address) => Some(Ipv4Addr::from(*address).into()),
            RData::AAAA(address) => Some(Ipv6Addr::from(*address).into()),
            _ => None,
        };
        if let Some(address) = address {
            ttl = ttl.min(record.ttl);
            addresses.insert(address);
        }
    }
    let addresses = Vec::from_iter(addresses);
    let ttl = Duration::from_secs(ttl.into()).clamp(TTL_MIN, TTL_MAX);
    (!addresses.is_empty()).then_some(Lesson { names, addresses, ttl })
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::{OpCode, Query};
    use hickory_proto::rr::rdata::{A, AAAA, CNAME};
    use hickory_proto::rr::{Name, Record, RecordType};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).expect("a name")
    }

    /// An answer to a question for `www.example.org.`
    fn said(records: &[(&str, u32, RData)]) -> Vec<u8> {
        let mut said = Message::response(7, OpCode::Query);
        said.add_query(Query::query(name("www.example.org."), RecordType::A));
        for (owner, ttl, data) in records {
            said.add_answer(Record::from_rdata(name(owner), *ttl, data.clone()));
        }
        said.to_vec().expect("it can be written")
    }

    #[test]
    fn an_address_counts_for_a_name_and_its_aliases_as_long_as_the_shortest_of_them() {
        let v4 = RData::A(A::new(192, 0, 2, 7));
        let v6 = RData::AAAA(AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7));
        let alias = |to: &str| RData::CNAME(CNAME(name(to)));
        let records = [
            ("b.cdn.test.", 60, v4.clone()),
            ("b.cdn.test.", 60, v6),
            ("a.cdn.test.", 20, alias("b.cdn.test.")),
            ("WWW.example.org.", 300, alias("a.cdn.test.")),
            ("other.test.", 5, RData::A(A::new(192, 0, 2, 9))),
        ];
        let names = ["www.example.org", "a.cdn.test", "b.cdn.test"].map(str::to_owned).to_vec();
        let addresses = ["192.0.2.7", "2001:db8::7"].map(|text| text.parse().expect("an address")).to_vec();
        let want = Lesson { names, addresses, ttl: Duration::from_secs(20) };
        assert_eq!(lesson(&said(&records)), Some(want));
        assert_eq!(lesson(&said(&[("www.example.org.", 0, v4)])).map(|lesson| lesson.ttl), Some(TTL_MIN));
        assert_eq!(lesson(&said(&[])), None);
    }

    #[test]
    fn an_answer_of_thousands_of_aliases_that_go_in_a_circle_takes_no_time() {
        let owner = |number: usize| format!("a{number}.test.");
        let alias = |to: String| RData::CNAME(CNAME(name(&to)));
        // The last one first, so that each look finds one more.
        let mut records: Vec<(String, u32, RData)> =
            (0..1_000).rev().map(|number| (owner(number), 60, alias(owner((number + 1) % 1_000)))).collect();
        records.push(("www.example.org.".to_owned(), 60, alias(owner(0))));
        records.push((owner(999), 60, RData::A(A::new(192, 0, 2, 7))));
        let records: Vec<_> = records.iter().map(|(owner, ttl, data)| (owner.as_str(), *ttl, data.clone())).collect();
        let (bytes, began) = (said(&records), Instant::now());
        assert_eq!(lesson(&bytes).map(|lesson| lesson.addresses.len()), Some(1));
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn what_is_no_answer_teaches_nothing() {
        let said = said(&[("www.example.org.", 60, RData::A(A::new(192, 0, 2, 7)))]);
        for end in 0..said.len() {
            assert_eq!(lesson(&said[..end]).map(|lesson| lesson.addresses), None, "{end} bytes");
        }
        let v4 = [&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, UDP], &[0; 10 + UDP_HEADER][..], &said].concat();
        let v6 = [&[0x60, 0, 0, 0, 0, 0, UDP, 64], &[0; 32 + UDP_HEADER][..], &said].concat();
        for packet in [&v4, &v6] {
            assert_eq!(answer(packet), Some(&said[..]));
            for end in 0..packet.len() - said.len() {
                assert_eq!(answer(&packet[..end]), None, "{end} bytes");
            }
        }
        assert_eq!(answer(&[0x45; 40]), None, "another protocol");
    }
}
