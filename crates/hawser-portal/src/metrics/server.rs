//! A small HTTP server: whoever may connect may read, and nobody may write.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::exposition;
use crate::api::Status;

/// Connections at a time: a few servers, each with a connection that it keeps. Further ones wait.
const CONNECTIONS_MAX: usize = 16;
/// A connection has this long for a request's header, and to be idle between two: more than the usual interval of
/// scrapes.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// A connection has at most this long altogether, so that no slow reader keeps a place.
const CONNECTION_MAX: Duration = Duration::from_secs(3600);
/// Most bytes of a header; a server's has some hundreds.
const HEADER_MAX: usize = 8 << 10;
/// Pause after a failed accept (out of file descriptors), so that it does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Gives the status of the moment, at once.
pub type Source = Arc<dyn Fn() -> Status + Send + Sync>;

/// An open address. The control thread owns it.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
}

impl Server {
    /// Opens the address. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// What the system refuses: it is in use, or no address of this host.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until it is dropped, each connection in a task of its own.
    pub async fn serve(self, status: Source) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let status = Arc::clone(&status);
                    tokio::spawn(async move {
                        if let Ok(Err(error)) = timeout(CONNECTION_MAX, converse(stream, status)).await {
                            tracing::debug!(%error, "metrics connection ended");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept on metrics address failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn converse(stream: TcpStream, status: Source) -> hyper::Result<()> {
    let answer = service_fn(move |request| {
        let answer = answer(&request, &status);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(HEADER_MAX);
    server.serve_connection(TokioIo::new(stream), answer).await
}

fn answer(request: &Request<Incoming>, status: &Source) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "there is nothing to write here\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    match exposition(status(), accept) {
        Ok(told) => with_type(StatusCode::OK, told.media_type, told.text.into()),
        Err(error) => {
            tracing::warn!(%error, "metrics not written");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written\n")
        }
    }
}

fn plain(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with_type(code, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn with_type(code: StatusCode, media_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// The answer to a request, over a connection of its own.
    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        answer
    }

    #[tokio::test(flavor = "current_thread")]
    async fn metrics_are_read_and_nothing_is_written() {
        let server = Server::bind("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
        let address = server.address().expect("its address");
        tokio::spawn(server.serve(Arc::new(|| Status { uptime_s: 3.5, ..Status::default() })));
        let table = [
            ("GET /metrics", "", "200 OK", "text/plain; version=0.0.4", "hawser_uptime_seconds 3.5\n"),
            (
                "GET /metrics",
                "Accept: application/openmetrics-text\r\n",
                "200 OK",
                "openmetrics-text; version=1.0.0",
                "# EOF\n",
            ),
            ("HEAD /metrics", "", "200 OK", "text/plain; version=0.0.4", "\r\n\r\n"),
            ("GET /", "", "404 Not Found", "text/plain", "metrics are at /metrics\n"),
            ("GET /metrics/../../etc/passwd", "", "404 Not Found", "text/plain", "/metrics\n"),
            ("POST /metrics", "Content-Length: 0\r\n", "405 Method Not Allowed", "allow: GET, HEAD", "write here\n"),
        ];
        for (line, headers, code, header, body) in table {
            let answer =
                ask(address, &format!("{line} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {code}\r\n")), "{line}: {answer}");
            assert!(answer.contains(header) && answer.contains(body), "{line}: {answer}");
        }
        let header = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(HEADER_MAX));
        let answer = ask(address, &header).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
}
