//! The page's server, asked by browsers that behave and by others.
#![cfg(feature = "web")]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hawser_portal::api::{Answers, Asked, Deed, Document, Flows, Status};
use hawser_portal::web::Web;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

/// How long an answer may take on a busy machine, where it should take none.
const PATIENCE: Duration = Duration::from_secs(20);
/// Memory that an attack may take, in bytes: what the page as a whole may.
const MEMORY_MAX: u64 = 8 << 20;
/// Bytes of a page of memory (x86-64, aarch64 and armv7 of Debian).
const PAGE: u64 = 4096;

/// A portal with a status of some size.
struct Portal;

impl Answers for Portal {
    fn get(&self, document: &Document) -> Result<Vec<u8>, String> {
        let drops = (0..200).map(|at| (format!("reason_{at}"), at)).collect();
        match document {
            Document::Status => Ok(serde_json::to_vec(&Status { drops, ..Status::default() }).expect("plain data")),
            other => Ok(serde_json::to_vec(other).expect("plain data")),
        }
    }
}

/// A page, and whoever browses it.
struct Site {
    web: Web,
    address: SocketAddr,
    orders: UnboundedReceiver<Asked>,
    _flows: UnboundedReceiver<oneshot::Sender<Flows>>,
}

/// An answer: its status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Site {
    fn new() -> Self {
        let (orders_in, orders) = unbounded_channel();
        let (flows_in, flows) = unbounded_channel();
        let web = Web::open("127.0.0.1:0".parse().expect("an address"), Arc::new(Portal), orders_in, flows_in)
            .expect("it opens");
        let address = web.status().listen.parse().expect("an address");
        Self { web, address, orders, _flows: flows }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Asks, with a host and lines of the head.
    fn ask(&self, line: &str, lines: &str, body: &str) -> Answer {
        let head = format!("{line} HTTP/1.1\r\nHost: {}\r\n{lines}", self.address);
        self.ask_raw(&format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
    }

    fn ask_raw(&self, request: &str) -> Answer {
        read_answer(self.connect(), request).expect("it answers")
    }

    fn post(&self, path: &str, lines: &str, body: &str) -> Answer {
        let own = format!("Origin: http://{}\r\nContent-Type: application/json\r\n{lines}", self.address);
        self.ask(&format!("POST {path}"), &own, body)
    }

    fn token(&self) -> String {
        self.web.link().split_once("#login=").expect("a token").1.to_owned()
    }

    /// The lines of the head by which a browser shows that it is logged in: for a look, and for an order.
    fn log_in(&self) -> (String, String) {
        let answer = self.post("/api/login", "", &format!("{{\"token\":\"{}\"}}", self.token()));
        assert_eq!(answer.status, 200, "{}", answer.body);
        let cookie = answer.head.split("set-cookie: ").nth(1).expect("a cookie").split(';').next().expect("a value");
        let csrf: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        let look = format!("Cookie: {cookie}\r\n");
        (look.clone(), format!("{look}X-Hawser-Csrf: {}\r\n", csrf["csrf"].as_str().expect("a secret")))
    }

    fn refused(&self, why: &str) -> u64 {
        self.web.status().refused.get(why).copied().unwrap_or(0)
    }

    /// Somebody who behaves is answered at once, whatever others do.
    fn assert_well(&self, look: &str) {
        let start = Instant::now();
        assert_eq!(self.ask("GET /api/status", look, "").status, 200);
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
}

fn read_answer(mut stream: TcpStream, request: &str) -> io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    let mut text = Vec::new();
    // A connection that is closed with something unread is reset.
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

/// Bytes of this process that are in memory.
fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("proc(5)");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * PAGE
}

/// What the server takes while `attack` goes on, one of these tests at a time.
fn bounded(attack: impl FnOnce()) {
    let before = memory();
    attack();
    let grown = memory().saturating_sub(before);
    assert!(grown <= MEMORY_MAX, "{} KiB more", grown >> 10);
}

#[test]
fn a_link_logs_in_once_and_the_cookie_is_the_browsers_alone() {
    let site = Site::new();
    let token = format!("{{\"token\":\"{}\"}}", site.token());
    let answer = site.post("/api/login", "", &token);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("HttpOnly; SameSite=Strict; Path=/"), "{}", answer.head);
    assert_eq!(site.post("/api/login", "", &token).status, 401, "once");
    let (look, _) = site.log_in();
    let answer = site.ask("GET /api/status", &look, "");
    assert!(answer.status == 200 && answer.body.contains("reason_199"), "{}", answer.body);
    let history = site.ask("GET /api/history?span=day&path=0.0.0.0%3A4920&last=7", &look, "");
    assert_eq!(history.body, "{\"get\":\"history\",\"span\":\"day\",\"path\":\"0.0.0.0:4920\",\"last\":7}");
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let site = Site::new();
    for (path, status) in [("/", 200), ("/page.js", 200), ("/uplot.js", 200), ("/api/status", 401), ("/nothing", 404)] {
        let answer = site.ask(&format!("GET {path}"), "", "");
        assert_eq!(answer.status, status, "{path}");
        for header in
            ["default-src 'none'; script-src 'self'", "x-content-type-options: nosniff", "frame-ancestors 'none'"]
        {
            assert!(answer.head.contains(header), "{path}: {}", answer.head);
        }
        assert!(!answer.head.contains("access-control") && !answer.head.contains("unsafe"), "{path}: {}", answer.head);
    }
}

#[test]
fn what_is_not_this_pages_is_refused_and_counted() {
    let site = Site::new();
    let (look, act) = site.log_in();
    let here = format!("Origin: http://{}\r\nContent-Type: application/json\r\n", site.address);
    let evil = "Origin: https://evil.example\r\nContent-Type: application/json\r\n";
    let pause = "{\"do\":\"pause\",\"link\":\"dsl\"}";
    let table: [(&str, String, &str, u16, &str); 13] = [
        ("GET /../../etc/passwd", look.clone(), "", 404, "path"),
        ("GET /%2e%2e/%2e%2e/etc/passwd", look.clone(), "", 404, "path"),
        ("GET /api/../../../etc/passwd", look.clone(), "", 404, "path"),
        ("GET /api/keys", look.clone(), "", 404, "path"),
        ("GET /api/status", String::new(), "", 401, "session"),
        ("GET /api/status", "Cookie: hawser-1=AAAA\r\n".to_owned(), "", 401, "session"),
        ("GET /api/stream", format!("{look}Sec-Fetch-Site: cross-site\r\n"), "", 403, "origin"),
        ("POST /api/do", format!("{act}{evil}"), pause, 403, "origin"),
        ("POST /api/do", act.clone(), pause, 403, "origin"),
        ("POST /api/do", format!("{look}{here}"), pause, 403, "csrf"),
        ("POST /api/do", format!("{act}{here}"), "{\"do\":\"reload\"}", 404, "path"),
        ("POST /api/do", format!("{act}{here}"), "nonsense", 413, "body"),
        ("DELETE /api/do", act.clone(), "", 405, "method"),
    ];
    for (line, lines, body, status, why) in table {
        let before = site.refused(why);
        assert_eq!(site.ask(line, &lines, body).status, status, "{line} {body}");
        assert_eq!(site.refused(why), before + 1, "{line} {body}");
    }
    let rebound = "GET /api/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(site.ask_raw(rebound).status, 421);
    let mut site = site;
    assert!(site.orders.try_recv().is_err(), "nothing was asked of the portal");
}

#[test]
fn an_order_of_the_page_reaches_the_portal_and_its_outcome_the_page() {
    let mut site = Site::new();
    let (_, act) = site.log_in();
    let mut orders = std::mem::replace(&mut site.orders, unbounded_channel().1);
    let portal = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        for outcome in [Ok(None), Err("there is no link lte".to_owned())] {
            let Asked { deed, answer } = runtime.block_on(orders.recv()).expect("an order");
            assert_eq!(deed, Deed::Pause { link: "lte".into() });
            answer.send(outcome).expect("somebody waits");
        }
    });
    let said = [(); 2].map(|()| site.post("/api/do", &act, "{\"do\":\"pause\",\"link\":\"lte\"}"));
    assert_eq!([said[0].status, said[1].status], [200, 409]);
    assert!(said[1].body.contains("there is no link lte"), "{}", said[1].body);
    portal.join().expect("it does not panic");
}

/// Attacks one after the other, as each is held against the memory of this process.
#[test]
fn attacks_take_bounded_memory_are_counted_and_keep_nobody_out() {
    let site = Site::new();
    let (look, _) = site.log_in();
    site.assert_well(&look);
    bounded(|| wrong_logins(&site, &look));
    bounded(|| large_requests(&site, &look));
    bounded(|| event_streams(&site, &look));
    bounded(|| slow_requests(&site, &look));
}

/// A thousand a second, as far as the processors are free for them.
fn wrong_logins(site: &Site, look: &str) {
    const THREADS: usize = 8;
    const EACH: usize = 200;
    let right = site.token();
    let body = format!("{{\"token\":\"{}.{}\"}}", "A".repeat(12), "A".repeat(32));
    let lines = format!("Origin: http://{}\r\nContent-Type: application/json\r\n", site.address);
    let request = format!(
        "POST /api/login HTTP/1.1\r\nHost: {}\r\n{lines}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        site.address,
        body.len()
    );
    let attack = || {
        for _ in 0..EACH {
            // Nobody waits for the answer.
            let _ = TcpStream::connect(site.address).and_then(|mut stream| stream.write_all(request.as_bytes()));
            thread::sleep(Duration::from_millis(7));
        }
    };
    thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(attack)));
        thread::sleep(Duration::from_millis(300));
        site.assert_well(look);
        let answer = site.post("/api/login", "", &format!("{{\"token\":\"{right}\"}}"));
        assert_eq!(answer.status, 200, "the right one is not kept out");
    });
    let counted = site.refused("login") + site.refused("login_rate") + site.refused("connections");
    let tried = THREADS * EACH;
    assert!(counted as usize >= tried / 2, "{counted} of {tried} were counted: {:?}", site.web.status());
}

/// Bodies of a gigabyte, said beforehand and in chunks.
fn large_requests(site: &Site, look: &str) {
    let own = format!("Host: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/json\r\n", site.address);
    let before = site.refused("body");
    for framing in ["Content-Length: 1000000000", "Transfer-Encoding: chunked"] {
        let mut stream = site.connect();
        stream.write_all(format!("POST /api/login HTTP/1.1\r\n{own}{framing}\r\n\r\n").as_bytes()).expect("it listens");
        let chunk = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
        let mut taken = 0;
        // A gigabyte, were it taken; the write fails when the connection is closed.
        while taken < 1_000_000_000 && stream.write_all(&chunk).is_ok() {
            taken += chunk.len();
        }
        assert!(taken < 50_000_000, "{framing}: {taken} bytes were taken");
    }
    let head = format!("GET / HTTP/1.1\r\nX: {}\r\n", "x".repeat(1 << 20));
    let _ = read_answer(site.connect(), &head);
    assert_eq!(site.refused("body"), before + 2);
    site.assert_well(look);
}

/// Five hundred at a time.
fn event_streams(site: &Site, look: &str) {
    let request = format!("GET /api/stream HTTP/1.1\r\nHost: {}\r\n{look}\r\n", site.address);
    let mut open: Vec<TcpStream> = Vec::new();
    let mut refused = 0;
    for _ in 0..500 {
        let mut stream = site.connect();
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("it answers");
        refused += usize::from(head.ends_with(b"503"));
        open.push(stream);
    }
    assert_eq!(site.web.status().streams, 500 - refused);
    assert!(refused >= 480, "{refused} were refused");
    // None of them reads any more, and new events come.
    thread::sleep(Duration::from_secs(2));
    site.assert_well(look);
    drop(open);
    let end = Instant::now() + PATIENCE;
    while site.web.status().streams > 0 {
        assert!(Instant::now() < end, "closed streams count for ever");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Two hundred that never come to an end.
fn slow_requests(site: &Site, look: &str) {
    let mut open: Vec<TcpStream> = (0..200).map(|_| site.connect()).collect();
    for stream in &mut open {
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: 127");
    }
    site.assert_well(look);
    let start = Instant::now();
    for mut stream in open {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    assert!(site.refused("slow") + site.refused("connections") >= 150, "{:?}", site.web.status());
    site.assert_well(look);
}
