//! Transcripts of the command line: what is typed, what comes out, and the exit status.
//!
//! `TRYCMD=overwrite` writes them anew; read the difference before it is committed.

#[test]
fn the_command_line_answers_as_written_down() {
    let cases = trycmd::TestCases::new();
    // Transcripts must not depend on who runs them, and where.
    cases.env("NO_COLOR", "1").env("COLUMNS", "100");
    cases.case("tests/cmd/*.trycmd").case("tests/cmd/*.toml");
    cases.run();
}
