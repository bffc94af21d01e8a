//! Whether each link has a route to where it is to go: a state for users to read.

use std::collections::BTreeMap;

use hawser_core::units::LinkId;
use hawser_net::netcfg::{NoRoute, RouteError, RouteQuery, Rtnl};

use crate::run::interfaces::Interfaces;
use crate::run::plan::SocketPlan;

/// The kernel's answers, by `LinkId`. At first no link lacks a route; the control thread owns it.
#[derive(Debug, Default)]
pub struct Routes(BTreeMap<LinkId, NoRoute>);

impl Routes {
    /// Asks for every link; tells the log what changed.
    pub async fn ask(&mut self, rtnl: &Rtnl, plans: &[SocketPlan], interfaces: &Interfaces) {
        self.0.retain(|id, _| plans.iter().any(|plan| plan.id == *id));
        for plan in plans.iter().filter(|plan| plan.opens()) {
            let known = self.0.get(&plan.id).copied();
            let answer = match lacks(rtnl, plan, interfaces).await {
                Ok(answer) => answer,
                Err(error) => {
                    tracing::debug!(link = plan.name, %error, "route not asked for");
                    continue;
                }
            };
            match answer {
                Some(reason) if known != answer => tracing::warn!(link = plan.name, %reason, "link has no route"),
                None if known.is_some() => tracing::info!(link = plan.name, "link has a route"),
                _ => {}
            }
            match answer {
                Some(reason) => self.0.insert(plan.id, reason),
                None => self.0.remove(&plan.id),
            };
        }
    }

    /// Why the link has no route, if it has none.
    pub fn lacking(&self, plan: &SocketPlan) -> Option<NoRoute> {
        self.0.get(&plan.id).copied()
    }
}

/// Why there is no route to any of the link's endpoints.
pub(super) async fn lacks(
    rtnl: &Rtnl,
    plan: &SocketPlan,
    interfaces: &Interfaces,
) -> Result<Option<NoRoute>, RouteError> {
    let interface = match &plan.interface {
        None => None,
        Some(name) => match interfaces.named(name) {
            None => return Ok(Some(NoRoute::InterfaceGone)),
            found => found,
        },
    };
    let mut reason = None;
    for endpoint in &plan.endpoints {
        let query = RouteQuery { destination: endpoint.ip(), source: plan.address, interface, mark: Some(plan.mark) };
        match rtnl.route_get(query).await {
            Ok(_) => return Ok(None),
            Err(error) => reason = Some(error.no_route().ok_or(error)?),
        }
    }
    Ok(reason)
}
