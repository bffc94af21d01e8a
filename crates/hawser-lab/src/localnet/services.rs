//! The reference implementation's programs, at pinned versions: the network's own, and the last version whose
//! dispatcher serves a Unix socket, for comparisons. Each set is built when it is first asked for.

use std::path::PathBuf;

use crate::error::LabError;
use crate::go::{self, GoModule};

/// v0.15.1: what networks run.
pub(crate) const SERVICES: GoModule = GoModule {
    name: "scion-services",
    files: &[("go.mod", include_str!("../../go/scion/go.mod")), ("go.sum", include_str!("../../go/scion/go.sum"))],
    packages: &[
        "github.com/scionproto/scion/router/cmd/router",
        "github.com/scionproto/scion/control/cmd/control",
        "github.com/scionproto/scion/daemon/cmd/daemon",
        "github.com/scionproto/scion/dispatcher/cmd/dispatcher",
        "github.com/scionproto/scion/scion/cmd/scion",
        "github.com/scionproto/scion/scion-pki/cmd/scion-pki",
    ],
};
/// v0.11.0: the last one with a dispatcher between applications and the network.
pub(crate) const CLASSIC: GoModule = GoModule {
    name: "scion-classic",
    files: &[
        ("go.mod", include_str!("../../go/scion-classic/go.mod")),
        ("go.sum", include_str!("../../go/scion-classic/go.sum")),
    ],
    packages: &[
        "github.com/scionproto/scion/dispatcher/cmd/dispatcher",
        "github.com/scionproto/scion/daemon/cmd/daemon",
    ],
};

/// The folder with what networks run: `router`, `control`, `daemon`, `dispatcher`, `scion`, `scion-pki`; built where it
/// is not in the cache yet, and what takes long is told on standard error.
///
/// # Errors
/// [`LabError::Missing`] where there is no Go, [`LabError::Build`] where it cannot build.
pub fn services() -> Result<PathBuf, LabError> {
    SERVICES.build(&go::cache(), &|line| eprintln!("{line}"))
}
