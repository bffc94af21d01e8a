//! `hawser demo --page`, looked at: the README's picture.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::browser::Browser;
use crate::stage::{PATIENCE, pictures};

/// A demo that goes on until this drops.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed()).expect("a process");
        // It may have ended already.
        let _ = kill_process(pid, Signal::INT);
        let _ = self.0.wait();
    }
}

#[test]
fn the_demo_has_a_page_and_the_readme_its_picture() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    let child =
        command.args(["demo", "--page"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut demo = Demo(child);
    let mut said = BufReader::new(demo.0.stdout.take().expect("a pipe"));
    let mut link = String::new();
    said.read_line(&mut link).expect("a line");
    let mut browser = Browser::start();
    browser.dress(1280, "dark");
    browser.open(link.trim());
    let start = Instant::now();
    let wait = |browser: &mut Browser, expression: &str| {
        while browser.evaluate(expression) != json!(true) {
            assert!(start.elapsed() < 4 * PATIENCE, "{expression}: {}", browser.evaluate("document.body.innerText"));
            sleep(Duration::from_millis(100));
        }
    };
    wait(&mut browser, "document.getElementById('verdict').textContent === 'link1 is cut'");
    wait(
        &mut browser,
        "[...document.querySelectorAll('#events b')].some((said) => said.textContent === 'link1 is back')",
    );
    // So that the picture has the cut in its middle.
    sleep(Duration::from_secs(22));
    fs::create_dir_all(pictures()).expect("a folder");
    fs::write(pictures().join("page.png"), browser.picture()).expect("a picture");
}
