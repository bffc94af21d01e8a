//! `hawser top` in a real terminal (tmux), beside a portal that always says the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_portal::api::{Answering, Answers, ControlSocket, Document, Events, Flows, Program};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::{mpsc::unbounded_channel, oneshot};

use crate::fixture;
use crate::tmux::Tmux;

/// Looks after which its figures stay, as in the transcripts that are drawn without a terminal.
const LOOKS: u64 = 30;

/// The documents of that portal, and how often it was looked at.
struct Written(AtomicU64);

impl Answers for Written {
    fn get(&self, document: &Document) -> Result<Vec<u8>, String> {
        let json = match document {
            Document::Status => {
                let looks = self.0.fetch_add(1, Ordering::Relaxed);
                serde_json::to_vec(&fixture::status(looks.min(LOOKS - 1)))
            }
            Document::Events { .. } => serde_json::to_vec(&events_now()),
            other => return Err(format!("{other:?} is not asked for")),
        };
        json.map_err(|error| error.to_string())
    }
}

/// What happened, always so long ago.
fn events_now() -> Events {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_millis() as u64;
    let mut events = fixture::events();
    events.events.iter_mut().for_each(|event| event.time_unix_ms += now - fixture::NOW_UNIX_MS);
    events
}

/// A portal of figures that are written down. Ends with the test program.
struct Portal {
    folder: TempDir,
}

impl Portal {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("hawser.sock");
        let (ready, is_ready) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let socket = ControlSocket::bind(Program::Portal, &socket).expect("it binds");
                ready.send(()).expect("the test waits");
                let (questions, mut asked) = unbounded_channel::<oneshot::Sender<Flows>>();
                let count = async {
                    while let Some(answer) = asked.recv().await {
                        let _ = answer.send(fixture::flows());
                    }
                };
                let answers = Answering::new(Arc::new(Written(AtomicU64::new(0)))).with_flows(questions);
                tokio::join!(socket.serve(answers), count);
            });
        });
        is_ready.recv().expect("it starts");
        Self { folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("hawser.sock")
    }

    /// The command that shows it.
    fn top(&self) -> String {
        format!("{} top --every 0.2 --socket {}", env!("CARGO_BIN_EXE_hawser"), self.socket().display())
    }
}

fn transcript(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cmd/top/transcripts");
    std::fs::read_to_string(folder.join(name)).expect("a transcript")
}

#[test]
fn a_terminal_shows_what_was_written_down_also_after_it_became_another_size() {
    let portal = Portal::start();
    let top = Tmux::start((80, 24), &portal.top());
    let small = transcript("80x24.txt");
    top.wait_for("the transcript of 80 x 24", |picture| picture == small);
    assert!(top.flags().0, "on a screen of its own");
    top.resize((200, 50));
    let large = transcript("200x50.txt");
    top.wait_for("the transcript of 200 x 50", |picture| picture == large);
    top.resize((80, 24));
    top.wait_for("the small one again", |picture| picture == small);
    top.press(&["?"]);
    let help = transcript("80x24-help.txt");
    top.wait_for("the help", |picture| picture == help);
    top.press(&["?", "Space"]);
    top.wait_for("a pause", |picture| picture.contains("[paused]"));
    top.press(&["C-c"]);
    top.assert_ended(0);
}

#[test]
fn a_signal_ends_it_with_the_terminal_as_it_was() {
    let portal = Portal::start();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let top = Tmux::start((80, 24), &portal.top());
        top.wait_for("a picture", |picture| picture.contains("peer"));
        assert!(top.flags().0, "on a screen of its own");
        kill_process(Pid::from_raw(top.pid()).expect("a process"), signal).expect("it can be signalled");
        top.assert_ended(0);
    }
}

#[test]
fn an_error_leaves_the_terminal_alone() {
    let portal = Portal::start();
    let wrong = format!("{} top --every 90 --socket {}", env!("CARGO_BIN_EXE_hawser"), portal.socket().display());
    let top = Tmux::start((80, 24), &wrong);
    top.assert_ended(2);
    assert!(top.picture().contains("not between 0.2 and 60"), "{}", top.picture());
}

#[test]
fn what_is_no_terminal_is_refused_with_the_command_for_it() {
    let mut top = Command::new(env!("CARGO_BIN_EXE_hawser"));
    let out = top.arg("top").stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(
        said.contains("no terminal") && said.contains("hint: for a file or a pipe: hawser status --watch"),
        "{said}"
    );
}
