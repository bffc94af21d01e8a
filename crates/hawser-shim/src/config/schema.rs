//! Every section and key, for the documentation and for what is unknown.
//!
//! The readers in `sections` ask for exactly these keys; tests hold both, and docs/shim.md, together.

use hawser_config::schema::{SectionSchema, key};

/// A file of routes has this section alone.
pub(super) const ROUTE: SectionSchema = SectionSchema {
    name: "route",
    repeated: true,
    keys: &[
        key("to", "IP, network or name, with a port or without", "none"),
        key("scion", "ISD-AS,IP:port", "none"),
        key("protocol", "`\"tcp\"`, `\"udp\"` or `\"both\"`", "\"tcp\""),
        key("side_by_side", "`\"subflows\"` or `\"main\"`", "none"),
    ],
};

/// The whole contract.
pub const SCHEMA: &[SectionSchema] = &[
    SectionSchema {
        name: "shim",
        repeated: false,
        keys: &[
            key("local", "[ISD-AS,]IP:port", "required"),
            key("daemon", "host:port", "\"127.0.0.1:30255\""),
            key("egress", "1 to 8", "4"),
            key("select", "choice of paths", "\"sharability\""),
            key("mode", "`\"direct\"` or `\"namespaces\"`", "\"direct\""),
            key("path_manager", "`\"userspace\"` or `\"kernel\"`", "\"userspace\""),
            key("ipv4", "network/prefix or `false`", "\"100.64.0.0/10\""),
            key("name", "name", "\"shim\""),
            key("map", "path", "none"),
            key("dns", "true or false", "false"),
            key("control", "path", "\"/run/hawser/shim.sock\""),
            key("layer4", "`\"udp\"` or `\"tcp\"`", "\"udp\""),
            key("server_ports", "list of ports", "[]"),
        ],
    },
    SectionSchema {
        name: "policy",
        repeated: false,
        keys: &[
            key("sequence", "SCION sequence", "\"\""),
            key("allow", "list of SCION hops", "[]"),
            key("deny", "list of SCION hops", "[]"),
        ],
    },
    ROUTE,
];
