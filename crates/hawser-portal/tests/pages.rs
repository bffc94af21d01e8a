//! Links between the pages lead somewhere: to a file that there is, and to a heading that the page has.
//!
//! 1. Pages are README.md and CONTRIBUTING.md, all below docs/, and each crate's README.md.
//! 2. A link is `](target)` outside of code. Those to other hosts are not followed.
//! 3. A heading's anchor is as GitHub writes it: lower case, without punctuation, blanks as hyphens; a second one of
//!    that name ends in `-1`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_link_between_pages_leads_somewhere() {
    let pages = pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let links: Vec<(&PathBuf, String)> =
        pages.iter().flat_map(|(page, text)| links(text).into_iter().map(move |link| (page, link))).collect();
    assert!(pages.len() > 20 && links.len() > 100, "{} pages have {} links", pages.len(), links.len());
    let broken: Vec<String> = links
        .iter()
        .filter(|(page, link)| !leads_somewhere(page, link))
        .map(|(page, link)| format!("{}: {link}", page.display()))
        .collect();
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn what_is_a_link_and_an_anchor() {
    let page = "# One `two`: three!\n[a](b.md) `[no](link)`\n```\n# no\n[no](link)\n```\n## A_b\n## A_b\n![c](d.png)";
    assert_eq!(links(page), ["b.md", "d.png"]);
    assert_eq!(anchors(page), ["one-two-three", "a_b", "a_b-1"]);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    assert!(leads_somewhere(&here, "docs/wire.md") && leads_somewhere(&here, "docs/architecture.md#words"));
    assert!(!leads_somewhere(&here, "docs/no-such.md") && !leads_somewhere(&here, "docs/architecture.md#no-such"));
}

/// Step 1: each page and its text.
fn pages(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("docs")];
    files.extend(
        below(&root.join("crates")).into_iter().map(|krate| krate.join("README.md")).filter(|page| page.exists()),
    );
    let mut pages = BTreeMap::new();
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(below(&file));
        } else if file.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&file).expect("read page");
            pages.insert(file, text);
        }
    }
    pages
}

fn below(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("list folder").map(|entry| entry.expect("an entry").path()).collect()
}

/// The lines of a page outside of its blocks of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Step 2: the targets of a page's links.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(page) {
        let text: String = line.split('`').step_by(2).collect();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains(':')));
    }
    links
}

/// Step 3: the anchors of a page's headings.
fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for heading in prose(page).filter(|line| line.starts_with('#')) {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = |count: usize| if count == 0 { name.clone() } else { format!("{name}-{count}") };
        let free = (0..).map(numbered).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    let Some(anchor) = anchor else { return target.exists() };
    fs::read_to_string(&target).is_ok_and(|text| anchors(&text).iter().any(|known| known == anchor))
}
