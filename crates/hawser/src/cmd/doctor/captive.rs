//! Whether a captive portal answers in the place of a host: a page by HTTP, in whose place it gives its own.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::by_link::ByLink;

/// How long the page may take: three times what a satellite needs.
const PATIENCE: Duration = Duration::from_secs(2);
const HTTP: u16 = 80;
/// Bytes of a page that are read: its headers.
const PAGE_MAX: u64 = 4096;

/// What to do about it.
pub fn cure(interface: &str, host: IpAddr) -> String {
    format!("log in there by {interface}: curl --interface {interface} http://{host}/ shows it")
}

/// Where HTTP at `host` leads to, if that is another host, or asks for a login (RFC 6585 section 6).
///
/// # Errors
/// What the system said.
pub fn login_page(by: &ByLink, host: IpAddr) -> io::Result<Option<String>> {
    let mut stream = by.tcp(SocketAddr::new(host, HTTP), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let mut page = Vec::new();
    let read = stream.take(PAGE_MAX).read_to_end(&mut page);
    if page.is_empty() {
        read?;
    }
    Ok(leads_elsewhere(&String::from_utf8_lossy(&page), host))
}

fn leads_elsewhere(page: &str, host: IpAddr) -> Option<String> {
    let status = page.split(' ').nth(1)?;
    if status == "511" {
        return Some("it asks for a login".to_owned());
    }
    let header = |line: &&str| line.to_ascii_lowercase().starts_with("location:");
    let location = page.lines().find(header)?.split_once(':')?.1.trim();
    let target = location.split("//").nth(1)?.split('/').next()?;
    (status.starts_with('3') && !target.contains(&host.to_string())).then(|| location.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captive_portal_is_told_from_a_web_server_that_goes_on_by_https() {
        let host = "198.51.100.7".parse().expect("an address");
        let table = [
            (
                "HTTP/1.1 302 Found\r\nLocation: http://login.hotel.example/?u=1\r\n\r\n",
                Some("http://login.hotel.example/?u=1"),
            ),
            ("HTTP/1.1 301 Moved\r\nlocation: https://198.51.100.7/\r\n\r\n", None),
            ("HTTP/1.1 511 Network Authentication Required\r\n\r\n", Some("it asks for a login")),
            ("HTTP/1.1 200 OK\r\n\r\nhello", None),
            ("SSH-2.0-OpenSSH\r\n", None),
            ("", None),
        ];
        for (page, expect) in table {
            assert_eq!(leads_elsewhere(page, host).as_deref(), expect, "{page:?}");
        }
    }
}
