//! The ablation as a plain table: a line for each law, then the same for each family alone.

use super::effect::Effect;
use super::{Ablation, FIGURES, Family, Measured, NAMES};
use std::fmt::Write as _;

/// Columns: the law's name, each figure, its half interval.
const NAME: usize = 18;
const MEAN: usize = 7;
const HALF: usize = 5;
/// What is said of a law that changes nothing that can be told from chance.
pub const NONE: &str = "no effect seen";
/// What is said where there is no interval.
pub const TOO_FEW: &str = "one network tells nothing";

/// All families together, then each alone where there are several.
pub fn table(ablation: &Ablation) -> String {
    let families = ablation.families();
    let mut text = section(ablation, None);
    if families.len() > 1 {
        families.iter().for_each(|family| text += &format!("\n{}", section(ablation, Some(*family))));
    }
    text
}

fn section(ablation: &Ablation, family: Option<Family>) -> String {
    let networks = ablation.grounds.iter().filter(|ground| family.is_none_or(|family| ground.family == family)).count();
    let mut text =
        format!("{}: networks {networks}, runs on each {}\n", family.map_or("all", Family::name), ablation.runs);
    let heads: String = NAMES.iter().map(|(name, _)| format!("  {name:>width$}", width = MEAN + HALF + 4)).collect();
    let _ = writeln!(text, "{:NAME$}{heads}", "without");
    for (variant, measured) in &ablation.variants {
        let _ = writeln!(text, "{:NAME$}{}", variant.name, row(ablation, measured, family));
    }
    text
}

fn row(ablation: &Ablation, measured: &Measured, family: Option<Family>) -> String {
    let effects = ablation.effects(measured, family);
    let cells: String = effects.iter().map(cell).collect();
    format!("{cells}  {}", verdict(&effects))
}

/// Mean and half of the interval, and a star where that does not hold zero.
fn cell(effect: &Effect) -> String {
    let half = effect.half.map_or("?".to_owned(), |half| format!("{half:.1}"));
    let star = if effect.is_seen() { '*' } else { ' ' };
    format!("  {:>MEAN$.1} ± {half:>HALF$}{star}", effect.mean)
}

/// What the law itself does: the opposite of what its absence did.
pub fn verdict(effects: &[Effect; FIGURES]) -> String {
    if effects.iter().all(|effect| effect.half.is_none()) {
        return TOO_FEW.to_owned();
    }
    let (mut helps, mut harms) = (Vec::new(), Vec::new());
    for (effect, (name, more_is_better)) in effects.iter().zip(NAMES).filter(|(effect, _)| effect.is_seen()) {
        let helped = (effect.mean < 0.0) == more_is_better;
        if helped { helps.push(name) } else { harms.push(name) }
    }
    let said = |word: &str, names: Vec<&str>| (!names.is_empty()).then(|| format!("{word} {}", names.join(", ")));
    let said: Vec<String> = [said("helps", helps), said("harms", harms)].into_iter().flatten().collect();
    if said.is_empty() { NONE.to_owned() } else { said.join("; ") }
}
