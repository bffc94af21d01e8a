//! Chapters of a page of docs/ against a schema: a chapter for each section, with a row for each key.

use hawser_config::schema::SectionSchema;

/// A key as a page has it. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct Row<'p> {
    /// Its section.
    pub section: SectionSchema,
    /// Its name.
    pub key: &'p str,
    /// Its default as it would be written, `required`, or `none`.
    pub default: &'p str,
}

/// Holds each section's chapter, whose title has this many `#`, against the section, and gives its rows.
pub fn documented<'p>(text: &'p str, level: &str, schema: &[SectionSchema]) -> Vec<Row<'p>> {
    let heading = |section: &SectionSchema| format!("{level} `{}`", section.title());
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{level} `["))).collect();
    assert_eq!(titles, schema.iter().map(heading).collect::<Vec<_>>(), "sections, in the schema's order");
    let mut all = Vec::new();
    for &section in schema {
        let (_, after) = text.split_once(&heading(&section)).expect("it is a title");
        let chapter = after.split("\n##").next().expect("there is a first part");
        let rows: Vec<Row<'_>> = chapter.lines().filter_map(|line| row(section, line.strip_prefix("| `")?)).collect();
        assert_eq!(rows.iter().map(|row| row.key).collect::<Vec<_>>(), section.keys, "{}", section.name);
        all.extend(rows);
    }
    all
}

/// A row with all its cells: name, kind, default, meaning.
fn row(section: SectionSchema, line: &str) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.splitn(4, " | ").collect();
    let [key, kind, default, meaning] = cells[..] else { panic!("{line}: four cells") };
    assert!(!kind.is_empty() && meaning.len() > " |".len(), "{line}: no kind, or no meaning");
    Some(Row { section, key: key.strip_suffix('`')?, default: default.trim_matches('`') })
}

/// The examples in a page.
pub fn examples(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}
