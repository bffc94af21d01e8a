//! The `hawser` command.
fn main() {}
