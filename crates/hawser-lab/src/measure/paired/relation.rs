//! Figures of one run in relation to another contender's in the same run.

use super::contender::{Cipher, Contender, Links};
use crate::measure::bench::Figures;

/// Whom a contender is held against. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Plain forwarding.
    Plain,
    /// wireguard-go.
    WireGuard,
    /// The yardstick with the same cipher.
    Yardstick,
    /// Hawser on one link, with the same cipher.
    OneLink,
}

impl Base {
    /// For a contender; none where there is nothing to compare.
    fn of(self, contender: Contender) -> Option<Contender> {
        let cipher = match contender {
            Contender::Hawser(cipher, _) | Contender::Yardstick(cipher) => Some(cipher),
            Contender::WireGuard => Some(Cipher::ChaCha),
            Contender::Plain => None,
        };
        let base = match self {
            Self::Plain => Contender::Plain,
            Self::WireGuard => Contender::WireGuard,
            Self::Yardstick => Contender::Yardstick(cipher?),
            Self::OneLink if matches!(contender, Contender::Hawser(..)) => Contender::Hawser(cipher?, Links::One),
            Self::OneLink => return None,
        };
        (base != contender && contender != Contender::Plain).then_some(base)
    }
}

/// How two figures become one. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Own over the other's.
    Over,
    /// Own less the other's.
    Less,
}

/// A figure made of one's own and another's. Constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// The new figure's name.
    pub name: &'static str,
    /// Of which figure.
    pub figure: &'static str,
    /// Against whose.
    pub base: Base,
    /// How.
    pub rule: Rule,
}

pub(super) const fn over(name: &'static str, figure: &'static str, base: Base) -> Relation {
    Relation { name, figure, base, rule: Rule::Over }
}

pub(super) const fn less(name: &'static str, figure: &'static str, base: Base) -> Relation {
    Relation { name, figure, base, rule: Rule::Less }
}

/// Adds what the relations say, one after the other: a later one may build on an earlier.
pub(super) fn relate(found: &mut [(Contender, Figures)], relations: &[Relation]) {
    for relation in relations {
        for index in 0..found.len() {
            let (contender, figures) = &found[index];
            let of = |wanted| found.iter().find(|(other, _)| *other == wanted)?.1.get(relation.figure).copied();
            let pair = figures.get(relation.figure).copied().zip(relation.base.of(*contender).and_then(of));
            let Some((own, other)) = pair else { continue };
            let value = match relation.rule {
                Rule::Over => own / other,
                Rule::Less => own - other,
            };
            found[index].1.insert(relation.name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HAWSER: Contender = Contender::HAWSER;
    const TWO: Contender = Contender::Hawser(Cipher::Aes, Links::Two);

    #[test]
    fn each_is_held_against_its_like() {
        let chacha = Contender::Hawser(Cipher::ChaCha, Links::One);
        let table = [
            (Base::WireGuard, HAWSER, Some(Contender::WireGuard)),
            (Base::Yardstick, HAWSER, Some(Contender::Yardstick(Cipher::Aes))),
            (Base::Yardstick, chacha, Some(Contender::Yardstick(Cipher::ChaCha))),
            (Base::OneLink, TWO, Some(HAWSER)),
            (Base::OneLink, HAWSER, None),
            (Base::OneLink, Contender::WireGuard, None),
            (Base::Yardstick, Contender::Yardstick(Cipher::Aes), None),
            (Base::WireGuard, Contender::Plain, None),
        ];
        for (base, contender, expected) in table {
            assert_eq!(base.of(contender), expected, "{base:?} of {contender:?}");
        }
    }

    #[test]
    fn a_ratio_may_be_made_of_differences() {
        let of = |us| Figures::from([("us", us)]);
        let mut found = [(Contender::Plain, of(10.0)), (Contender::WireGuard, of(60.0)), (HAWSER, of(20.0))];
        relate(&mut found, &[less("added", "us", Base::Plain), over("share", "added", Base::WireGuard)]);
        assert_eq!(found[2].1.get("added"), Some(&10.0));
        assert_eq!(found[2].1.get("share"), Some(&0.2));
        assert_eq!(found[1].1.get("share"), None, "it is the base itself");
        assert_eq!(found[0].1, of(10.0), "plain forwarding is compared with nobody");
    }
}
