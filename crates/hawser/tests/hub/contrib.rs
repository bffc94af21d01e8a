//! What contrib/hub has for an operator's machines, with a test's addresses in the place of the examples': what is
//! tried is what is told.

pub const FRR: &str = include_str!("../../../../contrib/hub/frr.conf");
pub const FRR_ROUTER: &str = include_str!("../../../../contrib/hub/frr-router.conf");
pub const NFTABLES: &str = include_str!("../../../../contrib/hub/nftables.conf");
pub const CONNTRACKD: &str = include_str!("../../../../contrib/hub/conntrackd.conf");

/// An example with other words in the place of some, of which each is there.
pub fn changed(example: &str, changes: &[(&str, String)]) -> String {
    changes.iter().fold(example.to_owned(), |text, (from, to)| {
        assert!(text.contains(*from), "an example of contrib/hub has no {from}");
        text.replace(*from, to)
    })
}

/// An example with others in the place of each line that has this.
pub fn repeated(example: &str, with: &str, others: impl Fn(&str) -> Vec<String>) -> String {
    assert!(example.contains(with), "an example of contrib/hub has no {with}");
    let each = |line: &str| if line.contains(with) { others(line) } else { vec![line.to_owned()] };
    example.lines().flat_map(each).map(|line| line + "\n").collect()
}
