//! `hawser lab drives`: generated drives beside recorded ones, by their statistics.
//!
//! 1. Of each kind of link this many drives are generated.
//! 2. What the fitted recordings have stands beside it, and each link of the recordings in a folder, where one is
//!    given.
//! 3. Pairs of links in the same drives: what they have in common within drives, and between them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use hawser_sim::drive::statistics::{PAIRS, RECORDED, Statistics, correlation, likeness, per_second};
use hawser_sim::drive::{Drive, Kind};
use hawser_wire::{Recording, TraceError};

use crate::error::LabError;

/// How long a drive is. Source: the mean of those of Hu et al., CoNEXT 2023, is 445 s.
const LENGTH: Duration = Duration::from_secs(450);
/// The links of a car: one of each kind, and a second of the fifth generation.
const LINKS: [(&str, Kind); 4] =
    [("starlink", Kind::Starlink), ("lte", Kind::Lte), ("5g", Kind::FiveG), ("5g, another", Kind::FiveG)];
/// What recordings' files end in.
const TABLE: &str = "csv";

/// A link over many drives, second by second. Plain data.
struct Link {
    name: String,
    drives: Vec<Vec<f64>>,
}

/// Steps 1 to 3, as a table for a terminal.
///
/// # Errors
/// Where the folder has no recording that can be read.
pub fn compared(seeds: u32, recordings: Option<&Path>) -> Result<String, LabError> {
    let mut text = format!("{seeds} generated drives of {} s each\n{HEAD}\n", LENGTH.as_secs());
    let generated = generated(seeds);
    for (link, (_, kind)) in generated.iter().zip(LINKS) {
        row(&mut text, &link.name, &Statistics::of(&link.drives));
        for (_, recorded) in RECORDED.iter().filter(|(of, _)| *of == kind) {
            row(&mut text, "  fitted to", recorded);
        }
    }
    pairs(&mut text, &generated);
    for of in PAIRS {
        let [one, other] = of.kinds;
        pair(&mut text, &format!("  fitted to, {one:?}, {other:?}"), of.within, of.between);
    }
    if let Some(folder) = recordings {
        for (file, links) in recorded(folder)? {
            let _ = writeln!(text, "\n{file}: {} drives\n{HEAD}", links.first().map_or(0, |link| link.drives.len()));
            links.iter().for_each(|link| row(&mut text, &link.name, &Statistics::of(&link.drives)));
            pairs(&mut text, &links);
        }
    }
    Ok(text)
}

const HEAD: &str = "link                 mean  variation  in a drive  low, %  outages/1000 s  mean, s  p97, s  \
                    autocorrelation 1, 5, 15 s";

fn row(text: &mut String, name: &str, of: &Statistics) {
    let [one, five, fifteen] = of.autocorrelation;
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "{name:<18} {:>6.1} {:>10.2} {:>11.2} {:>7.1} {:>15.1} {:>8.1} {:>7.0}  {one:.2} {five:.2} {fifteen:.2}",
        of.mean_mbps,
        of.variation,
        of.drive_variation,
        100.0 * of.low_share,
        of.outages,
        of.outage_mean_s,
        of.outage_p97_s,
    );
}

/// Step 3.
fn pairs(text: &mut String, links: &[Link]) {
    let _ = writeln!(text, "correlation                  within  between drives");
    for (place, one) in links.iter().enumerate() {
        for other in &links[place + 1..] {
            let (within, between) = (correlation(&one.drives, &other.drives), likeness(&one.drives, &other.drives));
            pair(text, &format!("{}, {}", one.name, other.name), within, between);
        }
    }
}

fn pair(text: &mut String, name: &str, within: f64, between: f64) {
    let _ = writeln!(text, "{name:<28} {within:>6.2} {between:>8.2}");
}

/// Step 1.
fn generated(seeds: u32) -> Vec<Link> {
    let drives: Vec<Drive> = (0..u64::from(seeds)).map(|seed| Drive::new(seed, LENGTH)).collect();
    let link = |(number, (name, kind)): (u64, (&str, Kind))| Link {
        name: name.to_owned(),
        drives: drives.iter().map(|drive| per_second(&drive.rates(kind, number))).collect(),
    };
    (0..).zip(LINKS).map(link).collect()
}

/// Step 2: the links of every table of drives in a folder.
fn recorded(folder: &Path) -> Result<Vec<(String, Vec<Link>)>, LabError> {
    let files = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut files = files.map_err(LabError::file("read", folder))?;
    files.sort_by_key(fs::DirEntry::file_name);
    let tables = files.iter().map(fs::DirEntry::path).filter(|path| path.extension().is_some_and(|end| end == TABLE));
    let mut all = Vec::new();
    for path in tables {
        let text = fs::read_to_string(&path).map_err(LabError::file("read", &path))?;
        let wrong = |error: TraceError| LabError::refused(format!("read {}", path.display()), error.to_string());
        let recording = Recording::parse(&text).map_err(wrong)?;
        let link = |name: &String| Link {
            name: name.clone(),
            drives: recording.drives().filter_map(|(drive, _)| Some(recording.rates(drive, name)?.to_vec())).collect(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.push((name, recording.links().iter().map(link).collect()));
    }
    if all.is_empty() {
        let action = format!("read {}", folder.display());
        return Err(LabError::refused(action, "it has no table of drives (.csv)".to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_generated_and_recorded_stand_beside_what_they_are_fitted_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = compared(3, Some(folder.path())).expect_err("it is empty").to_string();
        assert!(said.contains("no table of drives"), "{said}");
        fs::write(folder.path().join("mine.csv"), "second,sky\n0,10\n1,20\n2,30\n").expect("it is written");
        fs::write(folder.path().join("notes.txt"), "no table").expect("it is written");
        let text = compared(3, Some(folder.path())).expect("it is read");
        let begins = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((begins("starlink "), begins("lte "), begins("5g"), begins("  fitted to")), (1, 1, 3, 8), "{text}");
        assert!(text.contains("mine.csv: 1 drives") && text.contains("sky                  20.0"), "{text}");
    }
}
