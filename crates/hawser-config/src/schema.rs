//! Every section and key of the contract, for the documentation and for whoever lists them.
//!
//! Readers of sections ask for exactly these keys; tests hold both, and docs/configuration.md, together.

/// A section of a file. Constant.
#[derive(Clone, Copy, Debug)]
pub struct SectionSchema {
    /// Its name between the brackets.
    pub name: &'static str,
    /// Written `[[name]]` and allowed several times.
    pub repeated: bool,
    /// Its keys, in the order they are documented.
    pub keys: &'static [KeySchema],
}

/// A key of a section. Constant.
#[derive(Clone, Copy, Debug)]
pub struct KeySchema {
    /// Its name.
    pub name: &'static str,
    /// What its value is, in words.
    pub kind: &'static str,
    /// Its default as it would be written, `required`, or `none`.
    pub default: &'static str,
}

/// A key, to write a schema with.
pub const fn key(name: &'static str, kind: &'static str, default: &'static str) -> KeySchema {
    KeySchema { name, kind, default }
}

/// A section `[name]`, to write a schema with.
pub const fn single(name: &'static str) -> SectionSchema {
    SectionSchema { name, repeated: false, keys: &[] }
}

/// Sections `[[name]]`, to write a schema with.
pub const fn repeated(name: &'static str) -> SectionSchema {
    SectionSchema { name, repeated: true, keys: &[] }
}

impl SectionSchema {
    /// With these keys.
    pub const fn of(self, keys: &'static [KeySchema]) -> Self {
        Self { keys, ..self }
    }
}

/// A section of `schema` as a user writes it: `[tun]`, `[[link]]`.
pub fn title(schema: &[SectionSchema], name: &str) -> String {
    match schema.iter().find(|s| s.name == name) {
        Some(s) if s.repeated => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    }
}

/// Files of peers have this section alone.
pub(crate) const PEER: SectionSchema = repeated("peer").of(&[
    key("name", "name", "required"),
    key("public_key", "key", "required"),
    key("preshared_key_file", "path", "none"),
    key("endpoints", "list of host:port or `scion://…`", "[]"),
    key("allowed_ips", "list of network/prefix", "required"),
    key("standby", "name, or list of names", "none"),
]);

/// The whole contract.
pub const SCHEMA: &[SectionSchema] = &[
    single("portal").of(&[
        key("private_key_file", "path", "required"),
        key("listen", "list of IP:port or `scion://…`", "[]"),
        key("transports", "list of transports", "[\"udp\"]"),
        key("tls", "true or false", "false"),
        key("ip_protocol", "IP protocol", "253"),
        key("socket", "path", "\"/run/hawser/hawser.sock\""),
        key("keylog", "path", "none"),
        key("state_dir", "path", "\"/var/lib/hawser\""),
        key("relay", "true or false", "false"),
        key("threads", "`auto` or 1 to 8", "\"auto\""),
    ]),
    single("tun").of(&[
        key("name", "interface name", "\"hawser0\""),
        key("addresses", "list of address/prefix", "required"),
        key("mtu", "`auto` or 1280 to 65535", "\"auto\""),
        key("default_route", "true or false", "false"),
        key("answer_by_link", "true or false", "false"),
        key("fail", "`open` or `closed`", "\"open\""),
        key("dns", "list of IP addresses", "[]"),
        key("dns_domains", "list of domains", "[\"~.\"]"),
    ]),
    single("gateway").of(&[key("serve", "list of interface names", "[]"), key("masquerade", "true or false", "false")]),
    single("nat").of(&[key("masquerade", "interface name", "none")]),
    repeated("link").of(&[
        key("name", "name", "required"),
        key("interface", "interface name or `*`", "none"),
        key("exclude", "list of interface names", "[]"),
        key("address", "IP address", "none"),
        key("transport", "transport", "\"udp\""),
        key("tls", "true or false", "false"),
        key("tls_name", "host name", "none"),
        key("daemon", "host:port", "\"127.0.0.1:30255\""),
        key("paths", "1 to 16", "2"),
        key("select", "choice of paths", "\"sharability\""),
        key("sequence", "SCION sequence", "\"\""),
        key("allow", "list of SCION hops", "[]"),
        key("deny", "list of SCION hops", "[]"),
        key("port", "0 or 1024 to 65535", "0"),
        key("metric", "0 to 65535", "0"),
        key("weight", "1 to 255", "1"),
        key("max_rate", "bits a second", "none"),
        key("data_cap", "bytes a month", "none"),
        key("data_cap_reset", "1 to 28", "1"),
    ]),
    PEER,
    single("traffic").of(&[
        key("scheduler", "scheduler", "\"adaptive\""),
        key("congestion", "congestion control", "\"bbr\""),
        key("tcp_congestion", "kernel's congestion control", "none"),
        key("protection", "protection", "\"encrypt\""),
        key("cipher", "cipher", "\"auto\""),
    ]),
    single("takeover").of(&[
        key("address", "IP address, or list of them", "required"),
        key("interface", "interface name", "none"),
        key("peer", "name", "none"),
        key("keep", "list of protocol/port", "[\"tcp/22\"]"),
    ]),
    repeated("forward").of(&[
        key("port", "port or range of ports", "required"),
        key("protocols", "list of `tcp` and `udp`", "[\"tcp\"]"),
        key("to", "IP address, perhaps with :port", "required"),
    ]),
    repeated("rule").of(&[
        key("dscp", "DSCP class", "none"),
        key("protocol", "protocol", "none"),
        key("source", "network/prefix", "none"),
        key("destination", "network/prefix", "none"),
        key("ports", "list of ports", "none"),
        key("mark", "nftables fwmark", "none"),
        key("mac", "Ethernet address", "none"),
        key("interface", "interface name", "none"),
        key("domains", "list of domain names", "none"),
        key("scheduler", "scheduler", "none"),
        key("retransmit", "true or false", "true"),
        key("fec", "repairs", "\"off\""),
        key("via", "list of links, or `direct`", "none"),
        key("strict", "true or false", "false"),
        key("weights", "part for each link", "none"),
        key("priority", "-3 to 3", "0"),
    ]),
    single("metrics").of(&[key("listen", "IP:port", "required")]),
    single("web").of(&[key("listen", "IP:port", "none")]),
    single("hub").of(&[
        key("table", "kernel table's number", "254"),
        key("etcd", "list of `https://host:port`", "none"),
        key("etcd_ca", "path", "none"),
        key("etcd_certificate", "path", "none"),
        key("etcd_key", "path", "none"),
        key("etcd_prefix", "prefix of keys", "\"/hawser/hub/\""),
        key("etcd_lease", "3 to 3600", "10"),
        key("etcd_strict", "true or false", "false"),
        key("name", "name", "none"),
        key("endpoints", "list of host:port", "[]"),
        key("weight", "0 to 65535", "1"),
        key("rack", "0 to 65535", "0"),
    ]),
    single("log").of(&[key("format", "`text` or `json`", "\"text\"")]),
];
