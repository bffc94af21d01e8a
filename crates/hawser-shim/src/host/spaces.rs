//! The two namespaces of `mode = "namespaces"`: one for servers, one for clients.
//!
//! 1. They are journalled among the host's changes, so that the next start removes those of a killed shim.
//! 2. Their devices are made inside. 3. What is set inside goes with them: its own journal is thrown away at once.

use std::fs;
use std::path::{Path, PathBuf};

use hawser_net::netcfg::{Change, IfIndex, InstanceName, NamespaceName, NetConfig, NetConfigError};
use hawser_net::tun::Tun;

use super::devices::{Devices, DevicesError, interface};
use super::numbers::Numbers;
use super::plan::{Interface, Layout};
use super::system::{self, LOOPBACK};
use crate::config::Config;
use crate::route::{Addresses, InterfaceIndex, NoAddress};

/// The namespaces of a shim, by its name. They exist once [`Spaces::changes`] are applied. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spaces {
    /// For servers.
    pub ingress: NamespaceName,
    /// For clients.
    pub egress: NamespaceName,
}

impl Spaces {
    /// Those of a shim.
    pub fn of(config: &Config) -> Self {
        let name = |tag: &str| NamespaceName::new(&format!("{}-{tag}", config.name)).expect("a prefix has no slash");
        Self { ingress: name("ingress"), egress: name("egress") }
    }

    /// Step 1.
    pub fn changes(&self) -> Vec<Change> {
        [&self.ingress, &self.egress].map(|name| Change::Namespace(name.clone())).into()
    }

    /// Steps 2 and 3.
    ///
    /// # Errors
    /// [`DevicesError`].
    pub fn furnish(
        &self,
        config: &Config,
        addresses: impl Fn(InterfaceIndex) -> Result<Addresses, NoAddress>,
        in_egress: Vec<Change>,
        in_ingress: Vec<Change>,
    ) -> Result<Devices, DevicesError> {
        let addresses = |index| addresses(index).map_err(DevicesError::from);
        let own = addresses(InterfaceIndex::INGRESS)?;
        let clients: Vec<Addresses> = config.egress.interfaces().map(addresses).collect::<Result<_, _>>()?;
        let ingress = inside(&self.ingress, || {
            let tun = Devices::make_ingress(config)?;
            let interface = interface(&tun, InterfaceIndex::INGRESS, own);
            set(config, "ingress", vec![interface], in_ingress)?;
            Ok::<Tun, DevicesError>(tun)
        })?;
        let egress = inside(&self.egress, || {
            let tuns = Devices::make_egress(config)?;
            let indices = config.egress.interfaces().zip(&clients);
            let interfaces = tuns.iter().zip(indices).map(|(tun, (index, own))| interface(tun, index, *own)).collect();
            set(config, "egress", interfaces, in_egress)?;
            Ok::<Vec<Tun>, DevicesError>(tuns)
        })?;
        Ok(Devices { ingress, egress })
    }
}

fn inside<T: Send>(
    name: &NamespaceName,
    work: impl FnOnce() -> Result<T, DevicesError> + Send,
) -> Result<T, DevicesError> {
    name.run(work).map_err(|source| DevicesError::Enter { name: name.to_string(), source })?
}

/// Step 3, on a thread inside.
fn set(config: &Config, tag: &str, interfaces: Vec<Interface>, more: Vec<Change>) -> Result<(), DevicesError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| NetConfigError::Kernel {
        operation: "configure",
        subject: format!("network namespace {}-{tag}", config.name),
        source,
    })?;
    let journals = journals(config, tag);
    let done = runtime.block_on(async {
        let instance = InstanceName::new(&config.interface(InterfaceIndex::INGRESS)).map_err(NetConfigError::from)?;
        let mut net = NetConfig::new(&journals, &instance)?;
        // A killed shim may have left its journal here, of a namespace that is gone.
        net.recover().await;
        let loopback = loopback(&net).await?;
        let layout = Layout { numbers: Numbers::of(config.name.as_str()), loopback, interfaces, ipv4: config.ipv4 };
        let changes = [Change::LinkUp { interface: loopback }].into_iter().chain(layout.changes()?);
        for change in changes.chain(layout.default_routes()).chain(more) {
            net.apply(change).await?;
        }
        Ok(())
    });
    // The namespace goes as a whole: nothing of this is ever undone.
    let _ = fs::remove_dir_all(&journals);
    done
}

/// Where the journal of what is set inside lies for the moment.
fn journals(config: &Config, tag: &str) -> PathBuf {
    Path::new(system::JOURNALS).join(format!("{}-{tag}", config.name))
}

/// Loopback of the namespace that was asked.
pub(super) async fn loopback(net: &NetConfig) -> Result<IfIndex, NetConfigError> {
    let link = net.rtnl().link_named(LOOPBACK).await?;
    link.map(|link| link.index).ok_or(NetConfigError::Protocol {
        operation: "look up",
        subject: format!("interface {LOOPBACK}"),
        what: "no such interface".to_owned(),
    })
}
