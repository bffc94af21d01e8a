//! The control socket, asked by its client and by hand.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use hawser_portal::api::{
    Answering, Answers, Asked, Client, ClientError, ControlSocket, Deed, Document, FLOWS_SCHEMA, Flows, Program,
    ServeError, Status,
};
use tokio::runtime::Runtime;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn status() -> Status {
    Status { version: "test".into(), uptime_s: 1.5, ..Status::default() }
}

/// It has nothing else.
struct StatusAlone;

impl Answers for StatusAlone {
    fn get(&self, document: &Document) -> Result<Vec<u8>, String> {
        match document {
            Document::Status => Ok(serde_json::to_vec(&status()).expect("plain data")),
            other => Err(format!("{other:?} is not asked for")),
        }
    }
}

/// Runs `ask` while a portal answers at `path`; the socket is gone afterwards.
fn while_served<T: Send + 'static>(path: &Path, ask: impl FnOnce() -> T + Send + 'static) -> T {
    runtime().block_on(async {
        let socket = ControlSocket::bind(Program::Portal, path).expect("it binds");
        tokio::select! {
            () = socket.serve(Answering::new(Arc::new(StatusAlone))) => panic!("it serves until it is dropped"),
            answer = tokio::task::spawn_blocking(ask) => answer.expect("the question does not panic"),
        }
    })
}

/// What the portal answers to each of `lines`, over one connection.
fn by_hand(path: &Path, lines: &[&str]) -> Vec<String> {
    let mut stream = UnixStream::connect(path).expect("it is there");
    stream.write_all(lines.concat().as_bytes()).expect("it listens");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    BufReader::new(stream).lines().map(|l| l.expect("text")).collect()
}

#[test]
fn a_client_gets_the_status_and_the_socket_is_gone_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made/for/hawser.sock");
    let asked = path.clone();
    let answer = while_served(&path, move || Client::status(&asked));
    assert_eq!(answer.expect("it answers"), status());
    assert!(!path.exists(), "the socket is removed");
}

#[test]
fn only_owner_and_group_may_ask() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let seen = path.clone();
    let mode = while_served(&path, move || seen.metadata().expect("it is there").permissions().mode());
    assert_eq!(mode & 0o7777, 0o660);
}

#[test]
fn a_dead_portals_socket_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    drop(UnixListener::bind(&path).expect("it binds"));
    assert!(path.exists(), "a socket stays when its process dies");
    let asked = path.clone();
    assert!(while_served(&path, move || Client::status(&asked)).is_ok());
}

#[test]
fn a_live_portals_socket_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let (second, asked) = (path.clone(), path.clone());
    let (refused, answer) = while_served(&path, move || {
        let refused = runtime().block_on(async { ControlSocket::bind(Program::Portal, &second) });
        (refused, Client::status(&asked))
    });
    let refused = refused.expect_err("the first is alive");
    assert!(matches!(refused, ServeError::InUse { .. }), "{refused}");
    assert!(answer.is_ok(), "the first still answers");
}

#[test]
fn a_file_in_the_way_is_not_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    std::fs::write(&path, "precious").expect("it can be written");
    let refused =
        runtime().block_on(async { ControlSocket::bind(Program::Portal, &path) }).expect_err("there is a file");
    assert!(matches!(refused, ServeError::NotASocket { .. }), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "precious");
}

#[test]
fn wrong_questions_get_an_error_and_the_next_one_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let asked = path.clone();
    let long = format!("{{\"get\":\"{}\"}}\n", "x".repeat(5000));
    let (answers, cut) = while_served(&path, move || {
        let lines = ["{\"get\":\"keys\"}\n", "nonsense\n", "\n", "{\"set\":1}\n", "{\"get\":\"status\"}\n"];
        (by_hand(&asked, &lines), by_hand(&asked, &[&long, "{\"get\":\"status\"}\n"]))
    });
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert!(answers[..4].iter().all(|a| a.starts_with("{\"error\":")), "{answers:?}");
    assert_eq!(serde_json::from_str::<Status>(&answers[4]).expect("a status"), status());
    assert_eq!(cut.len(), 1, "a question without end closes the connection: {cut:?}");
}

#[test]
fn a_question_cut_off_in_the_middle_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let asked = path.clone();
    let answers = while_served(&path, move || by_hand(&asked, &["{\"get\":\"status\"}"]));
    assert!(answers[0].starts_with("{\"error\":"), "{answers:?}");
}

#[test]
fn a_client_says_when_nobody_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    assert!(matches!(Client::status(&path), Err(ClientError::NotRunning { .. })), "no socket");
    drop(UnixListener::bind(&path).expect("it binds"));
    assert!(matches!(Client::status(&path), Err(ClientError::NotRunning { .. })), "a stale socket");
}

#[test]
fn a_client_says_when_the_answer_is_no_status() {
    let folder = tempfile::tempdir().expect("a folder");
    for (answer, expected) in
        [("{\"error\":\"busy\"}\n", "it refused: busy"), ("[]\n", "no status"), ("", "ask portal")]
    {
        let path = folder.path().join(format!("{}.sock", answer.len()));
        let listener = UnixListener::bind(&path).expect("it binds");
        let portal = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).expect("text");
            (&stream).write_all(answer.as_bytes()).expect("it listens");
            question
        });
        let error = Client::status(&path).expect_err("it is no status");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(portal.join().expect("it does not panic"), "{\"get\":\"status\"}\n");
    }
}

/// It has nothing to show.
struct NoDocument;

impl Answers for NoDocument {
    fn get(&self, _: &Document) -> Result<Vec<u8>, String> {
        Err("there is none".to_owned())
    }
}

#[test]
fn an_order_to_read_the_configuration_again_is_heard_and_its_outcome_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let answers = runtime().block_on(async {
        let socket = ControlSocket::bind(Program::Portal, &path).expect("it binds");
        let (reloads, mut asked) = tokio::sync::mpsc::unbounded_channel();
        let obey = async {
            for done in [true, false] {
                let Asked { deed, answer } = asked.recv().await.expect("an order");
                assert_eq!(deed, Deed::Reload);
                let outcome = if done { Ok(None) } else { Err("its log says what is wrong".to_owned()) };
                answer.send(outcome).expect("somebody waits");
            }
            std::future::pending::<()>().await
        };
        let path = path.clone();
        tokio::select! {
            () = socket.serve(Answering::new(Arc::new(NoDocument)).with_orders(reloads)) => panic!("it serves until it is dropped"),
            () = obey => panic!("it waits for more"),
            answers = tokio::task::spawn_blocking(move || [(); 2].map(|()| Client::reload(&path))) => answers,
        }
    });
    let [done, refused] = answers.expect("the question does not panic");
    done.expect("it was read");
    match refused {
        Err(ClientError::Refused { reason, .. }) => assert!(reason.contains("its log says what is wrong"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_question_for_flows_waits_for_who_counts_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let flows = Flows { schema: FLOWS_SCHEMA, interval_s: 1.0, flows: Vec::new() };
    let told = flows.clone();
    let answers = runtime().block_on(async {
        let socket = ControlSocket::bind(Program::Portal, &path).expect("it binds");
        let (questions, mut asked) = tokio::sync::mpsc::unbounded_channel();
        let count = async {
            let answer: tokio::sync::oneshot::Sender<Flows> = asked.recv().await.expect("a question");
            answer.send(told).expect("somebody waits");
            // The portal ends while the second one waits.
            drop(asked.recv().await);
            std::future::pending::<()>().await
        };
        let path = path.clone();
        let answers = Answering::new(Arc::new(StatusAlone)).with_flows(questions);
        tokio::select! {
            () = socket.serve(answers) => panic!("it serves until it is dropped"),
            () = count => panic!("it waits for more"),
            answers = tokio::task::spawn_blocking(move || [(); 2].map(|()| Client::flows(&path))) => answers,
        }
    });
    let [first, second] = answers.expect("the question does not panic");
    assert_eq!(first.expect("it was counted"), flows);
    assert!(second.expect_err("it ends").to_string().contains("it is ending"));
}

#[test]
fn who_takes_no_orders_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let asked = path.clone();
    match while_served(&path, move || Client::reload(&asked)) {
        Err(ClientError::Refused { reason, .. }) => assert!(reason.contains("by this socket"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_counts_no_flows_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hawser.sock");
    let asked = path.clone();
    match while_served(&path, move || Client::flows(&asked)) {
        Err(ClientError::Refused { reason, .. }) => assert!(reason.contains("counts no flows"), "{reason}"),
        other => panic!("{other:?}"),
    }
}
