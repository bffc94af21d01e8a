//! What a member wants to have written, and what of that etcd does not have. No input and no output.

use std::collections::BTreeMap;

use hawser_config::{PeerName, PublicKey};
use hawser_hub::units::Epoch;

use crate::client::{Client, Fault, If, Write};
use crate::keys::Key;
use crate::record::{Load, Record as _, Revocation, Seen};
use crate::state::{State, member_id};

/// Keys of one transaction: etcd takes 128 by default (`--max-txn-ops`), and a revocation has three.
const BATCH: usize = 40;

/// What a member wants etcd to hold. Nothing by default; plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// What it has to do.
    pub load: Load,
    /// The highest epoch of each peer that it owned.
    pub owned: BTreeMap<PublicKey, Epoch>,
    /// Who was revoked at this member.
    pub revoked: BTreeMap<PublicKey, PeerName>,
}

impl Own {
    /// Whether etcd does not have all revocations.
    pub(super) fn revokes(&self, state: &State) -> bool {
        self.revoked.keys().any(|key| !state.is_revoked(key))
    }
}

/// Something to be written at once. Owned data.
#[derive(Debug)]
pub struct Batch {
    operation: &'static str,
    holds: Vec<If>,
    writes: Vec<Write>,
}

/// What is to be written next; none where etcd has everything. Revocations come first.
pub fn due(state: &State, own: &Own, me: &PublicKey) -> Option<Batch> {
    let mut batch = Batch { operation: "write revocation", holds: Vec::new(), writes: Vec::new() };
    for (key, name) in own.revoked.iter().filter(|(key, _)| !state.is_revoked(key)).take(BATCH) {
        batch.writes.push(Write::Put(Key::Revoked(*key), Revocation { name: name.clone() }.encode()));
        batch.writes.extend(state.names_of(key).map(|name| Write::Delete(Key::Peer(name.clone()))));
        batch.writes.push(Write::Delete(Key::Epoch(*key)));
    }
    if batch.writes.is_empty() {
        batch.operation = "write epochs";
        // A value that cannot be read is a newer program's, or somebody's to mend: it would be in the way for ever.
        let is_read = |key: &PublicKey| !state.is_fault(&Key::Epoch(*key));
        let is_news = |key: &PublicKey, epoch: Epoch| {
            state.is_peer(key) && is_read(key) && state.seen(key).is_none_or(|(_, seen)| seen.epoch < epoch)
        };
        for (key, epoch) in own.owned.iter().filter(|(key, epoch)| is_news(key, **epoch)).take(BATCH) {
            let at = Key::Epoch(*key);
            // Another member may write a higher one at the same time.
            batch.holds.push(
                state
                    .seen(key)
                    .map_or_else(|| If::Absent(at.clone()), |(modified, _)| If::Unchanged(at.clone(), modified)),
            );
            batch.writes.push(Write::Put(at, Seen { epoch: *epoch, owner: member_id(me) }.encode()));
        }
    }
    (!batch.writes.is_empty()).then_some(batch)
}

impl Batch {
    /// Writes it. Where etcd is full, it still deletes: who is revoked is no peer any more.
    pub async fn write(self, client: &Client) -> Result<(), Fault> {
        let Self { operation, holds, writes } = self;
        let deletions: Vec<Write> = writes.iter().filter(|one| matches!(one, Write::Delete(_))).cloned().collect();
        match client.commit(operation, holds, writes).await {
            Err(fault) if fault.full && !deletions.is_empty() => {
                client.commit(operation, Vec::new(), deletions).await?;
                Err(fault)
            }
            committed => committed.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Prefix;
    use crate::record::Peer;
    use crate::state::{Entry, Revision};

    fn key(number: u8) -> PublicKey {
        PublicKey::new([number; 32]).expect("not zero")
    }

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).expect("in range")
    }

    /// Peers 1, 2 and 4, of which 1 was seen in epoch 5, and 4 in one that cannot be read.
    fn state() -> State {
        let prefix = Prefix::new("/hawser/hub/");
        let entry = |key: &Key, value: Vec<u8>, at| Entry {
            key: prefix.full(key),
            value,
            created: Revision(at),
            modified: Revision(at),
        };
        let peer = |name: &str, number: u8, at| {
            let nets = vec![format!("10.{number}.0.0/16").parse().expect("a network")];
            let name = PeerName::parse(name).expect("a name");
            entry(&Key::Peer(name), Peer { key: key(number), allowed_ips: nets }.encode(), at)
        };
        let seen = Seen { epoch: epoch(5), owner: member_id(&key(8)) };
        let mut state = State::default();
        let unread = entry(&Key::Epoch(key(4)), b"{\"v\":9}".to_vec(), 6);
        let seen = entry(&Key::Epoch(key(1)), seen.encode(), 4);
        let entries = vec![peer("one", 1, 2), peer("two", 2, 3), seen, peer("four", 4, 5), unread];
        state.replace(&prefix, 7, Revision(9), entries);
        state
    }

    /// What is due, in words.
    fn told(own: &Own) -> Vec<String> {
        let Some(batch) = due(&state(), own, &key(9)) else { return Vec::new() };
        let holds = batch.holds.iter().map(|hold| match hold {
            If::Absent(key) => format!("if there is no {key:?}"),
            If::Unchanged(key, at) => format!("if {key:?} is of {}", at.0),
        });
        let writes = batch.writes.iter().map(|write| match write {
            Write::Put(key, value) => format!("{key:?} = {}", String::from_utf8_lossy(value)),
            Write::Delete(key) => format!("delete {key:?}"),
        });
        holds.chain(writes).collect()
    }

    #[test]
    fn what_etcd_does_not_have_is_written_revocations_first() {
        let (one, two, three, four) = (key(1), key(2), key(3), key(4));
        let me = format!("{:016x}", member_id(&key(9)).0);
        let seen = |epoch| format!("{{\"v\":1,\"epoch\":{epoch},\"owner\":\"{me}\"}}");
        let mut own = Own::default();
        assert_eq!(told(&own), Vec::<String>::new());
        own.owned = BTreeMap::from([(one, epoch(5)), (two, epoch(4)), (three, epoch(9)), (four, epoch(9))]);
        assert_eq!(
            told(&own),
            [format!("if there is no {:?}", Key::Epoch(two)), format!("{:?} = {}", Key::Epoch(two), seen(4))],
            "an older epoch, one of nobody's in etcd, and one that cannot be read are none of its business"
        );
        own.owned = BTreeMap::from([(one, epoch(6))]);
        let at = Key::Epoch(one);
        assert_eq!(told(&own), [format!("if {at:?} is of 4"), format!("{at:?} = {}", seen(6))]);
        own.revoked = BTreeMap::from([(two, PeerName::parse("two").expect("a name"))]);
        let gone = Key::Peer(PeerName::parse("two").expect("a name"));
        assert_eq!(
            told(&own),
            [
                format!("{:?} = {{\"v\":1,\"name\":\"two\"}}", Key::Revoked(two)),
                format!("delete {gone:?}"),
                format!("delete {:?}", Key::Epoch(two)),
            ]
        );
    }
}
