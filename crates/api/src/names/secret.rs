//! Keys of the Secret that `Cluster.spec.secretRef` names. Karmada's `join` writes them; the hub reads them.

/// The bearer token for the member's API.
pub const TOKEN: &str = "token";
/// The certificates that the member's API is checked against, in PEM.
pub const CA_BUNDLE: &str = "caBundle";
