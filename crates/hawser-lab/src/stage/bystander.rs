//! Hosts beside the client: each has one link to the remote end, or to the core before it, and no router of its own.

use hawser_wire::{Backend, Direction, EmulatedLink, LinkSpec, Namespace};

use super::build::{MTU, accept_every_way, end, give_buffers};
use super::ip::batch;
use super::numbering::{END, FAMILIES, NEAR, Net, endpoint};
use super::{Bystander, Ends, Stage, number};
use crate::error::LabError;
use crate::scenario::LinkPlan;

impl Stage {
    /// `index` counts on after the links.
    pub(super) fn add_bystander(
        &mut self,
        index: usize,
        plan: &LinkPlan,
        [a_to_b, b_to_a]: [Direction; 2],
        backend: Backend,
    ) -> Result<(), LabError> {
        let (name, net) = (plan.name.clone(), Net::Access(number(index)));
        let host = Namespace::new("beside")?;
        accept_every_way(&host)?;
        give_buffers(&host)?;
        let far = self.layout.core.as_ref().unwrap_or(&self.remote);
        let (a, b) = (end(&host, &name, net, END), end(far, &name, net, NEAR));
        let link = EmulatedLink::new(LinkSpec { name: name.clone(), a, b, mtu: MTU, a_to_b, b_to_a, backend })?;
        for family in FAMILIES {
            host.add_default_route(net.address(family, NEAR))?;
            if self.layout.core.is_some() {
                let gateway = self.far_gateway(0, family);
                let by = format!("via {gateway} dev {} src {}", self.links[0].far_interface, endpoint(family));
                batch(&self.remote, &[format!("route replace {} {by}", net.prefix(family))])?;
            }
        }
        let server = if self.layout.lan { self.hosts.server } else { endpoint(self.inner) };
        let ends = Ends { client: net.address(self.inner, END), server };
        self.bystanders.push(Bystander { link, name, host, ends });
        Ok(())
    }
}
