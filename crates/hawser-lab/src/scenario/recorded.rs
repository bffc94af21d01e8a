//! Recorded links: where recordings are found, and which part of one a link has.
//!
//! 1. A file is looked for in the folder that `--traces` names, beside the scenario, and among what comes with Hawser.
//! 2. `trace = "FILE"` is all of a file in mahimahi's format; a table says more: which column of a table of drives,
//!    which drive, from where on, how many times.
//! 3. Where nobody gave a folder and there is no such file, a drive is generated, if the table says of which kind the
//!    link is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use std::{fs, io};

use hawser_config::reading::{Fault, Table, wrong_kind};
use hawser_sim::drive::{self, Drive};
use hawser_wire::{Recording, Trace};
use toml::de::DeValue;

use super::{find, values};

/// Where recordings are found, and which part a case has. Starts without any; one owner, while a scenario is read.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    beside: Option<PathBuf>,
    given: Option<PathBuf>,
    seen: RefCell<Seen>,
}

/// What was found so far. Starts empty.
#[derive(Debug, Default)]
struct Seen {
    texts: BTreeMap<String, String>,
    recordings: BTreeMap<String, Rc<Recording>>,
    generated: BTreeSet<String>,
    stretch: Option<Stretch>,
}

/// A part of a drive. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Which drive: as the recording calls it, or the seed of a generated one.
    pub drive: String,
    /// From where on.
    pub offset: Duration,
}

/// How long a drive is that is generated. Source: the mean of the drives of Hu et al., CoNEXT 2023, is 445 s.
pub(super) const GENERATED_LENGTH: Duration = Duration::from_secs(450);
/// Of a generated drive, where the file does not number it.
const FIRST_SEED: u64 = 1;

const KINDS: [(&str, drive::Kind); 3] =
    [("lte", drive::Kind::Lte), ("5g", drive::Kind::FiveG), ("starlink", drive::Kind::Starlink)];

/// What a table says of a trace. Plain data.
#[derive(Debug)]
struct Says {
    file: String,
    column: Option<String>,
    drive: Option<String>,
    offset: Option<Duration>,
    scale: f64,
    or: Option<(drive::Kind, f64)>,
}

impl Sources {
    /// Recordings of a folder somebody gave, and of the scenario's own.
    pub(crate) fn new(beside: Option<&Path>, given: Option<&Path>) -> Self {
        let [beside, given] = [beside, given].map(|folder| folder.map(Path::to_owned));
        Self { beside, given, seen: RefCell::default() }
    }

    /// What was read, by the files' names; and what was generated, in words.
    pub(super) fn used(&self) -> (BTreeMap<String, String>, Vec<String>) {
        let Seen { texts, generated, .. } = self.seen.take();
        (texts, generated.into_iter().collect())
    }

    /// From now on drives that are not named are this part.
    pub(super) fn set_stretch(&self, stretch: &Stretch) {
        self.seen.borrow_mut().stretch = Some(stretch.clone());
    }

    /// Step 1: a file's text; none where nobody gave a folder and there is no such file.
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        if let Some(text) = self.seen.borrow().texts.get(name) {
            return Ok(Some(text.clone()));
        }
        let read = |folder: &PathBuf| match fs::read_to_string(folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|error| format!("read {name}: {error}"))),
        };
        let found = [&self.given, &self.beside].into_iter().flatten().find_map(read).transpose()?;
        match (found.or_else(|| find::embedded(name).map(str::to_owned)), &self.given) {
            (Some(text), _) => {
                self.seen.borrow_mut().texts.insert(name.to_owned(), text.clone());
                Ok(Some(text))
            }
            (None, Some(folder)) => Err(format!("there is no trace {name} in {}", folder.display())),
            (None, None) => Ok(None),
        }
    }

    /// A table of drives; none as for [`Sources::text`].
    pub(super) fn recording(&self, name: &str) -> Result<Option<Rc<Recording>>, String> {
        if let Some(recording) = self.seen.borrow().recordings.get(name) {
            return Ok(Some(Rc::clone(recording)));
        }
        let Some(text) = self.text(name)? else { return Ok(None) };
        let recording = Rc::new(Recording::parse(&text).map_err(|error| format!("{name}: {error}"))?);
        self.seen.borrow_mut().recordings.insert(name.to_owned(), Rc::clone(&recording));
        Ok(Some(recording))
    }

    /// Steps 2 and 3.
    fn trace(&self, says: &Says) -> Result<Trace, Fault> {
        let stretch = self.seen.borrow().stretch.clone().filter(|_| says.column.is_some() && says.drive.is_none());
        let offset = says.offset.or(stretch.as_ref().map(|stretch| stretch.offset)).unwrap_or_default();
        let drive = says.drive.clone().or(stretch.map(|stretch| stretch.drive));
        let wrong = |error| Fault::new(format!("{}: {error}", says.file));
        let found = match &says.column {
            None => self.text(&says.file).map_err(Fault::new)?.map(|text| Trace::parse(&text)),
            Some(column) => self.recording(&says.file).map_err(Fault::new)?.map(|recording| {
                let only = recording.drives().next().map_or("", |(name, _)| name).to_owned();
                recording.trace(&drive.clone().unwrap_or(only), column)
            }),
        };
        let (trace, scale) = match (found, says.or) {
            (Some(trace), _) => (trace.map_err(wrong)?, says.scale),
            (None, Some((kind, scale))) => (self.generate(says, kind, drive.as_deref())?, scale),
            (None, None) => {
                let fault = Fault::new(format!("there is no trace {}", says.file));
                return Err(fault.hint("give the folder it lies in: hawser lab run --traces DIR"));
            }
        };
        Ok(trace.scaled(scale).map_err(wrong)?.from_offset(offset))
    }

    /// Step 3.
    fn generate(&self, says: &Says, kind: drive::Kind, drive: Option<&str>) -> Result<Trace, Fault> {
        let seed = drive.and_then(|drive| drive.parse().ok()).unwrap_or(FIRST_SEED);
        let name = says.column.as_ref().unwrap_or(&says.file);
        let rates = Drive::new(seed, GENERATED_LENGTH).rates(kind, number(name));
        self.seen.borrow_mut().generated.insert(format!("{name} by seed {seed}"));
        Trace::rates(drive::STEP, &rates).map_err(|error| Fault::new(format!("{}: {error}", says.file)))
    }
}

/// A number of a name's own (FNV-1a, draft-eastlake-fnv).
fn number(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Step 2: the trace of a section; none where it has none, or a wrong one.
pub(super) fn read(table: &mut Table<'_, '_, '_>, sources: &Sources) -> Option<Trace> {
    if let Some(DeValue::String(file)) = table.raw("trace") {
        let says = Says { file: file.to_string(), column: None, drive: None, offset: None, scale: 1.0, or: None };
        return table.get("trace", |_| sources.trace(&says));
    }
    let wrong = |value: &DeValue<'_>| {
        wrong_kind("a trace", value)
            .hint("a file's name, or such as { file = \"drives.csv\", column = \"lte\", drive = \"7\", scale = 0.2 }")
    };
    let said = table.nested("trace", wrong, told)??;
    sources.trace(&said).map_err(|fault| table.fault_at("trace", fault)).ok()
}

fn told(table: &mut Table<'_, '_, '_>) -> Option<Says> {
    let file = table.required("file", "file = \"drives.csv\"", values::text);
    let column = table.get("column", values::name);
    let drive = table.optional("drive", values::name);
    let offset = table.get("offset", values::duration);
    let scale = table.get("scale", values::factor).unwrap_or(1.0);
    if let Some(drive) = drive.as_ref().filter(|_| column.is_none()) {
        let fault = Fault::new("`drive`: only a table of drives has any");
        table.fault(drive.span.clone(), fault.hint("say which link's: column = \"lte\""));
    }
    let or = made_of(table).map(|(kind, own)| (kind, own.unwrap_or(scale)));
    Some(Says { file: file?.value, column, drive: drive.map(|sited| sited.value), offset, scale, or })
}

/// Of which kind the link is, and how many times as much a generated drive is to have.
fn made_of(table: &mut Table<'_, '_, '_>) -> Option<(drive::Kind, Option<f64>)> {
    let word = |value: &DeValue<'_>| values::word(value, &KINDS);
    if !table.raw("or").is_some_and(DeValue::is_table) {
        return table.get("or", word).map(|kind| (kind, None));
    }
    // It is a table.
    let wrong = |_: &DeValue<'_>| Fault::default();
    table.nested("or", wrong, |inner| {
        let kind = inner.required("kind", "kind = \"lte\"", word);
        let scale = inner.get("scale", values::factor);
        Some((kind?.value, scale))
    })?
}
