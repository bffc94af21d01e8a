//! Who is compared, as a scenario's contender and case say.

use hawser_scion::select::Criterion;

use super::{CONTENDER, LabError};
use crate::options::{Options, case_count};
use crate::scenario::ContenderPlan;

/// Paths of a case, at most: as many as a shim has egress interfaces.
const MOST_PATHS: u8 = 8;

/// By what the file goes. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// MPTCP through the shims, by paths that are chosen so, and what of a connection goes over SCION where the rest
    /// goes by the ordinary internet: the shim's `side_by_side`.
    Shim(Criterion, Option<&'static str>),
    /// quinn, by the best path alone.
    Quinn,
    /// TCP through Hawser's portals, bonded over paths that are chosen so.
    Hawser(Criterion),
    /// TCP by the ordinary internet.
    Internet,
}

const CODES: [&str; 4] = ["shim", "quinn", "hawser", "internet"];
/// What of a connection goes by the internet, as the option says it, and what then goes over SCION.
const BESIDE: [(&str, Option<&str>); 3] = [("nothing", None), ("main", Some("subflows")), ("subflow", Some("main"))];

impl Candidate {
    /// The one that a scenario means.
    pub fn of(plan: &ContenderPlan) -> Result<Self, LabError> {
        let mut options = Options::of_contender(plan);
        if plan.kind != CONTENDER {
            let fault = format!("kind {:?} beside kind {CONTENDER:?}: they are measured in different ways", plan.kind);
            return Err(options.fault(fault));
        }
        let code = options.word("code", &CODES)?;
        let select = options.string("select")?.map(|text| text.parse::<Criterion>());
        let select = select.transpose().map_err(|error| options.fault(error.to_string()))?.unwrap_or_default();
        let side = options.choice("internet", &BESIDE, None)?;
        if code != "shim" && side.is_some() {
            return Err(options.fault("`internet` is for code = \"shim\""));
        }
        options.finish()?;
        Ok(match code {
            "quinn" => Self::Quinn,
            "hawser" => Self::Hawser(select),
            "internet" => Self::Internet,
            _ => Self::Shim(select, side),
        })
    }
}

/// How many paths a case has.
pub(super) fn paths(x: Option<f64>) -> Result<u8, LabError> {
    case_count(x, "paths", MOST_PATHS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, options: &str) -> Result<Candidate, LabError> {
        let options = options.parse().expect("TOML");
        Candidate::of(&ContenderPlan { kind: kind.to_owned(), label: "one".to_owned(), options })
    }

    #[test]
    fn a_contender_says_who_it_is() {
        for (options, expected) in [
            ("", Candidate::Shim(Criterion::Length, None)),
            ("select = 'mtu'", Candidate::Shim(Criterion::Mtu, None)),
            ("internet = 'main'", Candidate::Shim(Criterion::Length, Some("subflows"))),
            ("code = 'quinn'", Candidate::Quinn),
            ("code = 'hawser'\nselect = 'sharability'", Candidate::Hawser(Criterion::Sharability)),
            ("code = 'internet'", Candidate::Internet),
        ] {
            assert_eq!(read(CONTENDER, options).expect("it is right"), expected, "{options}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_would() {
        for (kind, options, said) in [
            ("tcp", "", "kind \"tcp\""),
            (CONTENDER, "select = 'best'", "sharability"),
            (CONTENDER, "code = 'quinn'\ninternet = 'main'", "code = \"shim\""),
            (CONTENDER, "paths = 4", "select"),
        ] {
            let error = read(kind, options).expect_err("it is wrong").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
