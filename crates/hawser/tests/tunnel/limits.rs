//! What limits a bond is named, in the status: all made networks at once.

use std::thread;

use crate::limited::{MADE, judged};
use crate::measured::{measured, say_again};

#[test]
fn what_limits_a_bond_is_named_on_each_of_ten_made_networks() {
    let judge = |made| judged(made, |_, _| |_: &str| true);
    let verdicts = thread::scope(|scope| {
        let running: Vec<_> = MADE.iter().map(|made| (made, scope.spawn(move || judge(made)))).collect();
        running.into_iter().map(|(made, run)| (made, run.join().expect("no panic"))).collect::<Vec<_>>()
    });
    for (made, verdict) in verdicts {
        println!("{}: {verdict:?}", made.name);
        if verdict.is_err() {
            // Twenty portals at once may find that it is the processor: it is judged alone.
            say_again();
            measured(|| {
                judge(made).expect(made.name);
            });
        }
    }
}
