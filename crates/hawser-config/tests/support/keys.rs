//! Chapters of a page of docs/ against a schema: a chapter for each section, with a row for each key.

use hawser_config::schema::{KeySchema, SectionSchema};

/// Holds each section's chapter, whose title has this many `#`, against the section.
pub fn assert_documented(text: &str, level: &str, schema: &[SectionSchema]) {
    let heading = |section: &SectionSchema| match section.repeated {
        true => format!("{level} `[[{}]]`", section.name),
        false => format!("{level} `[{}]`", section.name),
    };
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{level} `["))).collect();
    assert_eq!(titles, schema.iter().map(heading).collect::<Vec<_>>(), "sections, in the schema's order");
    for section in schema {
        let (_, after) = text.split_once(&heading(section)).expect("it is a title");
        let chapter = after.split("\n##").next().expect("there is a first part");
        let rows: Vec<&str> = chapter.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows.len(), section.keys.len(), "{}", section.name);
        for (found, key) in rows.iter().zip(section.keys) {
            let meaning = found.strip_prefix(&row(key)).unwrap_or_else(|| panic!("{found}\nexpected {}…", row(key)));
            assert!(meaning.len() > " |".len(), "{} has no meaning", key.name);
        }
    }
}

/// How the row of a key begins, up to its meaning.
fn row(key: &KeySchema) -> String {
    let default = match key.default {
        word @ ("required" | "none") => word.to_owned(),
        value => format!("`{value}`"),
    };
    format!("| `{}` | {} | {default} | ", key.name, key.kind)
}

/// The examples in a page.
pub fn examples(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}
