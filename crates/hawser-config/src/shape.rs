//! Which sections a file has, and how they are written: for every file with a [schema](super::schema).

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Fault, Faults, Span, did_you_mean};
use super::reader::kind;
use super::schema::SectionSchema;

/// A section of `schema` as a user writes it: `[tun]`, `[[link]]`.
pub fn title(schema: &[SectionSchema], name: &str) -> String {
    match schema.iter().find(|s| s.name == name) {
        Some(s) if s.repeated => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    }
}

/// The section `[name]`; another shape is a fault.
pub fn single<'a, 't>(tree: &'a DeTable<'t>, name: &str, faults: &mut Faults<'_>) -> Option<(&'a DeTable<'t>, Span)> {
    let value = tree.get(name)?;
    match value.get_ref() {
        DeValue::Table(table) => Some((table, value.span())),
        DeValue::Array(items) if items.iter().all(|i| i.get_ref().is_table()) && !items.is_empty() => {
            let span = items.iter().last().map_or(value.span(), Spanned::span);
            faults.add(span, Fault::new(format!("[{name}] stands once, in single brackets")).fix(format!("[{name}]")));
            None
        }
        other => {
            let fault = Fault::new(format!("`{name}`: expected a section, found {}", kind(other)));
            faults.add(value.span(), fault.hint(format!("write it under a line [{name}]")));
            None
        }
    }
}

/// The sections `[[name]]`; another shape is a fault.
pub fn repeated<'a, 't>(tree: &'a DeTable<'t>, name: &str, faults: &mut Faults<'_>) -> Vec<(&'a DeTable<'t>, Span)> {
    let Some(value) = tree.get(name) else { return Vec::new() };
    match value.get_ref() {
        DeValue::Array(items) if items.iter().all(|i| i.get_ref().is_table()) => {
            items.iter().filter_map(|i| i.get_ref().as_table().map(|t| (t, i.span()))).collect()
        }
        DeValue::Table(_) => {
            let fault = Fault::new(format!("[[{name}]] stands in double brackets, because there may be several"));
            faults.add(value.span(), fault.fix(format!("[[{name}]]")));
            Vec::new()
        }
        other => {
            let fault = Fault::new(format!("`{name}`: expected sections, found {}", kind(other)));
            faults.add(value.span(), fault.hint(format!("write each under a line [[{name}]]")));
            Vec::new()
        }
    }
}

/// The tables of the sections `[[name]]`, as far as they are such; nothing is noted.
pub fn tables<'a, 't>(tree: &'a DeTable<'t>, name: &str) -> impl Iterator<Item = &'a DeTable<'t>> {
    let items = tree.get(name).and_then(|value| value.get_ref().as_array());
    items.into_iter().flat_map(|items| items.iter()).filter_map(|item| item.get_ref().as_table())
}

/// Notes what stands outside of the sections of `schema`.
pub fn unknown_sections(schema: &[SectionSchema], tree: &DeTable<'_>, faults: &mut Faults<'_>) {
    let names: Vec<&str> = schema.iter().map(|s| s.name).collect();
    for (key, value) in tree.iter().filter(|(k, _)| !names.contains(&k.get_ref().as_ref())) {
        let name = key.get_ref().as_ref();
        let homes: Vec<String> =
            schema.iter().filter(|s| s.keys.iter().any(|k| k.name == name)).map(|s| title(schema, s.name)).collect();
        let is_section = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
        let fault = match did_you_mean(name, &names) {
            _ if !homes.is_empty() => Fault::new(format!("key `{name}` outside of its section"))
                .hint(format!("it belongs under {}", homes.join(" or "))),
            Some(meant) => Fault::new(format!("unknown section `{name}`"))
                .hint(format!("did you mean {}?", title(schema, meant)))
                .fix(meant),
            None if is_section => {
                Fault::new(format!("unknown section `{name}`")).hint(format!("sections: {}", names.join(", ")))
            }
            None => Fault::new(format!("unknown key `{name}`")).hint(format!("sections: {}", names.join(", "))),
        };
        faults.add(key.span(), fault);
    }
}
