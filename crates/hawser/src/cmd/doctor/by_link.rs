//! How the doctor's questions leave by a link: as the portal's own datagrams do, also where a kill switch lets nothing
//! else through.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use hawser_net::netcfg::Mark;
use socket2::{Domain, Protocol, Socket, Type};

/// An interface, and the mark of what the portal sends by links. Owned data.
#[derive(Clone, Debug)]
pub struct ByLink {
    /// The interface's name.
    pub interface: String,
    /// The mark.
    pub mark: Mark,
}

impl ByLink {
    /// A socket for questions to `to`, not connected yet.
    ///
    /// # Errors
    /// What the system said.
    pub fn socket(&self, to: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(to), kind, Some(protocol))?;
        socket.bind_device(Some(self.interface.as_bytes()))?;
        socket.set_mark(self.mark.0)?;
        Ok(socket)
    }

    /// One of UDP that is connected to `to`.
    ///
    /// # Errors
    /// What the system said.
    pub fn udp(&self, to: SocketAddr) -> io::Result<Socket> {
        let socket = self.socket(to, Type::DGRAM, Protocol::UDP)?;
        socket.connect(&to.into())?;
        Ok(socket)
    }

    /// A connection of TCP to `to`.
    ///
    /// # Errors
    /// What the system said.
    pub fn tcp(&self, to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
        let socket = self.socket(to, Type::STREAM, Protocol::TCP)?;
        socket.connect_timeout(&to.into(), patience)?;
        Ok(socket.into())
    }

    /// A raw one for ICMP that is connected to `to`.
    ///
    /// # Errors
    /// What the system said.
    pub fn icmp(&self, to: IpAddr) -> io::Result<Socket> {
        let (to, protocol) = (SocketAddr::new(to, 0), if to.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 });
        let socket = self.socket(to, Type::RAW, protocol)?;
        socket.connect(&to.into())?;
        Ok(socket)
    }
}
