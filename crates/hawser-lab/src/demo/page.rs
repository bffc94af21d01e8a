//! The demo to look at: the local portal's page, led out of its namespace to this host's loopback.
//!
//! 1. The bond and its portals start, and the local one is asked for a link to its page. 2. Connections to a port of
//!    this host are taken up in the portal's namespace. 3. Traffic goes both ways, and link 1 goes silent and comes
//!    back, until somebody ends it.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use hawser_wire::Namespace;
use hawser_wire::traffic::Towards;

use super::plans;
use crate::cleanup;
use crate::error::LabError;
use crate::portals::Portals;
use crate::topology::{Bond, Over};

/// A round: until link 1 goes silent, until it is back, until the next one.
const UNTIL_CUT: Duration = Duration::from_secs(25);
const CUT_TIME: Duration = Duration::from_secs(8);
const AFTER_RETURN: Duration = Duration::from_secs(27);

/// Plays on until this process is ended, for whoever looks at the local portal's page; `tell` is given the link to it.
///
/// # Errors
/// Where it lacks root, a portal does not come to work, or serves no page.
pub fn run_page(program: &Path, tell: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    cleanup::start()?;
    let bond = Bond::new(&plans())?;
    let portals = Portals::start(program, &bond, "")?;
    let link = portals.login_link()?;
    let inside = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()?.parse().ok());
    let inside: SocketAddr =
        inside.ok_or_else(|| portals.local.process.fault("the link to its page has no address"))?;
    let outside = lead_out(&bond.local, inside).map_err(|error| LabError::system("lead page out", error))?;
    tell(&link.replacen(&inside.to_string(), &outside.to_string(), 1));
    let whole = UNTIL_CUT + CUT_TIME + AFTER_RETURN;
    loop {
        let transfers = [Towards::Server, Towards::Client].map(|to| bond.transfer(to, Over::Tunnel, whole).start());
        thread::sleep(UNTIL_CUT);
        bond.links[0].black_hole(true)?;
        thread::sleep(CUT_TIME);
        bond.links[0].black_hole(false)?;
        for transfer in transfers {
            transfer?.finish()?;
        }
    }
}

/// Step 2: where the page is on this host.
fn lead_out(namespace: &Namespace, inside: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let outside = listener.local_addr()?;
    let namespace = namespace.clone();
    let accept = move || {
        for caller in listener.incoming().flatten() {
            // A portal that is ending closes the caller's connection, too.
            let Ok(Ok(page)) = namespace.run(|| TcpStream::connect(inside)) else { continue };
            if let (Ok(to_page), Ok(to_caller)) = (page.try_clone(), caller.try_clone()) {
                thread::spawn(move || pass(caller, to_page));
                thread::spawn(move || pass(page, to_caller));
            }
        }
    };
    thread::Builder::new().name("page".to_owned()).spawn(accept)?;
    Ok(outside)
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    // Either side may end it.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}
