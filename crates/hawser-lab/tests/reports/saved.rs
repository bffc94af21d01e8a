//! The page of the repository's saved results is of what is saved.

use std::path::Path;

use hawser_lab::report::saved::{AGE, PAGE, text};

#[test]
fn the_page_of_saved_results_has_what_their_runs_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/runs");
    let page = std::fs::read_to_string(folder.join(PAGE)).expect("the page is there");
    let mut sections = page.split("\n\n").filter(|paragraph| !paragraph.starts_with(AGE));
    let today = text(&folder, &[]).expect("results can be read");
    for paragraph in today.split("\n\n") {
        assert_eq!(sections.next().map(str::trim), Some(paragraph.trim()), "write it anew: hawser lab tables");
    }
    assert_eq!(sections.next(), None, "write it anew: hawser lab tables");
}
