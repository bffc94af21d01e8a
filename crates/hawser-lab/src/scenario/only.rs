//! A part of a scenario: cases, contenders and workloads that are named.

use super::Scenario;

impl Scenario {
    /// What runs of the scenario, where only these are asked for: of cases, contenders and workloads each, those that
    /// are named, or all where none is.
    ///
    /// # Errors
    /// The first name that is none of the scenario's, and those that are.
    pub fn only(mut self, names: &[String]) -> Result<Self, (String, Vec<String>)> {
        let cases: Vec<String> = self.cases.iter().map(|case| case.name.clone()).collect();
        let labels: Vec<String> = self.contenders.iter().map(|contender| contender.label.clone()).collect();
        let workloads: Vec<String> = self.workloads.iter().map(|workload| workload.name.clone()).collect();
        let known = || [&cases, &labels, &workloads].into_iter().flatten();
        if let Some(stranger) = names.iter().find(|name| known().all(|known| known != *name)) {
            return Err((stranger.clone(), known().cloned().collect()));
        }
        let is_any = |of: &[String]| of.iter().any(|name| names.contains(name));
        let keep = |of: &[String]| {
            let is_any = is_any(of);
            move |name: &String| !is_any || names.contains(name)
        };
        let (is_case, is_label, is_workload) = (keep(&cases), keep(&labels), keep(&workloads));
        self.cases.retain(|case| is_case(&case.name));
        for case in &mut self.cases {
            case.contenders.retain(&is_label);
            case.workloads.retain(&is_workload);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Choice, Series};

    #[test]
    fn what_is_named_runs_and_of_each_kind_without_a_name_all() {
        let text = "name = \"s\"\n[[network.link]]\nname = \"a\"\n[[contender]]\nkind = \"tcp\"\n[[contender]]\n\
                    kind = \"hawser\"\n[[workload]]\nkind = \"bulk\"\nname = \"up\"\n[[workload]]\nkind = \"bulk\"\n\
                    name = \"down\"\n[[case]]\nname = \"one\"\n[[case]]\nname = \"two\"\n";
        let scenario = Scenario::parse(text, "s.toml", None).unwrap_or_else(|error| panic!("{error:#?}"));
        let run = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let part = scenario.clone().only(&names)?;
            Ok::<_, (String, Vec<String>)>(Series::all(&part, Choice::default()).len())
        };
        assert_eq!([run(&[]), run(&["one"]), run(&["one", "tcp"]), run(&["tcp", "up"])], [Ok(8), Ok(4), Ok(2), Ok(2)]);
        let (stranger, known) = run(&["one", "three"]).expect_err("there is none");
        assert_eq!((stranger.as_str(), known.len()), ("three", 6));
    }
}
