//! Who a server's kernel has a connection with.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use hawser_wire::Namespace;

use crate::error::LabError;

/// A connection that stands, as /proc/net/tcp has it (proc_net(5), tcp_states.h).
const ESTABLISHED: &str = "01";

/// At a port of the server.
pub fn of(server: &Namespace, port: u16) -> Result<SocketAddr, LabError> {
    let read = || fs::read_to_string("/proc/thread-self/net/tcp");
    let table = server.run(read)?.map_err(|error| LabError::system("list connections of the server", error))?;
    let no_client = || LabError::NoFigure { figure: "client", reason: "the server has no connection".to_owned() };
    client(&table, port).ok_or_else(no_client)
}

/// The other end of the connection that stands, in a table as /proc/net/tcp has it.
fn client(table: &str, port: u16) -> Option<SocketAddr> {
    let own = format!(":{port:04X}");
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut standing = columns.filter(|columns| columns.get(3) == Some(&ESTABLISHED) && columns[1].ends_with(&own));
    let (address, port) = standing.next()?.get(2)?.split_once(':')?;
    let address = u32::from_str_radix(address, 16).ok()?;
    Some(SocketAddr::new(Ipv4Addr::from(address.to_le_bytes()).into(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standing_connection_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
                     0: 00000000:1389 00000000:0000 0A 00000000\n\
                     1: 027200CB:1389 087100CB:9C40 01 00000000\n";
        assert_eq!(client(table, 5001), Some("203.0.113.8:40000".parse().expect("an address")));
        assert_eq!(client(table, 5002), None);
    }
}
