//! A control socket that answers, and a command that asks it.

use std::process::{Command, Output};

use hawser_net::daemon::{ControlSocket, Program, StatusAlone};
use serde::Serialize;

/// What `hawser COMMAND --socket SOCKET` prints while a daemon answers with `status`.
pub fn asked(
    program: Program,
    status: impl Serialize + Clone + Send + Sync + 'static,
    command: &'static [&str],
) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("control.sock");
    let mut asking = Command::new(env!("CARGO_BIN_EXE_hawser"));
    asking.args(command).arg("--socket").arg(&socket);
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
        let socket = ControlSocket::bind(program, &socket).expect("it binds");
        tokio::select! {
            () = socket.serve(StatusAlone(move || status.clone())) => panic!("it serves until it is dropped"),
            out = tokio::task::spawn_blocking(move || asking.output()) => out.expect("no panic").expect("it runs"),
        }
    })
}
