//! The report as Markdown, with the plots as files beside it.

use std::fmt::Write as _;

use super::claims::{HEADS, MEDIANS, NO};
use super::series::case_label;
use super::{Report, Scenario, Sheet, Verdicts};

/// What plots' bars are, once for all of them.
pub(super) const ERROR_BARS: &str =
    "Error bars and bands are 1.5 standard deviations to either side; n is the number of runs.";

/// All reports; an index where they are several.
pub(super) fn write(reports: &[Report<'_>]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail, here and below.
    let _ = writeln!(text, "# {}\n\n{ERROR_BARS}\n", super::page::title(reports));
    if reports.len() > 1 {
        for group in reports.chunk_by(|a, b| a.book.scenario.group == b.book.scenario.group) {
            let _ = writeln!(text, "- {}", group[0].book.scenario.group);
            for Scenario { name, title, .. } in group.iter().map(|report| report.book.scenario) {
                let _ = writeln!(text, "  - [{name}](#{}): {}", anchor(name), plain(title));
            }
        }
        text.push('\n');
    }
    self::text(&text, reports, true)
}

/// All reports below this head, with pictures or without.
pub(crate) fn text(head: &str, reports: &[Report<'_>], has_pictures: bool) -> String {
    let mut text = head.to_owned();
    reports.iter().for_each(|report| scenario(&mut text, report, has_pictures));
    text.push_str("## Machine and versions\n\n| | |\n| --- | --- |\n");
    for (name, value) in super::machine(reports) {
        let _ = writeln!(text, "| {} | {} |", plain(&name), plain(&value));
    }
    text
}

fn scenario(text: &mut String, report: &Report<'_>, has_pictures: bool) {
    let Scenario { name, title, finding, source, .. } = report.book.scenario;
    let _ = writeln!(text, "## {name}\n\n**{}**. {}\n", plain(title), plain(finding));
    if !source.is_empty() {
        let _ = writeln!(text, "Source: {}\n", plain(source));
    }
    let _ = writeln!(text, "{}.\n", report.book.extent());
    claims(text, &report.claims);
    report.tables.iter().for_each(|sheet| table(text, sheet));
    for drawing in report.plots.iter().filter(|drawing| has_pictures || drawing.problem.is_some()) {
        let _ = writeln!(text, "### {}\n", plain(&drawing.title));
        if let Some(problem) = &drawing.problem {
            let _ = writeln!(text, "Not drawn: {problem}.\n");
        }
        for canvas in drawing.panels.iter().filter(|_| has_pictures) {
            let alternative = format!("{}. {}", canvas.title, canvas.description);
            let _ = writeln!(text, "![{}]({})\n", plain(&alternative).replace(['[', ']'], ""), super::picture(canvas));
        }
    }
    if !report.troubles.is_empty() {
        text.push_str("### Skipped and failed\n\n| contender | what | where | why |\n| --- | --- | --- | --- |\n");
        for trouble in &report.troubles {
            let (contender, of) = (plain(trouble.contender), plain(&trouble.of.join(", ")));
            let _ = writeln!(text, "| {contender} | {} | {of} | {} |", trouble.what, plain(trouble.short()));
        }
        text.push('\n');
    }
}

pub(super) fn claims(text: &mut String, claims: &Verdicts) {
    if claims.0.is_empty() {
        return;
    }
    let rule = HEADS.map(|_| "---").join(" | ");
    let _ = writeln!(text, "### What is claimed\n\n| {} |\n| {rule} |", HEADS.join(" | "));
    for cells in &claims.0 {
        let cells = cells.each_ref().map(|cell| if cell == NO { format!("**{NO}**") } else { plain(cell) });
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let _ = writeln!(text, "\n{MEDIANS}\n");
}

pub(super) fn table(text: &mut String, sheet: &Sheet<'_>) {
    let mut heads = vec!["case".to_owned()];
    for head in &sheet.columns {
        heads.push(plain(&head.title));
        heads.extend(["published", "difference"].into_iter().filter(|_| head.published).map(str::to_owned));
    }
    let (title, rule) = (plain(&sheet.title), " ---: |".repeat(heads.len() - 1));
    let _ = writeln!(text, "### {title}\n\n| {} |\n| --- |{rule}", heads.join(" | "));
    for (case, cells) in &sheet.rows {
        let mut row = vec![plain(&case_label(case))];
        for (head, cell) in sheet.columns.iter().zip(cells) {
            row.push(cell.own(head));
            if head.published {
                row.extend([cell.published(head), cell.difference()]);
            }
        }
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    let _ = writeln!(text, "\n{}\n", sheet.note);
}

/// Text that neither ends a cell nor becomes markup.
pub(super) fn plain(text: &str) -> String {
    let mut plain = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "&lt;");
    for markup in ['\\', '|', '*', '_', '`'] {
        plain = plain.replace(markup, &format!("\\{markup}"));
    }
    plain
}

/// As GitHub names a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-").replace(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_'), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_does_not_become_markup() {
        assert_eq!(plain("a | b\n *c* <d> link_up"), "a \\| b \\*c\\* &lt;d> link\\_up");
        assert_eq!(anchor("proxy-two-equal"), "proxy-two-equal");
    }
}
