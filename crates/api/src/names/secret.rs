//! Keys of the Secret that `Cluster.spec.secretRef` names. Karmada's `join` writes the first two; the hub reads them all.

/// The bearer token for the member's API.
pub const TOKEN: &str = "token";
/// The certificates that the member's API is checked against, in PEM.
pub const CA_BUNDLE: &str = "caBundle";

/// The one `Cluster` that may use these credentials. `join` writes it, and all below.
pub const CLUSTER: &str = "cluster";
/// The uid of the member's kube-system at its join.
pub const CLUSTER_UID: &str = "clusterUID";
/// The only address that the token is sent to.
pub const API_ENDPOINT: &str = "apiEndpoint";
/// The proxy on the way there; absent if there is none.
pub const PROXY_URL: &str = "proxyURL";
/// The name that the server's certificate must have, if it is not that of [`API_ENDPOINT`].
pub const TLS_SERVER_NAME: &str = "tlsServerName";
/// What the server's certificate is checked against; one of [`trust`].
pub const SERVER_TRUST: &str = "serverTrust";
/// When the token was issued, in RFC 3339.
pub const TOKEN_ISSUED_AT: &str = "tokenIssuedAt";
/// When the token ends, in RFC 3339. The hub renews it long before.
pub const TOKEN_EXPIRES_AT: &str = "tokenExpiresAt";
/// How long a token is asked for, in seconds.
pub const TOKEN_LIFETIME: &str = "tokenLifetimeSeconds";

/// The values of [`SERVER_TRUST`].
pub mod trust {
    /// [`super::CA_BUNDLE`], and nothing else.
    pub const CA: &str = "CA";
    /// The root certificates of the hub's host.
    pub const SYSTEM_ROOTS: &str = "SystemRoots";
    /// Nothing. Used only if the hub's operator allows it.
    pub const NONE: &str = "None";
}
