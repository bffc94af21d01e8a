//! What limits a bond is named, in the status: all made networks at once.

use std::thread;

use crate::limited::{MADE, judged};

#[test]
fn what_limits_a_bond_is_named_on_each_of_ten_made_networks() {
    let verdicts = thread::scope(|scope| {
        let running: Vec<_> =
            MADE.iter().map(|made| (made, scope.spawn(|| judged(made, |_, _| |_: &str| true)))).collect();
        let verdicts = running.into_iter().map(|(made, run)| (made.name, run.join().expect("no panic")));
        verdicts.collect::<Vec<_>>()
    });
    for (name, verdict) in &verdicts {
        println!("{name}: {verdict:?}");
    }
    let wrong: Vec<&String> = verdicts.iter().filter_map(|(_, verdict)| verdict.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
