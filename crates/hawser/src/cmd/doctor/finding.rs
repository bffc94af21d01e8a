//! What is wrong, and what mends it: for people and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

/// How much it matters. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Fault,
    /// It works, and less than it could.
    Notice,
    /// Nothing is wrong.
    Info,
}

/// Something that was found. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Its name in docs/troubleshooting.md.
    pub id: &'static str,
    /// Which link, peer or interface; empty where it is the whole host.
    pub about: String,
    /// What is wrong, in a sentence.
    pub text: String,
    /// What mends it: a command where there is one; empty where nothing is wrong.
    pub cure: String,
}

impl Finding {
    /// Something does not work.
    pub fn fault(id: &'static str, about: impl ToString, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { severity: Severity::Fault, id, about: about.to_string(), text: text.into(), cure: cure.into() }
    }

    /// Nothing is wrong; worth knowing.
    pub fn info(id: &'static str, about: impl ToString, text: impl Into<String>) -> Self {
        Self { severity: Severity::Info, ..Self::fault(id, about, text, "") }
    }

    /// It works, and less than it could.
    pub fn notice(id: &'static str, about: impl ToString, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { severity: Severity::Notice, ..Self::fault(id, about, text, cure) }
    }
}

/// Two lines for each, faults first; one where there is nothing to mend.
pub fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { severity, id, text: said, cure, .. } in findings {
        let word = match severity {
            Severity::Fault => "fault",
            Severity::Notice => "notice",
            Severity::Info => "info",
        };
        let _ = writeln!(text, "{word}: {said} [{id}]");
        if !cure.is_empty() {
            let _ = writeln!(text, "  cure: {cure}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_sentence_and_its_cure() {
        let found = [
            Finding::fault("no-carrier", "lte", "link lte: wwan0 has no carrier", "look at the modem"),
            Finding::notice("loss", "dsl", "link dsl loses 7 % of its packets", "look at the line"),
            Finding::info("limit", "hub", "what limits what is sent to hub: the sender"),
        ];
        assert_eq!(
            render(&found),
            "fault: link lte: wwan0 has no carrier [no-carrier]\n  cure: look at the modem\n\
             notice: link dsl loses 7 % of its packets [loss]\n  cure: look at the line\n\
             info: what limits what is sent to hub: the sender [limit]\n"
        );
    }
}
