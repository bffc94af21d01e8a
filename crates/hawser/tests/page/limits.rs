//! What limits a bond is named on the page, too: each made network by itself, with a browser beside.

use crate::limited::{MADE, judged};
use crate::stage::{browser_beside, link_of};

/// A sentence without its figures, which differ from one second to the next.
fn words(sentence: &str) -> String {
    sentence.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "")
}

#[test]
fn what_limits_a_bond_is_read_on_the_page_on_each_of_ten_made_networks() {
    let mut wrong = Vec::new();
    for made in &MADE {
        let verdict = judged(made, |lab, local| {
            let mut browser = browser_beside(lab);
            browser.open(&link_of(local));
            move |sentence: &str| {
                let read = browser.evaluate("document.getElementById('limit').textContent");
                words(sentence) == words(read.as_str().unwrap_or_default())
            }
        });
        println!("read: {}: {verdict:?}", made.name);
        wrong.extend(verdict.err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
