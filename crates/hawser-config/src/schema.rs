//! Every section and key of the contract. docs/configuration.md has their kinds, defaults and meanings: tests hold it,
//! the readers of sections, and these names together.

/// A section of a file. Constant.
#[derive(Clone, Copy, Debug)]
pub struct SectionSchema {
    /// Its name between the brackets.
    pub name: &'static str,
    /// Written `[[name]]` and allowed several times.
    pub repeated: bool,
    /// Its keys, in the order they are documented.
    pub keys: &'static [&'static str],
}

/// A section `[name]` with these keys, to write a schema with.
pub const fn single(name: &'static str, keys: &'static [&'static str]) -> SectionSchema {
    SectionSchema { name, repeated: false, keys }
}

/// Sections `[[name]]`, to write a schema with.
pub const fn repeated(name: &'static str, keys: &'static [&'static str]) -> SectionSchema {
    SectionSchema { name, repeated: true, keys }
}

impl SectionSchema {
    /// As a user writes it: `[tun]`, `[[link]]`.
    pub fn title(&self) -> String {
        if self.repeated { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }
}

/// A section of `schema` as a user writes it.
pub(crate) fn title(schema: &[SectionSchema], name: &str) -> String {
    let known = schema.iter().find(|section| section.name == name);
    known.map_or_else(|| format!("[{name}]"), SectionSchema::title)
}

/// Files of peers have this section alone.
pub(crate) const PEER: SectionSchema =
    repeated("peer", &["name", "public_key", "preshared_key_file", "endpoints", "allowed_ips", "standby"]);

/// The whole contract.
#[rustfmt::skip]
pub const SCHEMA: &[SectionSchema] = &[
    single("portal", &[
        "private_key_file", "listen", "transports", "tls", "ip_protocol", "socket", "keylog", "state_dir", "relay",
        "threads",
    ]),
    single("tun", &[
        "name", "addresses", "mtu", "default_route", "answer_by_link", "fail", "dns", "dns_domains",
    ]),
    single("gateway", &["serve", "masquerade"]),
    single("nat", &["masquerade"]),
    repeated("link", &[
        "name", "interface", "exclude", "address", "transport", "tls", "tls_name", "daemon", "paths", "select",
        "sequence", "allow", "deny", "port", "metric", "weight", "max_rate", "data_cap", "data_cap_reset",
    ]),
    PEER,
    single("traffic", &["scheduler", "congestion", "tcp_congestion", "protection", "cipher"]),
    single("takeover", &["address", "interface", "peer", "keep"]),
    repeated("forward", &["port", "protocols", "to"]),
    repeated("rule", &[
        "dscp", "protocol", "source", "destination", "ports", "mark", "mac", "interface", "domains", "scheduler",
        "retransmit", "fec", "via", "strict", "weights", "priority",
    ]),
    single("metrics", &["listen"]),
    single("web", &["listen"]),
    single("hub", &[
        "table", "etcd", "etcd_ca", "etcd_certificate", "etcd_key", "etcd_prefix", "etcd_lease", "etcd_strict", "name",
        "endpoints", "weight", "rack",
    ]),
    single("log", &["format"]),
];
