//! The report as one page of HTML: styles and plots in it, no script, nothing from elsewhere.

use std::fmt::Write as _;

use super::claims::{HEADS, MEDIANS};
use super::markdown::ERROR_BARS;
use super::plot::{escaped, style};
use super::series::case_title;
use super::{Report, Scenario, Sheet, Trouble, Verdicts};

/// The page's own looks; colours are the plots'.
const STYLE: &str = include_str!("page.css");

/// What it is a report of.
pub(super) fn title<'a>(reports: &[Report<'a>]) -> &'a str {
    match reports {
        [one] => &one.book.scenario.title,
        _ => "Hawser lab: results",
    }
}

/// All reports; an index where they are several.
pub(super) fn write(reports: &[Report<'_>]) -> String {
    let title = escaped(title(reports));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p class=\"lesser\">{ERROR_BARS}</p>\n",
        style::SHEET
    );
    if reports.len() > 1 {
        index(&mut html, reports);
    }
    reports.iter().for_each(|report| scenario(&mut html, report, reports.len() > 1));
    html.push_str("<h2>Machine and versions</h2>\n<div class=\"scroll\"><table class=\"words machine\"><tbody>\n");
    for (name, value) in super::machine(reports) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(html, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escaped(&name), escaped(&value));
    }
    html.push_str("</tbody></table></div>\n</body>\n</html>\n");
    html
}

fn index(html: &mut String, reports: &[Report<'_>]) {
    html.push_str("<nav aria-label=\"Scenarios\">\n");
    for group in reports.chunk_by(|a, b| a.book.scenario.group == b.book.scenario.group) {
        let _ = writeln!(html, "<h3>{}</h3>\n<ul>", escaped(&group[0].book.scenario.group));
        for Scenario { name, title, .. } in group.iter().map(|report| report.book.scenario) {
            let _ = writeln!(html, "<li><a href=\"#{0}\">{0}</a>: {1}</li>", escaped(name), escaped(title));
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</nav>\n");
}

fn scenario(html: &mut String, report: &Report<'_>, titled: bool) {
    let Scenario { name, title, finding, source, .. } = report.book.scenario;
    let _ = writeln!(html, "<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{0}</h2>", escaped(name));
    if titled {
        let _ = writeln!(html, "<p><strong>{}</strong></p>", escaped(title));
    }
    let _ = writeln!(html, "<p>{}</p>", escaped(finding));
    if !source.is_empty() {
        let _ = writeln!(html, "<p class=\"lesser\">Source: {}</p>", escaped(source));
    }
    let _ = writeln!(html, "<p class=\"lesser\">{}.</p>", escaped(&report.book.extent()));
    claims(html, &report.claims);
    report.tables.iter().for_each(|sheet| table(html, sheet));
    for drawing in &report.plots {
        let _ = writeln!(html, "<h3>{}</h3>", escaped(&drawing.title));
        if let Some(problem) = &drawing.problem {
            let _ = writeln!(html, "<p class=\"note\">Not drawn: {}.</p>", escaped(problem));
        }
        for canvas in &drawing.panels {
            let _ = writeln!(html, "<figure tabindex=\"0\">{}</figure>", canvas.inline());
        }
    }
    if !report.troubles.is_empty() {
        troubles(html, &report.troubles);
    }
    html.push_str("</section>\n");
}

fn claims(html: &mut String, claims: &Verdicts) {
    if claims.0.is_empty() {
        return;
    }
    html.push_str("<h3>What is claimed</h3>\n<div class=\"scroll\"><table class=\"words claims\">\n");
    let _ = writeln!(html, "<thead>\n<tr>{}</tr>\n</thead>\n<tbody>", heads(HEADS));
    for [says, cells @ ..] in &claims.0 {
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(html, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escaped(says));
    }
    let _ = writeln!(html, "</tbody></table></div>\n<p class=\"note\">{MEDIANS}</p>");
}

fn heads<const N: usize>(heads: [&str; N]) -> String {
    heads.map(|head| format!("<th scope=\"col\">{head}</th>")).concat()
}

fn table(html: &mut String, sheet: &Sheet<'_>) {
    let title = escaped(&sheet.title);
    let region = format!("class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\"");
    let _ = writeln!(html, "<h3>{title}</h3>\n<div {region}>\n<table class=\"figures\">\n<thead>");
    let deep = sheet.columns.iter().any(|head| head.published);
    let rows = if deep { " rowspan=\"2\"" } else { "" };
    let _ = write!(html, "<tr{}><th scope=\"col\"{rows}>case</th>", if deep { " class=\"group\"" } else { "" });
    for head in &sheet.columns {
        let (span, scope) = if head.published { (" colspan=\"2\"", "colgroup") } else { (rows, "col") };
        let _ = write!(html, "<th scope=\"{scope}\"{span}>{}</th>", escaped(&head.title));
    }
    html.push_str("</tr>\n");
    if deep {
        let both = "<th scope=\"col\">here</th><th scope=\"col\" class=\"other\">published</th>";
        let _ = writeln!(html, "<tr>{}</tr>", both.repeat(sheet.columns.iter().filter(|head| head.published).count()));
    }
    html.push_str("</thead>\n<tbody>\n");
    for (case, cells) in &sheet.rows {
        let title = case_title(case).map(|title| format!(" <span class=\"case\">{}</span>", escaped(title)));
        let _ = write!(html, "<tr><th scope=\"row\">{}{}</th>", escaped(&case.name), title.unwrap_or_default());
        for (head, cell) in sheet.columns.iter().zip(cells) {
            let class = if cell.own.is_some() { "" } else { " class=\"none\"" };
            let _ = write!(html, "<td{class}>{}</td>", escaped(&cell.own(head)));
            if head.published {
                let _ = write!(html, "<td class=\"other\">{}</td>", cell.published_with_difference(head));
            }
        }
        html.push_str("</tr>\n");
    }
    let _ = writeln!(html, "</tbody></table></div>\n<p class=\"note\">{}</p>", escaped(&sheet.note));
}

fn troubles(html: &mut String, troubles: &[Trouble<'_>]) {
    html.push_str("<h3>Skipped and failed</h3>\n<div class=\"scroll\"><table class=\"words troubles\">\n");
    let _ = writeln!(html, "<thead><tr>{}</tr></thead>\n<tbody>", heads(["contender", "what", "where", "why"]));
    for trouble in troubles {
        let (short, all) = (escaped(trouble.short()), escaped(trouble.reason));
        let reason = match trouble.short() == trouble.reason.trim_end() {
            true => short,
            false => format!("<details><summary>{short}</summary><pre>{all}</pre></details>"),
        };
        let (contender, of) = (escaped(trouble.contender), escaped(&trouble.of.join(", ")));
        let _ = writeln!(html, "<tr><td>{contender}</td><td>{}</td><td>{of}</td><td>{reason}</td></tr>", trouble.what);
    }
    html.push_str("</tbody></table></div>\n");
}
