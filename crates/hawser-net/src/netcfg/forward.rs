//! Who else has a word about forwarded packets: a table that drops them does so whatever Hawser's table says.
//!
//! 1. `nft` lists all rules as JSON (libnftables-json(5)).
//! 2. Chains that drop what is forwarded unless a rule accepts it are kept, but for those whose table names the
//!    interface.

use std::fmt;

use serde_json::Value;

use super::{
    nft::{self, NftError},
    rtnl::Rtnl,
};

/// A chain that drops what is forwarded unless a rule accepts it. There is no default. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardDrop {
    /// Family and name of its table, such as `inet filter`.
    pub table: String,
    /// Its name.
    pub chain: String,
}

impl fmt::Display for ForwardDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {} chain {}", self.table, self.chain)
    }
}

impl Rtnl {
    /// The chains that drop what is forwarded by default, and no rule of whose table names `interface`.
    pub async fn forward_drops(&self, interface: &str) -> Result<Vec<ForwardDrop>, NftError> {
        let listed = nft::run(&["-j", "list", "ruleset"], "").await?;
        let ruleset = serde_json::from_slice(&listed).map_err(|error| NftError::NotRun { source: error.into() })?;
        Ok(drops(&ruleset, interface))
    }
}

/// Step 2.
fn drops(ruleset: &Value, interface: &str) -> Vec<ForwardDrop> {
    let objects = ruleset["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    let table = |object: &Value, name: &str| {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("family"), text(name))
    };
    let quoted = Value::from(interface).to_string();
    let names = |object: &&Value| object["rule"]["expr"].to_string().contains(&quoted);
    let named: Vec<String> = objects.iter().filter(names).map(|object| table(&object["rule"], "table")).collect();
    let chains = objects.iter().map(|object| &object["chain"]);
    let dropping = chains.filter(|chain| chain["hook"] == "forward" && chain["policy"] == "drop");
    dropping
        .map(|chain| ForwardDrop {
            table: table(chain, "table"),
            chain: chain["name"].as_str().unwrap_or_default().to_owned(),
        })
        .filter(|found| !named.contains(&found.table))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_of_drop_counts_unless_its_table_names_the_interface() {
        let chain = |family: &str, table: &str, hook: &str, policy: &str| json!({"chain": {"family": family, "table": table, "name": "c", "hook": hook, "policy": policy}});
        let ruleset = json!({"nftables": [
            {"metainfo": {"version": "1.0.6"}},
            {"table": {"family": "inet", "name": "filter"}},
            chain("inet", "filter", "forward", "drop"),
            chain("ip", "filter", "forward", "drop"),
            chain("ip6", "filter", "forward", "accept"),
            chain("inet", "other", "input", "drop"),
            {"chain": {"family": "inet", "table": "filter", "name": "no hook"}},
            {"rule": {"family": "inet", "table": "filter", "chain": "c",
                "expr": [{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "hawser0"}}]}},
        ]});
        let found = |interface| drops(&ruleset, interface).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found("hawser0"), ["table ip filter chain c"]);
        assert_eq!(found("hawser"), ["table inet filter chain c", "table ip filter chain c"]);
        assert_eq!(drops(&json!({}), "hawser0"), []);
    }
}
