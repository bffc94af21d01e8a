//! The parts of the core import each other in one direction: no circle is longer than two of them.
//!
//! 1. Every file below `src` that is no test names parts by `crate::part`.
//! 2. A part reaches what it names, and what that names.
//! 3. Parts that reach each other are a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each part, and those that it names.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// No circle is longer.
const LONGEST: usize = 2;

#[test]
fn no_circle_of_imports_is_longer_than_two_parts() {
    let imports = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(imports.len() > 10 && imports["session"].contains("queue"), "the parts are found: {imports:?}");
    let circles: Vec<_> = circles(&imports).into_iter().filter(|circle| circle.len() > LONGEST).collect();
    assert!(circles.is_empty(), "these parts import each other: {circles:?}");
}

#[test]
fn a_circle_is_seen() {
    let of = |names: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (one, other) in names {
            imports.entry((*one).to_owned()).or_default().insert((*other).to_owned());
        }
        circles(&imports).iter().map(BTreeSet::len).max().unwrap_or(0)
    };
    assert_eq!(of(&[("a", "b"), ("b", "c")]), 0);
    assert_eq!(of(&[("a", "b"), ("b", "a"), ("b", "c")]), 2);
    assert_eq!(of(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]), 3);
    assert_eq!(
        named("use crate::queue::{self, Choice};\n// crate::rules\nlet x = crate::wire::FILLER;"),
        set(&["queue", "wire"])
    );
    assert_eq!(
        named("use crate::fec::Fec;\n#[cfg(test)]\nmod tests {\n    use crate::rules::Rules;\n}"),
        set(&["fec"])
    );
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Step 1.
fn imports(source: &Path) -> Imports {
    let mut imports = Imports::new();
    let mut files = vec![source.to_owned()];
    while let Some(file) = files.pop() {
        if file.is_dir() {
            files.extend(fs::read_dir(&file).expect("list sources").map(|entry| entry.expect("a source").path()));
            continue;
        }
        let names: Vec<&str> = below(source, &file).iter().filter_map(|name| name.to_str()).collect();
        if !names.iter().any(|name| is_test(name)) {
            let text = fs::read_to_string(&file).expect("read source");
            imports.entry(name_of(names[0]).to_owned()).or_default().extend(named(&text));
        }
    }
    let known: BTreeSet<String> = imports.keys().cloned().collect();
    for (part, named) in &mut imports {
        named.retain(|name| name != part && known.contains(name));
    }
    imports
}

fn below<'a>(source: &Path, file: &'a Path) -> &'a Path {
    file.strip_prefix(source).expect("a source lies below")
}

fn name_of(file: &str) -> &str {
    file.trim_end_matches(".rs")
}

fn is_test(name: &str) -> bool {
    name.contains("test") || name_of(name) == "fuzz_smoke"
}

/// What a file names by `crate::`, comments and the tests at its end apart.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names = lines.flat_map(|line| line.split("crate::").skip(1));
    let word =
        |rest: &str| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default().to_owned();
    names.map(word).collect()
}

/// Step 3: every set of parts that reach each other.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|part| (part, reached(imports, part))).collect();
    let back = |from: &String, to: &String| reached.get(to).is_some_and(|there| there.contains(from));
    let circle =
        |part: &&String| reached[part].iter().filter(|other| back(part, other)).map(|other| (*other).clone()).collect();
    imports.keys().map(|part| circle(&part)).filter(|circle: &BTreeSet<String>| circle.len() > 1).collect()
}

/// Step 2.
fn reached<'a>(imports: &'a Imports, part: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = vec![part];
    while let Some(part) = next.pop() {
        let named = imports.get(part).into_iter().flatten();
        next.extend(named.filter(|name| reached.insert(*name)));
    }
    reached
}
