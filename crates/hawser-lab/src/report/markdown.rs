//! The report as Markdown, with the plots as files beside it.

use std::fmt::Write as _;

use super::Report;
use super::claims::{HEADS, MEDIANS, NO, Verdicts};
use super::plot::Drawing;
use super::tables::Sheet;

/// What plots' bars are, once for all of them.
pub(super) const ERROR_BARS: &str =
    "Error bars and bands are 1.5 standard deviations to either side; n is the number of runs.";

/// All reports; an index where they are several.
pub(super) fn write(reports: &[Report]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail, here and below.
    let _ = writeln!(text, "# {}\n\n{ERROR_BARS}\n", super::page::title(reports));
    if reports.len() > 1 {
        let mut group = "";
        for report in reports {
            if report.group != group {
                group = &report.group;
                let _ = writeln!(text, "- {group}");
            }
            let _ = writeln!(text, "  - [{}](#{}): {}", report.name, anchor(&report.name), plain(&report.title));
        }
        text.push('\n');
    }
    self::text(&text, reports, true)
}

/// All reports below this head.
pub(super) fn text(head: &str, reports: &[Report], has_pictures: bool) -> String {
    let mut text = head.to_owned();
    reports.iter().for_each(|report| scenario(&mut text, report, has_pictures));
    text.push_str("## Machine and versions\n\n| | |\n| --- | --- |\n");
    for (name, value) in super::machine(reports) {
        let _ = writeln!(text, "| {} | {} |", plain(&name), plain(&value));
    }
    text
}

fn scenario(text: &mut String, report: &Report, has_pictures: bool) {
    let Report { name, title, finding, source, extent, .. } = report;
    let _ = writeln!(text, "## {name}\n\n**{}**. {}\n", plain(title), plain(finding));
    if !source.is_empty() {
        let _ = writeln!(text, "Source: {}\n", plain(source));
    }
    let _ = writeln!(text, "{extent}.\n");
    claims(text, &report.claims);
    report.tables.iter().for_each(|sheet| table(text, sheet));
    let pictures = super::pictures(report);
    let shown = |drawing: &Drawing| has_pictures || drawing.problem.is_some();
    for (number, drawing) in report.plots.iter().enumerate().filter(|(_, drawing)| shown(drawing)) {
        let _ = writeln!(text, "### {}\n", plain(&drawing.title));
        if let Some(problem) = &drawing.problem {
            let _ = writeln!(text, "Not drawn: {problem}.\n");
        }
        for (name, _, canvas) in pictures.iter().filter(|(_, of, _)| has_pictures && *of == number) {
            let alternative = format!("{}. {}", canvas.title, canvas.description);
            let _ = writeln!(text, "![{}]({})\n", plain(&alternative).replace(['[', ']'], ""), super::picture(name));
        }
    }
    if !report.troubles.is_empty() {
        text.push_str("### Skipped and failed\n\n| contender | what | where | why |\n| --- | --- | --- | --- |\n");
        for trouble in &report.troubles {
            let (contender, of) = (plain(&trouble.contender), plain(&trouble.of.join(", ")));
            let _ = writeln!(text, "| {contender} | {} | {of} | {} |", trouble.what, plain(trouble.short()));
        }
        text.push('\n');
    }
}

pub(super) fn claims(text: &mut String, claims: &Verdicts) {
    if claims.is_empty() {
        return;
    }
    let rule = HEADS.map(|_| "---").join(" | ");
    let _ = writeln!(text, "### What is claimed\n\n| {} |\n| {rule} |", HEADS.join(" | "));
    for cells in claims.rows() {
        let cells = cells.map(|cell| if cell == NO { format!("**{NO}**") } else { plain(&cell) });
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let _ = writeln!(text, "\n{MEDIANS}\n");
}

pub(super) fn table(text: &mut String, sheet: &Sheet) {
    let mut heads = vec!["case".to_owned()];
    for head in &sheet.columns {
        heads.push(plain(&head.title));
        if head.published {
            heads.extend(["published".to_owned(), "difference".to_owned()]);
        }
    }
    let rule: Vec<&str> = heads.iter().enumerate().map(|(place, _)| if place == 0 { "---" } else { "---:" }).collect();
    let _ = writeln!(text, "### {}\n\n| {} |\n| {} |", plain(&sheet.title), heads.join(" | "), rule.join(" | "));
    for row in &sheet.rows {
        let mut cells = vec![plain(&row.label())];
        for (head, cell) in sheet.columns.iter().zip(&row.cells) {
            cells.push(cell.own(head));
            if head.published {
                cells.extend([cell.published(head), cell.difference()]);
            }
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let _ = writeln!(text, "\n{}\n", sheet.note);
}

/// Text that neither ends a cell nor becomes markup.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        match letter {
            '<' => plain.push_str("&lt;"),
            '|' | '*' | '_' | '`' | '\\' => plain.extend(['\\', letter]),
            _ => plain.push(letter),
        }
    }
    plain
}

/// As GitHub names a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
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
