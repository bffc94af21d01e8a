//! Path policies mean here what they mean to the reference implementation, whose verdicts golden/policy/main.go wrote
//! down.

use hawser_scion::path::{Fingerprint, InterfaceId, PathInterface};
use hawser_scion::select::{Acl, AclEntry, HopPredicate, PolicyError, Sequence};

/// The reference's verdicts: a line for each path, then one for each policy with a digit for each path.
const VERDICTS: &str = include_str!("../../golden/policy/verdicts.txt");

/// The lines of a kind, without it.
fn lines(kind: &str) -> impl Iterator<Item = &str> {
    VERDICTS.lines().filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(' '))
}

/// The verdict on a line, and what it is about.
fn verdict(line: &str) -> (&str, &str) {
    line.split_once(' ').expect("a verdict and a policy")
}

/// Text as Go quotes it.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("it is quoted");
    inner.replace("\\t", "\t").replace("\\n", "\n")
}

/// `1-1 4 5 1-2`: AS, interface out, interface in, AS.
fn path(text: &str) -> Fingerprint {
    let words: Vec<&str> = text.split_whitespace().collect();
    let interface = |isd_as: &str, id: &str| PathInterface {
        isd_as: isd_as.parse().expect("an AS"),
        id: InterfaceId(id.parse().expect("an interface")),
    };
    let links = words.windows(4).step_by(3);
    Fingerprint::new(links.flat_map(|link| [interface(link[0], link[1]), interface(link[3], link[2])]))
}

fn digits(passes: impl Fn(&Fingerprint) -> bool) -> String {
    lines("path").map(|text| if passes(&path(&unquoted(text))) { '1' } else { '0' }).collect()
}

#[test]
fn sequences_mean_what_the_reference_says() {
    let mut compared = 0;
    for (expected, text) in lines("sequence").map(verdict) {
        let text = unquoted(text);
        let found = match text.parse::<Sequence>() {
            Ok(sequence) => digits(|path| sequence.matches(path)),
            Err(_) => "error".to_owned(),
        };
        assert_eq!(found, expected, "{text:?}");
        compared += 1;
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn access_lists_mean_what_the_reference_says() {
    let mut compared = 0;
    for (expected, text) in lines("acl").map(verdict) {
        let inner = text.trim_matches(['[', ']']);
        let entries: Result<Vec<AclEntry>, PolicyError> = inner
            .split("\",\"")
            .map(|entry| entry.trim_matches('"'))
            .filter(|entry| !entry.is_empty())
            .map(str::parse)
            .collect();
        // Here no list at all is none, and lets everything pass; the reference only reads lists that are there.
        let found = match entries.map(Acl::new) {
            Ok(Ok(_)) if inner.is_empty() => "error".to_owned(),
            Ok(Ok(acl)) => digits(|path| acl.allows(path)),
            _ => "error".to_owned(),
        };
        assert_eq!(found, expected, "{text}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

/// Where the reference would understand something else than was meant, or nothing that can be.
#[test]
fn what_the_reference_takes_and_no_path_can_match_is_refused_or_understood() {
    for (text, message) in [
        ("01 0", "read \"01 0\", column 1: numbers are written without leading zeros"),
        ("0 1-01", "read \"0 1-01\", column 4: numbers are written without leading zeros"),
        ("0 1-ff00:0:0110", "read \"0 1-ff00:0:0110\", column 4: numbers are written without leading zeros"),
        ("65536", "read \"65536\", column 1: ISDs and interfaces are numbers up to 65535"),
        ("1-1#65536", "read \"1-1#65536\", column 5: ISDs and interfaces are numbers up to 65535"),
        (
            "1-4294967296",
            "read \"1-4294967296\", column 2: an AS number is decimal up to 4294967295, or three groups of hex digits, like ff00:0:110",
        ),
    ] {
        assert_eq!(text.parse::<Sequence>().expect_err(text).to_string(), message);
    }
    let way = path("1-ff00:0:111 1 2 1-ff00:0:110");
    for text in ["1-FF00:0:111 0", "1-ff00:0:111 1-ff00:0:110#2"] {
        assert!(text.parse::<Sequence>().expect(text).matches(&way), "{text}: AS numbers are compared as numbers");
    }
    // The reference has interfaces of any AS in sequences, but not in access lists.
    let any_third: AclEntry = "- 0-0#3".parse().expect("an entry");
    assert_eq!(any_third, AclEntry { allow: false, hop: "0-0#3".parse::<HopPredicate>().expect("a hop") });
}

#[test]
fn a_fault_is_told_with_its_place() {
    for (text, message) in [
        ("1#2", "column 2: interfaces belong to an AS: write ISD-AS#INTERFACE"),
        ("1-5#", "column 5: an interface is a number, where 0 is any"),
        ("0 (0 0", "column 7: the parenthesis is not closed"),
        ("0 0) 0", "column 4: nothing should follow here"),
        ("0 || 0", "column 4: a hop is written ISD, ISD-AS, ISD-AS#INTERFACE or ISD-AS#IN,OUT, where 0 is any"),
        ("0 ä", "column 3: a sequence has hops, ?, +, *, | and parentheses"),
        ("1-", "column 2: an AS number is decimal up to 4294967295, or three groups of hex digits, like ff00:0:110"),
        ("ä", "column 1: a sequence has hops, ?, +, *, | and parentheses"),
    ] {
        let error = text.parse::<Sequence>().expect_err(text).to_string();
        assert_eq!(error, format!("read \"{text}\", {message}"));
    }
    let nested = format!("{}0{}", "(".repeat(100), ")".repeat(100));
    assert!(nested.parse::<Sequence>().expect_err("too deep").to_string().ends_with("nested too deeply"));
    let long = "0 ".repeat(5000);
    assert!(long.parse::<Sequence>().expect_err("too long").to_string().ends_with("the policy is too long"));
    for (text, message) in [
        ("0", "column 1: an entry begins with + or -, then a space and a hop, like \"- 1-ff00:0:110\""),
        ("-1", "column 1: an entry begins with + or -, then a space and a hop, like \"- 1-ff00:0:110\""),
        ("- 1#2", "column 4: interfaces belong to an AS: write ISD-AS#INTERFACE"),
        ("+ 0 0", "column 5: nothing should follow here"),
    ] {
        let error = text.parse::<AclEntry>().expect_err(text).to_string();
        assert_eq!(error, format!("read \"{text}\", {message}"));
    }
}

#[test]
fn repetitions_of_repetitions_cost_no_more_than_their_length() {
    let text = format!("{}0{} 2", "(".repeat(60), "*)*".repeat(60));
    let sequence: Sequence = text.parse().expect("it is one");
    let way: Vec<String> = (0..60).map(|hop| format!("1-{} 1 2 ", hop + 1)).collect();
    let way = path(&format!("{}1-99", way.concat()));
    assert!(!sequence.matches(&way));
}
