//! What a request may look like before anybody looks at what it asks for. Pure functions over its headers.
//!
//! 1. Its `Host` is an address or `localhost`: another name's page that is led here (DNS rebinding) has that other
//!    name.
//! 2. Its `Origin`, where it has one, is this site, and so is where it comes from (`Sec-Fetch-Site`).
//! 3. What does something has to say where it comes from.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Method, header};

use super::refusals::Refused;

/// Where a request comes from (W3C, Fetch Metadata).
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Whether the request may be looked at.
///
/// # Errors
/// Why not.
pub fn check(method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
    let host = one(headers, header::HOST.as_str()).filter(|host| is_ours(host)).ok_or(Refused::Host)?;
    let origin = one(headers, header::ORIGIN.as_str());
    if origin.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
        return Err(Refused::Origin);
    }
    let site = one(headers, SEC_FETCH_SITE);
    // A link that is followed, or an address that is typed, asks for the page itself.
    let is_own = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    let navigates = one(headers, "sec-fetch-mode") == Some("navigate");
    match *method {
        Method::GET if is_own || navigates => Ok(()),
        Method::POST if is_own && (origin.is_some() || site == Some("same-origin")) => Ok(()),
        Method::GET | Method::POST => Err(Refused::Origin),
        _ => Err(Refused::Method),
    }
}

/// The value of a header that is there once.
pub fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next().map(HeaderValue::to_str)?.ok()?;
    all.next().is_none().then_some(first)
}

/// Whether a host is an address or `localhost`, with or without a port.
fn is_ours(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) if !host.ends_with(']') => return false,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6() == name.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in list {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    /// What is asked, how, with which headers, and why it is refused.
    type Row<'a> = (&'a str, Method, &'a [(&'static str, &'static str)], Option<Refused>);

    #[test]
    fn only_this_site_asks_here() {
        let (get, post) = (Method::GET, Method::POST);
        let here = ("host", "127.0.0.1:4921");
        let table: [Row<'_>; 19] = [
            ("a browser's address bar", get.clone(), &[here, ("sec-fetch-site", "none")], None),
            ("curl", get.clone(), &[here], None),
            ("by name", get.clone(), &[("host", "localhost:4921")], None),
            ("by IPv6", get.clone(), &[("host", "[::1]:4921")], None),
            ("through the tunnel", get.clone(), &[("host", "10.77.0.1")], None),
            ("no host", get.clone(), &[], Some(Refused::Host)),
            ("two hosts", get.clone(), &[here, ("host", "evil.example")], Some(Refused::Host)),
            ("a rebound name", get.clone(), &[("host", "evil.example:4921")], Some(Refused::Host)),
            ("a name like an address", get.clone(), &[("host", "127.0.0.1.evil.example")], Some(Refused::Host)),
            ("a port that is none", get.clone(), &[("host", "127.0.0.1:4921.evil.example")], Some(Refused::Host)),
            ("the page's own request", get.clone(), &[here, ("sec-fetch-site", "same-origin")], None),
            ("another page's picture", get.clone(), &[here, ("sec-fetch-site", "cross-site")], Some(Refused::Origin)),
            (
                "a link on another page",
                get.clone(),
                &[here, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
                None,
            ),
            ("another port's page", get, &[here, ("origin", "http://127.0.0.1:8080")], Some(Refused::Origin)),
            ("the page's own order", post.clone(), &[here, ("origin", "http://127.0.0.1:4921")], None),
            ("another page's order", post.clone(), &[here, ("origin", "https://evil.example")], Some(Refused::Origin)),
            ("a sandboxed frame's order", post.clone(), &[here, ("origin", "null")], Some(Refused::Origin)),
            ("an order from nowhere", post, &[here], Some(Refused::Origin)),
            ("another method", Method::PUT, &[here], Some(Refused::Method)),
        ];
        for (what, method, list, refused) in table {
            assert_eq!(check(&method, &headers(list)).err(), refused, "{what}");
        }
    }
}
