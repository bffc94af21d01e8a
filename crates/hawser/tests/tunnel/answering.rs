//! What the name servers of tests share: a socket at port 53, and an answer to each question.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hawser_wire::Namespace;

use crate::lab::ms;

/// Longest question (RFC 1035 section 4.2.1), in bytes.
const QUESTION_MAX: usize = 512;

/// A name server at work. Ends when it drops; one owner.
pub struct Answering {
    over: Arc<AtomicBool>,
}

impl Answering {
    /// At this address of a namespace.
    pub fn at(namespace: &Namespace, address: &str, mut answer: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) -> Self {
        let socket = namespace.run(|| UdpSocket::bind((address, 53))).expect("the namespace").expect("a socket");
        socket.set_read_timeout(Some(ms(100))).expect("a timeout");
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        std::thread::spawn(move || {
            let mut question = [0; QUESTION_MAX];
            while !ended.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut question) else { continue };
                let _ = socket.send_to(&answer(&question[..length]), from);
            }
        });
        Self { over }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
