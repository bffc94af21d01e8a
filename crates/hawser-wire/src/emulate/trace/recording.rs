//! Drives as a table: what several links carried in the same seconds.
//!
//! 1. The first line names the columns: `drive` (which one, where there are several), `second`, perhaps `area`; all
//!    others are links, with rates in Mbit/s.
//! 2. The rows of a drive stand together, its seconds going up in equal steps.
//! 3. A link of a drive is a [`Trace`].

use std::time::Duration;

use super::{Trace, TraceError};

/// Columns that are no link's.
const DRIVE: &str = "drive";
const SECOND: &str = "second";
const AREA: &str = "area";
/// How far seconds may lie from equal steps.
const STEP_TOLERANCE: f64 = 1e-6;

/// Drives that were recorded or generated. At least one, each of two steps at least. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    links: Vec<String>,
    drives: Vec<Drive>,
}

/// A drive. Plain data.
#[derive(Clone, Debug, PartialEq)]
struct Drive {
    name: String,
    seconds: Vec<f64>,
    /// Of each link, by step.
    megabits: Vec<Vec<f64>>,
}

/// Where columns stand. Plain data.
struct Places {
    all: usize,
    drive: Option<usize>,
    second: usize,
    links: Vec<usize>,
}

impl Recording {
    /// Steps 1 and 2.
    ///
    /// # Errors
    /// With the line at fault.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut lines = (1..).zip(text.trim_end().lines());
        let (_, head) = lines.next().unwrap_or((1, ""));
        let names: Vec<&str> = head.split(',').map(str::trim).collect();
        let places = places(&names)?;
        let mut drives: Vec<Drive> = Vec::new();
        for (line, text) in lines {
            add(&mut drives, &places, line, text)?;
        }
        if drives.is_empty() {
            return Err(TraceError::Nothing);
        }
        for drive in &drives {
            drive.step()?;
        }
        Ok(Self { links: places.links.iter().map(|&place| names[place].to_owned()).collect(), drives })
    }

    /// The links' names, in order.
    #[must_use]
    pub fn links(&self) -> &[String] {
        &self.links
    }

    /// The drives' names, in order, with their lengths.
    pub fn drives(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.drives.iter().map(|drive| (drive.name.as_str(), drive.length()))
    }

    /// What a link carried in each step of a drive, in Mbit/s; none where there is no such drive or link.
    #[must_use]
    pub fn rates(&self, drive: &str, link: &str) -> Option<&[f64]> {
        let drive = self.drives.iter().find(|one| one.name == drive)?;
        Some(&drive.megabits[self.links.iter().position(|one| one == link)?])
    }

    /// Step 3: what a link carried in a drive.
    ///
    /// # Errors
    /// Where there is no such drive or link, with those that there are, or the link carried nothing at all.
    pub fn trace(&self, drive: &str, link: &str) -> Result<Trace, TraceError> {
        let none = |what, name: &str, known: Vec<&str>| TraceError::None {
            what,
            name: name.to_owned(),
            known: known.join(", "),
        };
        let known = || self.drives.iter().map(|drive| drive.name.as_str()).collect();
        let drive = self.drives.iter().find(|one| one.name == drive).ok_or_else(|| none("drive", drive, known()))?;
        let known = || self.links.iter().map(String::as_str).collect();
        let place = self.links.iter().position(|one| one == link).ok_or_else(|| none("link", link, known()))?;
        Trace::rates(drive.step()?, &drive.megabits[place])
    }
}

impl Drive {
    /// From one row to the next, the same for all.
    fn step(&self) -> Result<Duration, TraceError> {
        let uneven = || TraceError::Steps { drive: self.name.clone() };
        let [first, second, ..] = self.seconds[..] else { return Err(uneven()) };
        let is_even = |pair: &[f64]| (pair[1] - pair[0] - (second - first)).abs() < STEP_TOLERANCE;
        let step = Duration::try_from_secs_f64(second - first).ok().filter(|step| !step.is_zero());
        step.filter(|_| self.seconds.windows(2).all(is_even)).ok_or_else(uneven)
    }

    fn length(&self) -> Duration {
        let steps = u32::try_from(self.seconds.len()).unwrap_or(u32::MAX);
        self.step().unwrap_or_default() * steps
    }
}

/// Step 1.
fn places(names: &[&str]) -> Result<Places, TraceError> {
    let place = |name: &str| names.iter().position(|known| *known == name);
    let links = (0..names.len()).filter(|&place| ![DRIVE, SECOND, AREA].contains(&names[place]));
    let links: Vec<usize> = links.collect();
    let second = place(SECOND).filter(|_| !links.is_empty()).ok_or(TraceError::NoColumns)?;
    Ok(Places { all: names.len(), drive: place(DRIVE), second, links })
}

/// Step 2.
fn add(drives: &mut Vec<Drive>, places: &Places, line: usize, text: &str) -> Result<(), TraceError> {
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    if cells.len() != places.all {
        return Err(TraceError::Cells { line, cells: cells.len(), columns: places.all });
    }
    let number = |place: usize| {
        let number = cells[place].parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| TraceError::Cell { line, text: cells[place].to_owned() })
    };
    let name = places.drive.map_or("", |place| cells[place]);
    if drives.last().is_none_or(|drive| drive.name != name) {
        if drives.iter().any(|drive| drive.name == name) {
            return Err(TraceError::Scattered { line, drive: name.to_owned() });
        }
        let megabits = vec![Vec::new(); places.links.len()];
        drives.push(Drive { name: name.to_owned(), seconds: Vec::new(), megabits });
    }
    let Some(drive) = drives.last_mut() else { return Ok(()) };
    drive.seconds.push(number(places.second)?);
    for (rates, &place) in drive.megabits.iter_mut().zip(&places.links) {
        rates.push(number(place)?);
    }
    Ok(())
}
