//! The embedded server, started for a run of the suite.

use crate::target::Way;

/// A running embedded server.
pub(crate) struct Embedded {}

impl Embedded {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        anyhow::bail!("there is no embedded server yet")
    }

    pub(crate) fn way(&self) -> Way {
        unreachable!("nothing starts one")
    }
}
