//! Time as an argument: the engine has no clock.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(pub i64);

impl Time {
    /// A time with the resolution that Kubernetes gives to `creationTimestamp`.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds * 1000)
    }
}
