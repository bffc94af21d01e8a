//! When half of them, nearly all and all were done.

/// In ms: half, 99.9 % and all of them; none where that never was. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Half.
    pub half: Option<u64>,
    /// 99.9 %.
    pub most: Option<u64>,
    /// All.
    pub all: Option<u64>,
}

/// Of when each was done.
pub fn spread(mut times: Vec<Option<u64>>) -> Spread {
    // What never was comes last.
    times.sort_unstable_by_key(|time| (time.is_none(), *time));
    let at = |place: usize| times.get(place).copied().flatten();
    let count = times.len();
    Spread { half: at(count / 2), most: at(count * 999 / 1000), all: at(count.saturating_sub(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_was_is_later_than_all_that_was() {
        let done = |half, most, all| Spread { half, most, all };
        assert_eq!(spread(Vec::new()), done(None, None, None));
        assert_eq!(spread(vec![None, Some(1), Some(3), Some(2)]), done(Some(3), None, None));
        assert_eq!(spread((0..1001).map(Some).collect()), done(Some(500), Some(999), Some(1000)));
    }
}
