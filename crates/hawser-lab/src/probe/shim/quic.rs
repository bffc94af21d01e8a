//! The same file through the shim and by quinn over the same path, in turns.
//!
//! By several paths, too, against quinn on one of them; without a rate as fast as the routers carry.

use hawser_scion::select::Criterion;
use hawser_wire::Direction;

use super::{Asked, Figures, Ground, LabError};
use crate::probe::{DELAY, QUEUE};
use crate::scion_bench::network::paths;
use crate::shim::{Place, files};

/// Who is first changes with each run.
pub(in super::super) fn pair(asked: &Asked, links: u8, mbps: Option<f64>, bytes: u64) -> Result<Figures, LabError> {
    let way = mbps.map(|mbps| Direction::shaped(mbps, DELAY, QUEUE));
    let ground = Ground::start(asked, &Place::parallel(links, way.as_ref())?, links, Criterion::Length, "")?;
    let [client, server] = [&ground.pair.client, &ground.pair.server].map(|shim| &shim.host);
    let known = paths(client, server.isd_as)?;
    let quinn = || files::by_quinn(&asked.program, [client, server], &known, bytes);
    let shim = || files::through_shims(&ground.pair, bytes);
    let (quinn, shim) = if asked.run.is_multiple_of(2) {
        (quinn()?, shim()?)
    } else {
        let shim = shim()?;
        (quinn()?, shim)
    };
    Ok(Figures::from([
        ("goodput_mbps", shim.mbps()),
        ("quinn_mbps", quinn.mbps()),
        ("ratio", shim.mbps() / quinn.mbps()),
    ]))
}
