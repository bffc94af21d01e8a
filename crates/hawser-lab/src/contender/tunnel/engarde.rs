//! engarde: every packet of WireGuard on every link. Its configuration: engarde.yml.sample of the project.
//!
//! 1. wireguard-go runs at both ends; the local one calls engarde's client on its own host.
//! 2. engarde sends by every interface that it is not told to leave out: all that are no links.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::wireguard_go::wire;
use super::{Adapter, ContenderPlan, Ground, LOCAL, LabError, Options, Pair, Programs, REMOTE, Stage, program};
use crate::contender::undo::interfaces;
use crate::portals::any_of;
use crate::wireguard::{PORT, device};

/// Where its client and its server listen. Source: engarde.yml.sample.
const CLIENT_PORT: u16 = 59_401;
const SERVER_PORT: u16 = 59_501;

/// Its settings. Plain data.
pub(super) struct Engarde {
    /// The client and the server, where they are told.
    programs: [Option<PathBuf>; 2],
    cache: PathBuf,
}

impl Adapter for Engarde {
    const KIND: &'static str = "engarde";

    fn parse(_: &ContenderPlan, options: &mut Options, programs: &Programs) -> Result<Self, LabError> {
        let [client, server] = ["client", "server"].map(|key| options.path(key));
        Ok(Self { programs: [client?, server?], cache: programs.cache.clone() })
    }

    fn start(&self, ground: &Ground<'_>, pair: &mut Pair) -> Result<(), LabError> {
        let [client, server] = &self.programs;
        let client = program::find("engarde-client", ("client", client.as_deref()), "engarde-client")?;
        let server = program::find("engarde-server", ("server", server.as_deref()), "engarde-server")?;
        let wireguard = crate::wireguard::build(&self.cache)?;
        let others = others(ground.stage)?;
        let at = |address| SocketAddr::new(address, SERVER_PORT);
        let overrides: Vec<_> = ground.links.iter().map(|link| (link.name.as_str(), at(link.far_address))).collect();
        let (call, listen) = (at(ground.stage.endpoint), at(any_of(ground.stage.endpoint)));
        let ends = [(REMOTE, server, server_text(listen)), (LOCAL, client, client_text(call, &others, &overrides))];
        for (role, program, text) in ends {
            let file = pair.write(&format!("{role}.yml"), &text)?;
            pair.start(role, ground.namespace(role), &program, [file.to_string_lossy().as_ref()])?;
        }
        wire(ground, pair, &wireguard, SocketAddr::from((Ipv4Addr::LOCALHOST, CLIENT_PORT)))
    }
}

/// Step 2: the local end's interfaces that are no links.
fn others(stage: &Stage) -> Result<Vec<String>, LabError> {
    let is_link = |name: &String| stage.links.iter().any(|link| link.name == *name);
    let all = interfaces(&stage.local, "link", "show")?.into_iter().map(|one| one.ifname);
    Ok(all.filter(|name| !is_link(name)).chain([device(LOCAL)]).collect())
}

fn client_text(call: SocketAddr, others: &[String], overrides: &[(&str, SocketAddr)]) -> String {
    let others: String = others.iter().map(|name| format!("    - \"{name}\"\n")).collect();
    let one =
        |(name, address): &(&str, SocketAddr)| format!("    - ifName: \"{name}\"\n      dstAddr: \"{address}\"\n");
    let overrides: String = overrides.iter().map(one).collect();
    format!(
        "client:\n  listenAddr: \"127.0.0.1:{CLIENT_PORT}\"\n  dstAddr: \"{call}\"\n  excludedInterfaces:\n{others}  \
         dstOverrides:\n{overrides}"
    )
}

fn server_text(listen: SocketAddr) -> String {
    format!("server:\n  listenAddr: \"{listen}\"\n  dstAddr: \"127.0.0.1:{PORT}\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_those_of_its_sample() {
        let call = SocketAddr::from(([198, 51, 100, 7], SERVER_PORT));
        let text = client_text(call, &["lo".to_owned(), "wg-local".to_owned()], &[("wifi", call)]);
        assert_eq!(text, include_str!("golden/engarde-client.yml"));
        let any = SocketAddr::from(([0, 0, 0, 0], SERVER_PORT));
        assert_eq!(server_text(any), include_str!("golden/engarde-server.yml"));
    }
}
