//! What limits a bond is named, in the status: of made networks, some at once.

use std::thread;
use std::time::Duration;

use crate::limited::{MADE, Made, judged};
use crate::measured::{measured, say_again};

/// Networks of two portals each that leave the processors time.
const AT_ONCE: usize = 5;

fn judge(made: &Made) -> Result<Duration, String> {
    judged(made, |_, _| |_: &str| true)
}

fn judge_some(some: &[Made]) -> Vec<(&Made, Result<Duration, String>)> {
    thread::scope(|scope| {
        let running: Vec<_> = some.iter().map(|made| (made, scope.spawn(|| judge(made)))).collect();
        running.into_iter().map(|(made, run)| (made, run.join().expect("no panic"))).collect()
    })
}

#[test]
fn what_limits_a_bond_is_named_on_each_of_ten_made_networks() {
    for (made, verdict) in MADE.chunks(AT_ONCE).flat_map(judge_some) {
        println!("{}: {verdict:?}", made.name);
        if let Err(why) = verdict {
            // Ten portals at once may find that it is the processor: it is judged alone.
            say_again(&format!("{}: {why}", made.name));
            measured(|| {
                judge(made).expect(made.name);
            });
        }
    }
}
