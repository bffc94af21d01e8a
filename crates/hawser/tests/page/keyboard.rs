//! The page by the keyboard alone: every control is reached, and what is to be done is asked for again.

use std::collections::BTreeSet;

use hawser_portal::api::Status;
use serde_json::json;

use crate::stage::Stage;

/// Presses a key: its name, its code, and the text that it types.
fn press(stage: &mut Stage, key: &str, code: u32, typed: &str) {
    for kind in ["keyDown", "keyUp"] {
        let typed = if kind == "keyDown" { typed } else { "" };
        let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": typed});
        stage.browser.command("Input.dispatchKeyEvent", &event);
    }
}

fn tab(stage: &mut Stage) -> String {
    press(stage, "Tab", 9, "");
    let name = "(() => { const it = document.activeElement; return it.id || it.getAttribute('aria-label') || it.textContent.trim(); })()";
    stage.browser.evaluate(name).as_str().unwrap_or_default().to_owned()
}

/// Goes on with the Tab key until that control has the focus.
fn reach(stage: &mut Stage, control: &str) {
    let mut seen = BTreeSet::new();
    for _ in 0..60 {
        let name = tab(stage);
        if name == control {
            return;
        }
        seen.insert(name);
    }
    panic!("{control} is not reached, but {seen:?}");
}

fn is_paused(status: &Status) -> bool {
    status.links.iter().any(|link| link.name == "two" && link.paused)
}

#[test]
fn every_control_is_reached_and_a_link_is_paused_and_given_a_tier_without_a_mouse() {
    let mut stage = Stage::new("keys", |_| {});
    stage.wait("cards", "document.querySelectorAll('article').length === 2");
    let mut reached = BTreeSet::new();
    for _ in 0..30 {
        reached.insert(tab(&mut stage));
    }
    for control in [
        "Rate",
        "Round trip",
        "10 min",
        "1 day",
        "Pause one",
        "Pause two",
        "Set tier of one",
        "measure",
        "examine",
        "all-events",
    ] {
        assert!(reached.contains(control), "{control} is not among {reached:?}");
    }
    reach(&mut stage, "Pause two");
    press(&mut stage, "Enter", 13, "\r");
    stage.wait("the question", "document.getElementById('ask').open");
    assert!(!is_paused(&stage.local.status().expect("a status")), "it was not asked for yet");
    reach(&mut stage, "ask-yes");
    press(&mut stage, "Enter", 13, "\r");
    stage.local.wait_for("the pause", is_paused);
    stage.wait_for_verdict("two is paused");
    stage.wait_for_event("two is paused");

    reach(&mut stage, "Resume two");
    press(&mut stage, "Enter", 13, "\r");
    reach(&mut stage, "ask-yes");
    press(&mut stage, "Enter", 13, "\r");
    stage.local.wait_for("its end", |status| !is_paused(status));

    reach(&mut stage, "Set tier of one");
    press(&mut stage, "Enter", 13, "\r");
    reach(&mut stage, "tier");
    stage.browser.evaluate("document.getElementById('tier').select()");
    press(&mut stage, "7", 55, "7");
    press(&mut stage, "Enter", 13, "\r");
    stage.local.wait_for("the tier", |status| status.links.iter().any(|link| link.name == "one" && link.metric == 7));
    stage.wait_for_event("one has another tier");
    // Escape asks for nothing.
    reach(&mut stage, "Pause one");
    press(&mut stage, "Enter", 13, "\r");
    stage.wait("the question", "document.getElementById('ask').open");
    press(&mut stage, "Escape", 27, "");
    stage.wait("its end", "!document.getElementById('ask').open");
    assert!(!stage.local.status().expect("a status").links[0].paused);
}
