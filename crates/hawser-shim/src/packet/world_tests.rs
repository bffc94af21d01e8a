use std::time::SystemTime;

use hawser_scion::conn::PortRange;

use super::*;

#[test]
fn only_what_another_connection_holds_is_a_lack_of_room() {
    let local: EndpointAddr = "1-ff00:0:110,10.0.0.1:0".parse().expect("an address");
    let socket = |errno: Errno| OpenError::Link(LinkError::Socket { step: "open", source: errno.into() });
    let bind = |errno: Errno| OpenError::Link(LinkError::Bind { local: local.host, source: errno.into() });
    let expired = RouteError::Expired { destination: local, since: SystemTime::UNIX_EPOCH };
    let table = [
        (OpenError::NoFreePort { local, range: PortRange { first: 31_000, last: 31_001 } }, NotOpened::NoRoom),
        (socket(Errno::MFILE), NotOpened::NoRoom),
        (socket(Errno::NFILE), NotOpened::NoRoom),
        (bind(Errno::ADDRINUSE), NotOpened::NoRoom),
        (bind(Errno::ADDRNOTAVAIL), NotOpened::Refused),
        (socket(Errno::AFNOSUPPORT), NotOpened::Refused),
        (OpenError::Route(expired), NotOpened::Refused),
        (OpenError::Unspecified { local }, NotOpened::Refused),
    ];
    for (error, expected) in table {
        assert_eq!(not_opened(&error), expected, "{error:?}");
    }
}
