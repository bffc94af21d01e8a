//! Chromium without a window, steered by its DevTools protocol over a pair of pipes: no port, no library.
//!
//! 1. Its standard input and output become its descriptors 3 and 4 (`--remote-debugging-pipe`); messages are JSON, each
//!    ended by a zero.
//! 2. A command has an id, and its answer the same; what comes between are events, of which requests are kept.
//! 3. It ends with its owner, and each answer is waited for a bounded time.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest that an answer may take, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where Debian's package has it.
const PROGRAM: &str = "chromium";
/// A shell that becomes the program, with its pipes where it looks for them.
const SHELL: [&str; 3] = ["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"];
const ARGUMENTS: &str = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
                         --force-color-profile=srgb --no-first-run --disable-background-networking \
                         --remote-debugging-pipe";

/// A browser with one page. Ended on drop; one owner.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    number: u64,
    /// What the page asked for.
    pub requests: Vec<String>,
    _folder: TempDir,
}

/// Pixels of a screen, red, green, blue in a row each.
pub struct Screen {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Browser {
    /// Step 1.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("make a folder for chromium");
        let mut child = Command::new("sh")
            .args(SHELL)
            .arg(PROGRAM)
            .args(ARGUMENTS.split(' '))
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start sh");
        let commands = child.stdin.take().expect("a pipe to chromium");
        let messages = listen(child.stdout.take().expect("a pipe from chromium"));
        let mut browser =
            Self { child, commands, messages, session: None, number: 0, requests: Vec::new(), _folder: folder };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.command("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = self.command("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Network.enable", "Runtime.enable"] {
            self.command(domain, &json!({}));
        }
    }

    /// Step 2.
    pub fn command(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        // Whether it took it shows in its answer.
        let _ = self.commands.write_all(format!("{message}\0").as_bytes());
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(message) = self.messages.recv_timeout(left) else {
                let status = self.child.try_wait();
                panic!("chromium (Debian's package of that name) did not answer {method}; it: {status:?}");
            };
            if message["method"] == "Network.requestWillBeSent" {
                self.requests.extend(message["params"]["request"]["url"].as_str().map(str::to_owned));
            }
            if message["id"] == json!(self.number) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Shows a file, on a screen of that width, light or dark.
    pub fn show(&mut self, file: &Path, width: u32, scheme: &str) {
        self.dress(width, scheme);
        self.open(&format!("file://{}", file.display()));
    }

    /// A screen of that width, light or dark.
    pub fn dress(&mut self, width: u32, scheme: &str) {
        let screen = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", &screen);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.command("Emulation.setEmulatedMedia", &media);
    }

    /// Goes to an address, and waits until it is there.
    pub fn open(&mut self, url: &str) {
        self.command("Page.navigate", &json!({"url": url}));
        // What is behind # is the page's own business.
        let place = url.split('#').next().unwrap_or(url);
        let is_complete =
            format!("document.readyState === 'complete' && location.href.split('#')[0] === {}", json!(place));
        let end = Instant::now() + PATIENCE;
        while self.evaluate(&is_complete) != json!(true) {
            assert!(Instant::now() < end, "{url} is not shown");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What an expression comes to in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.command("Runtime.evaluate", &parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The whole page.
    pub fn screen(&mut self) -> Screen {
        Screen::decode(&self.picture())
    }

    /// The whole page as a PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let answer = self.command("Page.captureScreenshot", &json!({"format": "png", "captureBeyondViewport": true}));
        STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("base64")
    }
}

impl Drop for Browser {
    /// Step 3.
    fn drop(&mut self) {
        // It may have ended by itself; its helpers end when it does.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(answers: impl Read + Send + 'static) -> Receiver<Value> {
    let (sender, messages) = channel();
    thread::spawn(move || {
        for message in BufReader::new(answers).split(0).map_while(Result::ok) {
            if serde_json::from_slice(&message).is_ok_and(|value| sender.send(value).is_err()) {
                return;
            }
        }
    });
    messages
}

impl Screen {
    fn decode(data: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(data)).read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("a picture");
        let samples = info.color_type.samples();
        assert!(samples >= 3, "a picture in colours");
        let pixels =
            bytes[..info.buffer_size()].chunks_exact(samples).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Self { width: info.width as usize, pixels }
    }

    /// How many pixels within a box (left, top, width, height) are of that colour, nearly.
    pub fn count(&self, [left, top, width, height]: [f64; 4], color: [u8; 3]) -> usize {
        /// Edges are mixed with what is behind them.
        const NEAR: u8 = 10;
        let is_near = |pixel: &[u8; 3]| pixel.iter().zip(color).all(|(a, b)| a.abs_diff(b) <= NEAR);
        let rows = self.pixels.chunks_exact(self.width).skip(top.max(0.0) as usize).take(height.ceil() as usize);
        rows.map(|row| {
            row.iter().skip(left.max(0.0) as usize).take(width.ceil() as usize).filter(|p| is_near(p)).count()
        })
        .sum()
    }

    /// Of all pixels, which share is of that colour.
    pub fn share(&self, color: [u8; 3]) -> f64 {
        let all = [0.0, 0.0, self.width as f64, (self.pixels.len() / self.width) as f64];
        self.count(all, color) as f64 / self.pixels.len() as f64
    }
}
