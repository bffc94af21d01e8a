//! From a request to its answer.
//!
//! 1. The guard looks at it, and it is told apart: a file of the page, a login, or what needs a session.
//! 2. A wrong login is answered late. 3. What is only looked at comes from memory; what is to be done needs the second
//!    secret besides, and goes to the control thread. 4. Every answer says what a browser may do with it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::access::Access;
use super::refusals::{Refusals, Refused};
use super::{assets, guard, stream};
use crate::api::{Answers, Asked, Deed, Document, FlowQuestions, Orders, WebStatus};
use crate::run::SystemRandom;
use hawser_core::units::Random as _;

/// Bytes of a request's body, and how long they may take.
const BODY_MAX: usize = 4096;
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// A wrong login is answered after this long, and this many of them wait at a time.
const WRONG_LOGIN_DELAY: Duration = Duration::from_millis(500);
const WRONG_LOGINS_MAX: usize = 16;
/// Event streams at a time.
const STREAMS_MAX: usize = 16;
/// What is done takes no longer: the doctor asks much.
const DEED_TIMEOUT: Duration = Duration::from_secs(90);
/// The header of the second secret.
const CSRF: &str = "x-hawser-csrf";
/// What every answer says: nothing from elsewhere, nowhere inside of another page, no guessing of types.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];
const JSON: &str = "application/json";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a page shows and does. Nobody is logged in at first; shared by the web thread and the control thread.
pub struct Site {
    /// The cookie's name: cookies are not told apart by ports, and there may be two portals.
    cookie: String,
    answers: Arc<dyn Answers>,
    orders: Orders,
    flows: FlowQuestions,
    access: Mutex<(Access, SystemRandom)>,
    refusals: Refusals,
    frames: watch::Sender<Bytes>,
    streams: Arc<Semaphore>,
    wrong_logins: Semaphore,
    started: Instant,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("cookie", &self.cookie).finish_non_exhaustive()
    }
}

impl Site {
    /// A site that nobody is logged in at.
    pub fn new(port: u16, answers: Arc<dyn Answers>, orders: Orders, flows: FlowQuestions) -> io::Result<Self> {
        Ok(Self {
            cookie: format!("hawser-{port}"),
            answers,
            orders,
            flows,
            access: Mutex::new((Access::default(), SystemRandom::new().map_err(io::Error::other)?)),
            refusals: Refusals::default(),
            frames: watch::Sender::new(Bytes::new()),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            wrong_logins: Semaphore::new(WRONG_LOGINS_MAX),
            started: Instant::now(),
        })
    }

    /// A new token.
    pub fn issue(&self) -> String {
        let (access, random) = &mut *self.access();
        access.issue(self.started.elapsed(), &mut |out| random.fill(out))
    }

    /// What there is to say of it.
    pub fn status(&self, listen: SocketAddr) -> WebStatus {
        let refused = self.refusals.iter().map(|(word, count)| (word.to_owned(), count)).collect();
        WebStatus { listen: listen.to_string(), streams: STREAMS_MAX - self.streams.available_permits(), refused }
    }

    /// Counts what was refused.
    pub fn refuse(&self, refused: Refused) {
        self.refusals.count(refused);
    }

    /// The events of the moment.
    pub fn frames(&self) -> &watch::Sender<Bytes> {
        &self.frames
    }

    /// A document of the portal.
    pub fn document(&self, document: &Document) -> Result<Vec<u8>, String> {
        self.answers.get(document)
    }

    fn access(&self) -> MutexGuard<'_, (Access, SystemRandom)> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps 1 to 4; `known` says from then on that the connection has shown a session.
    pub async fn answer(&self, request: Request<Incoming>, known: &AtomicBool) -> Response<Body> {
        let answered = match guard::check(request.method(), request.headers()) {
            Ok(()) => self.respond(request, known).await,
            Err(refused) => Err(refused),
        };
        let mut response = answered.unwrap_or_else(|refused| {
            self.refuse(refused);
            refusal(refused)
        });
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let caching = response.headers_mut().entry(header::CACHE_CONTROL);
        caching.or_insert(HeaderValue::from_static("no-store"));
        response
    }

    async fn respond(&self, request: Request<Incoming>, known: &AtomicBool) -> Result<Response<Body>, Refused> {
        let path = request.uri().path();
        if let Some(asset) = assets::find(path).filter(|_| request.method() == Method::GET) {
            let mut response = response(StatusCode::OK, asset.kind, Bytes::from_static(asset.bytes));
            // Asked for again each time: another version of the program has others.
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            return Ok(response);
        }
        match (request.method(), path) {
            (&Method::POST, "/api/login") => self.log_in(request).await,
            (_, path) if !path.starts_with("/api/") => Err(Refused::Path),
            _ => {
                let cookie = self.session(&request).ok_or(Refused::Session)?;
                known.store(true, Ordering::Relaxed);
                self.with_session(request, &cookie).await
            }
        }
    }

    /// The cookie of the request's session.
    fn session(&self, request: &Request<Incoming>) -> Option<String> {
        let cookies = request.headers().get(header::COOKIE)?.to_str().ok()?;
        let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let cookie = pairs.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value).next()?;
        self.access().0.may_look(self.started.elapsed(), cookie).then(|| cookie.to_owned())
    }

    /// Step 2.
    async fn log_in(&self, request: Request<Incoming>) -> Result<Response<Body>, Refused> {
        let body = read(request).await?;
        let token = body.get("token").and_then(Value::as_str).unwrap_or_default();
        let given = {
            let (access, random) = &mut *self.access();
            access.log_in(self.started.elapsed(), token, &mut |out| random.fill(out))
        };
        let Some(given) = given else {
            let _waits = self.wrong_logins.try_acquire().map_err(|_| Refused::LoginRate)?;
            // Counted before the wait: who hangs up meanwhile was wrong, too.
            self.refuse(Refused::Login);
            sleep(WRONG_LOGIN_DELAY).await;
            return Ok(refusal(Refused::Login));
        };
        tracing::info!("web page: logged in");
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, given.cookie);
        let mut response = told(StatusCode::OK, &json!({ "csrf": given.csrf }));
        let cookie = HeaderValue::from_str(&cookie).map_err(|_| Refused::Login)?;
        response.headers_mut().insert(header::SET_COOKIE, cookie);
        Ok(response)
    }

    /// Step 3.
    async fn with_session(&self, request: Request<Incoming>, cookie: &str) -> Result<Response<Body>, Refused> {
        let query = request.uri().query().unwrap_or_default();
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/api/session") => Ok(told(StatusCode::OK, &json!({}))),
            (&Method::GET, "/api/stream") => self.open_stream(),
            (&Method::GET, "/api/flows") => Ok(self.count_flows().await),
            (&Method::GET, path) => {
                let name = path.strip_prefix("/api/").unwrap_or_default();
                let document = document(name, query).ok_or(Refused::Path)?;
                let text = self.document(&document).map_err(|_| Refused::Path)?;
                Ok(response(StatusCode::OK, JSON, text.into()))
            }
            (_, "/api/do") => {
                let csrf = guard::one(request.headers(), CSRF).unwrap_or_default();
                if !self.access().0.may_act(cookie, csrf) {
                    return Err(Refused::Csrf);
                }
                let deed: Deed = serde_json::from_value(read(request).await?).map_err(|_| Refused::Body)?;
                if !deed.is_for_pages() {
                    return Err(Refused::Path);
                }
                Ok(self.order(deed).await)
            }
            _ => Err(Refused::Path),
        }
    }

    fn open_stream(&self) -> Result<Response<Body>, Refused> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| Refused::Streams)?;
        let frames = self.frames.subscribe();
        self.frames.send_replace(stream::frame(self));
        let mut response = Response::new(stream::body(frames, permit).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Ok(response)
    }

    /// They are counted for a second, and as long as somebody asks.
    async fn count_flows(&self) -> Response<Body> {
        let (answer, answered) = oneshot::channel();
        // Fails where the portal is ending.
        let _ = self.flows.send(answer);
        match answered.await {
            Ok(flows) => told(StatusCode::OK, &json!(flows)),
            Err(_) => told(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": "the portal is ending" })),
        }
    }

    async fn order(&self, deed: Deed) -> Response<Body> {
        let word = deed.word();
        let (answer, answered) = oneshot::channel();
        // Fails where the portal is ending.
        let _ = self.orders.send(Asked { deed, answer });
        match timeout(DEED_TIMEOUT, answered).await {
            Ok(Ok(Ok(result))) => told(StatusCode::OK, &json!({ "done": word, "result": result })),
            Ok(Ok(Err(reason))) => told(StatusCode::CONFLICT, &json!({ "error": reason })),
            Ok(Err(_)) => told(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": "the portal is ending" })),
            Err(_) => told(StatusCode::GATEWAY_TIMEOUT, &json!({ "error": "the portal has not done it in time" })),
        }
    }
}

/// The document that is asked for by this name and query.
fn document(name: &str, query: &str) -> Option<Document> {
    let number = |text: &str| text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
    let mut asked = serde_json::Map::from_iter([("get".to_owned(), json!(name))]);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let value = if matches!(&*key, "since" | "last") { number(&value) } else { json!(value) };
        asked.insert(key.into_owned(), value);
    }
    serde_json::from_value(Value::Object(asked)).ok()
}

/// A request's body, which is JSON.
async fn read(request: Request<Incoming>) -> Result<Value, Refused> {
    let is_json = guard::one(request.headers(), header::CONTENT_TYPE.as_str()) == Some(JSON);
    if !is_json || request.body().size_hint().lower() > BODY_MAX as u64 {
        return Err(Refused::Body);
    }
    let body = Limited::new(request.into_body(), BODY_MAX).collect();
    let body = timeout(BODY_TIMEOUT, body).await.map_err(|_| Refused::Slow)?.map_err(|_| Refused::Body)?;
    serde_json::from_slice(&body.to_bytes()).map_err(|_| Refused::Body)
}

fn refusal(refused: Refused) -> Response<Body> {
    let (_, status, reason) = refused.told();
    let mut response = told(status, &json!({ "error": reason }));
    // Whoever is refused holds no connection.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn told(status: StatusCode, value: &Value) -> Response<Body> {
    response(status, JSON, value.to_string().into())
}

fn response(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
