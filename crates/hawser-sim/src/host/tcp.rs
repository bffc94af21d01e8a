//! One TCP stream from a host behind one portal to a host behind the other, each byte checked.

use super::packets::Pattern;
use super::stack::Stack;
use super::{Host, Ingress};
use hawser_core::units::Time;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::wire::{IpAddress, Ipv4Address};
use std::net::Ipv4Addr;

/// Bytes of each socket's buffers.
const BUFFER: usize = 128 * 1024;
/// The receiver's port.
const PORT: u16 = 5001;
/// The sender's port.
const SENDER_PORT: u16 = 40_001;
/// Bytes asked of the pattern at a time.
const CHUNK: usize = 32 * 1024;
/// The pattern's flow that streams use.
const FLOW: u16 = 99;

fn socket() -> Socket<'static> {
    Socket::new(SocketBuffer::new(vec![0; BUFFER]), SocketBuffer::new(vec![0; BUFFER]))
}

/// Sends a stream. Not connected at first; its world owns it.
pub struct TcpSender {
    stack: Stack,
    handle: SocketHandle,
    to: Ipv4Addr,
    start: Time,
    bytes: u64,
    offset: u64,
    pattern: Pattern,
    connected: bool,
    /// When everything had been acknowledged.
    pub done: Option<Time>,
}

impl TcpSender {
    /// Sends this many bytes, once it is `start`.
    pub fn new(from: Ipv4Addr, to: Ipv4Addr, start: Time, bytes: u64) -> Self {
        let mut stack = Stack::new(from, bytes);
        let handle = stack.sockets.add(socket());
        TcpSender {
            stack,
            handle,
            to,
            start,
            bytes,
            offset: 0,
            pattern: Pattern::default(),
            connected: false,
            done: None,
        }
    }

    fn connect(&mut self) {
        self.connected = true;
        let to = IpAddress::Ipv4(Ipv4Address::from_octets(self.to.octets()));
        let socket = self.stack.sockets.get_mut::<Socket<'_>>(self.handle);
        socket.connect(self.stack.interface.context(), (to, PORT), SENDER_PORT).expect("a fresh socket connects");
    }

    fn write(&mut self, now: Time) {
        let socket = self.stack.sockets.get_mut::<Socket<'_>>(self.handle);
        while socket.can_send() && self.offset < self.bytes {
            let len = usize::try_from(self.bytes - self.offset).unwrap_or(CHUNK).min(CHUNK);
            let sent = socket.send_slice(self.pattern.bytes(FLOW, self.offset, len)).unwrap_or(0);
            self.offset += sent as u64;
            if sent == 0 {
                break;
            }
        }
        if self.offset == self.bytes && socket.send_queue() == 0 && self.done.is_none() {
            self.done = Some(now);
            socket.close();
        }
    }
}

impl Host for TcpSender {
    fn receive(&mut self, _: Time, packet: &[u8], _: bool) {
        self.stack.receive(packet);
    }

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        if now < self.start {
            return;
        }
        if !self.connected {
            self.connect();
        }
        self.stack.poll(now, ingress);
        self.write(now);
        self.stack.poll(now, ingress);
    }

    fn deadline(&self) -> Option<Time> {
        if self.connected { self.stack.deadline() } else { Some(self.start) }
    }
}

/// Receives a stream, and answers pings. It listens from the start; its world owns it.
pub struct TcpReceiver {
    stack: Stack,
    handle: SocketHandle,
    pattern: Pattern,
    /// Bytes that came, all as they were sent.
    pub bytes: u64,
    /// Bytes that differ from what was sent.
    pub corrupt: u64,
}

impl TcpReceiver {
    /// Listens at this address.
    pub fn new(address: Ipv4Addr) -> Self {
        let mut stack = Stack::new(address, u64::from(PORT));
        let mut listener = socket();
        listener.listen(PORT).expect("a fresh socket listens");
        let handle = stack.sockets.add(listener);
        TcpReceiver { stack, handle, pattern: Pattern::default(), bytes: 0, corrupt: 0 }
    }

    fn read(&mut self) {
        let socket = self.stack.sockets.get_mut::<Socket<'_>>(self.handle);
        let mut take = |came: &mut [u8]| {
            let len = came.len().min(CHUNK);
            let expected = self.pattern.bytes(FLOW, self.bytes, len);
            self.corrupt += came.iter().zip(expected).filter(|(got, sent)| got != sent).count() as u64;
            self.bytes += len as u64;
            (len, len)
        };
        while let Ok(1..) = socket.recv(&mut take) {}
        if !socket.may_recv() && socket.may_send() {
            socket.close();
        }
    }
}

impl Host for TcpReceiver {
    fn receive(&mut self, _: Time, packet: &[u8], _: bool) {
        self.stack.receive(packet);
    }

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        self.stack.poll(now, ingress);
        self.read();
        self.stack.poll(now, ingress);
    }

    fn deadline(&self) -> Option<Time> {
        self.stack.deadline()
    }
}
