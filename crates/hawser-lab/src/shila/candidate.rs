//! Who is compared, as a scenario's contender and case say.

use hawser_scion::select::Criterion;

use super::CONTENDER;
use crate::error::LabError;
use crate::options::{Options, case_count};
use crate::scenario::ContenderPlan;

/// Paths of a case, at most: as many as a shim has egress interfaces.
const MOST_PATHS: u8 = 8;

/// By what the file goes. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// MPTCP through the shims, by paths that are chosen so.
    Shim(Criterion, Beside),
    /// quinn, by the best path alone.
    Quinn,
    /// TCP through Hawser's portals, bonded over paths that are chosen so.
    Hawser(Criterion),
    /// TCP by the ordinary internet.
    Internet,
}

/// What of a connection goes by the ordinary internet. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Nothing.
    Nothing,
    /// The main flow: subflows go over SCION.
    Main,
    /// A subflow: the main flow goes over SCION.
    Subflow,
}

const CODES: [&str; 4] = ["shim", "quinn", "hawser", "internet"];
/// What goes by the internet, as the option says it; the shim's own word for it is `side_by_side`.
const BESIDE: [&str; 3] = ["nothing", "main", "subflow"];

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
        let beside = match options.word("internet", &BESIDE)? {
            "main" => Beside::Main,
            "subflow" => Beside::Subflow,
            _ => Beside::Nothing,
        };
        if code != "shim" && beside != Beside::Nothing {
            return Err(options.fault("`internet` is for code = \"shim\""));
        }
        options.finish()?;
        Ok(match code {
            "quinn" => Self::Quinn,
            "hawser" => Self::Hawser(select),
            "internet" => Self::Internet,
            _ => Self::Shim(select, beside),
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
            ("", Candidate::Shim(Criterion::Length, Beside::Nothing)),
            ("select = 'mtu'", Candidate::Shim(Criterion::Mtu, Beside::Nothing)),
            ("internet = 'main'", Candidate::Shim(Criterion::Length, Beside::Main)),
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
