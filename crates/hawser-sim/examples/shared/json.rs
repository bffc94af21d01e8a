//! Results as JSON (RFC 8259), with what they were measured on. Few fields and all of them our own: no library is worth
//! it.

use std::process::Command;

/// A number; `null` for what is none.
pub fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.4}") } else { "null".to_owned() }
}

/// A string.
pub fn text(value: &str) -> String {
    let mut out = String::from('"');
    for letter in value.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            _ if letter.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// An object of fields that are JSON already.
pub fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{}: {value}", text(name))).collect();
    format!("{{{}}}", fields.join(", "))
}

/// A list of such values, one a line.
pub fn array(values: impl Iterator<Item = String>) -> String {
    let values: Vec<String> = values.map(|value| format!("    {value}")).collect();
    format!("[\n{}\n  ]", values.join(",\n"))
}

/// Writes a file: case, commit, date, machine, then these fields.
pub fn write(file: &str, case: &str, fields: &[(&str, String)]) {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| {
            panic!("run {program}: {error}; the results name the commit, the date and the machine")
        });
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!("{}, {processors} processors", said("uname", &["-srm"]));
    let about = [
        ("case", text(case)),
        ("commit", text(&said("git", &["describe", "--always", "--dirty", "--abbrev=12"]))),
        ("date", text(&said("date", &["-u", "+%Y-%m-%dT%H:%MZ"]))),
        ("machine", text(&machine)),
    ];
    let lines: Vec<String> =
        about.iter().chain(fields).map(|(name, value)| format!("  {}: {value}", text(name))).collect();
    let whole = format!("{{\n{}\n}}\n", lines.join(",\n"));
    std::fs::write(file, whole).unwrap_or_else(|error| panic!("write {file}: {error}"));
}
