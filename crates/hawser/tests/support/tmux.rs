//! A real terminal: tmux, of a size that the test chooses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a picture may take where builds have the processors.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(50);

/// One terminal with a command in it, and a shell that tells how that ended. Its server ends when it drops.
pub struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// A terminal of this many columns and lines, in which `command` runs.
    pub fn start((width, height): (u16, u16), command: &str) -> Self {
        let tmux = Self { folder: tempfile::tempdir().expect("a folder") };
        // The inner shell becomes the command, whose process is known so; the outer one stays.
        let line = format!(
            "sh -c 'echo $$ > {}; exec {command}'; echo \"ended with $?\"; stty -a; cat",
            tmux.pid_file().display()
        );
        let size = [width, height].map(|cells| cells.to_string());
        let environment = ["LC_ALL=C.UTF-8", "NO_COLOR=1"].map(|variable| ["-e", variable]).concat();
        let session = ["-u", "-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1]];
        let out = tmux.command(&[&session[..], &environment, &[&line]].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        tmux.command(&["set-option", "-g", "status", "off"]);
        tmux.resize((width, height));
        tmux
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    fn command(&self, arguments: &[&str]) -> Output {
        let socket: &Path = &self.folder.path().join("tmux");
        let out = Command::new("tmux").arg("-S").arg(socket).args(arguments).env_remove("TMUX").output();
        out.expect("tmux is there")
    }

    /// Another size.
    pub fn resize(&self, (width, height): (u16, u16)) {
        self.command(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// Presses keys, by tmux's names of them.
    pub fn press(&self, keys: &[&str]) {
        self.command(&[&["send-keys"], keys].concat());
    }

    /// The process of the command.
    pub fn pid(&self) -> i32 {
        let text = std::fs::read_to_string(self.pid_file()).expect("it was started");
        text.trim().parse().expect("a number")
    }

    /// What is to be seen, without spaces at the lines' ends.
    pub fn picture(&self) -> String {
        let out = self.command(&["capture-pane", "-p"]);
        let text = String::from_utf8(out.stdout).expect("text");
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Whether the command has the terminal for itself, and whether the cursor shows.
    pub fn flags(&self) -> (bool, bool) {
        let out = self.command(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        let text = String::from_utf8_lossy(&out.stdout);
        (text.starts_with('1'), text.trim_end().ends_with('1'))
    }

    /// Looks until the picture is as wanted.
    pub fn wait_for(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let picture = self.picture();
            if holds(&picture) {
                return picture;
            }
            assert!(Instant::now() < end, "waited for {what} in vain:\n{picture}");
            sleep(GLANCE);
        }
    }

    /// The command has ended so, and the terminal is as it was before.
    pub fn assert_ended(&self, status: u8) {
        let end = self.wait_for("the end", |picture| {
            picture.contains(&format!("ended with {status}\n")) && picture.contains("icanon")
        });
        assert!(!end.contains("-icanon") && !end.contains("-echo ") && !end.contains("-isig"), "raw still:\n{end}");
        assert_eq!(self.flags(), (false, true), "the usual screen, and a cursor:\n{end}");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.command(&["kill-server"]);
    }
}
