//! The reference implementation's programs, at pinned versions.
//!
//! Two sets: the network's own, and with `classic` the last version whose dispatcher serves a Unix socket, for
//! comparisons. Each is built when it is first asked for.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::go::GoModule;

/// v0.15.1: what networks run.
const SERVICES: GoModule = GoModule {
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
const CLASSIC: GoModule = GoModule {
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

/// The folder of a set of programs. Plain data.
#[derive(Clone, Debug)]
pub struct Services(PathBuf);

impl Services {
    /// What networks run; built where it is not in the cache yet. What takes long is told by `say`.
    ///
    /// # Errors
    /// [`LabError::Missing`] where there is no Go, [`LabError::Build`] where it cannot build.
    pub fn build(cache: &Path, say: &dyn Fn(&str)) -> Result<Self, LabError> {
        SERVICES.build(cache, say).map(Self)
    }

    /// The classic dispatcher and its daemon, in the same way.
    ///
    /// # Errors
    /// As [`Services::build`].
    pub fn classic(cache: &Path, say: &dyn Fn(&str)) -> Result<Self, LabError> {
        CLASSIC.build(cache, say).map(Self)
    }

    /// The folder, to run programs by name from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// A program of the set: `router`, `control`, `daemon`, `dispatcher`, `scion`, `scion-pki`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
