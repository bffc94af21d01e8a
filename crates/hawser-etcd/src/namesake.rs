//! Two members of one name: the later one is refused, as etcd has a place for one. It serves its peers all the same.

use std::fmt;

use hawser_config::PublicKey;

use crate::keys::MemberName;
use crate::record::{Member, Record as _};

/// Another portal that has a member's name. Owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namesake {
    name: MemberName,
    /// What it says of itself; none where that cannot be read.
    member: Option<Member>,
}

impl Namesake {
    /// Who it is, by what is below the member's key; none where nobody is, or the member itself.
    pub fn of(name: &MemberName, own: &PublicKey, there: Option<&[u8]>) -> Option<Self> {
        let member = Member::decode(there?).ok();
        let is_own = member.as_ref().is_some_and(|member| member.key == *own);
        (!is_own).then(|| Self { name: name.clone(), member })
    }
}

impl fmt::Display for Namesake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, member } = self;
        match member {
            Some(Member { key, endpoints, .. }) if endpoints.is_empty() => {
                write!(f, "member {name} is another portal, with the public key {key}")
            }
            Some(Member { key, endpoints, .. }) => {
                write!(f, "member {name} is another portal, at {}, with the public key {key}", endpoints.join(", "))
            }
            None => write!(f, "member {name} is another portal, whose record cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_config::PeerName;

    use super::*;

    #[test]
    fn a_name_is_free_a_members_own_or_somebodys_who_is_named() {
        let name = MemberName(PeerName::parse("zurich").expect("a name"));
        let key = |number: u8| PublicKey::new([number; 32]).expect("not zero");
        let member = |number: u8, endpoints: &[&str]| {
            let endpoints = endpoints.iter().map(|text| (*text).to_owned()).collect();
            Member { key: key(number), endpoints, weight: 1, rack: 0, version: "0".to_owned() }.encode()
        };
        let other = format!("with the public key {}", key(2));
        for (there, expected) in [
            (None, None),
            (Some(member(1, &[])), None),
            (
                Some(member(2, &["198.51.100.10:4920", "b:1"])),
                Some(format!("is another portal, at 198.51.100.10:4920, b:1, {other}")),
            ),
            (Some(member(2, &[])), Some(format!("is another portal, {other}"))),
            (Some(b"{\"v\":9}".to_vec()), Some("is another portal, whose record cannot be read".to_owned())),
        ] {
            let found = Namesake::of(&name, &key(1), there.as_deref()).map(|found| found.to_string());
            assert_eq!(found, expected.map(|text| format!("member zurich {text}")));
        }
    }
}
